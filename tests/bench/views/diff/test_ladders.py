"""Two ladders held against each other: a rung that became slower, one that became wrong, one that is new."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import main
from bench.results.finding import Finding
from bench.results.ladder_records import RungMeasurement
from bench.run.kinds.ladder import KIND as LADDER
from bench.views.diff.between import between
from kernels.errors import InputError
from tests.bench.ladder.test_ladder import example, measured


def saved(path: Path, found: list[RungMeasurement], **job: object) -> Path:
    ladder, _ = example()
    job_ = msgspec.structs.replace(ladder.job, **job)
    folder = LADDER.create(
        path, msgspec.structs.replace(ladder, job=job_, cases=tuple(m.case for m in found))
    )
    with folder:
        for measurement in found:
            folder.append(measurement)
    return path


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return saved(tmp_path / "before", example()[1])


def test_rungs_are_matched_and_judged_by_their_reference(before: Path, tmp_path: Path, capsys) -> None:
    _, found = example()
    wrong = msgspec.structs.replace(
        measured("fft", 5, 4e6, side=True),
        disposition="incorrect",
        samples_ns=(),
        finding=Finding(fault="bias", reason="the bias is left out"),
    )
    names = {m.case.rung: m for m in found}
    after = saved(
        tmp_path / "after",
        [
            measured("naive", 1, 2 * 8e6),  # as the machine, which is half as fast
            measured("better", 2, 2 * 2.6e6),
            names["winograd"],
            wrong,
            measured("mine", 90, 2 * 0.5e6, user=True),
            measured("tiled", 3, 2e6),
            measured("reference", 0, 2 * 1e6),
        ],
    )
    told = {change.pair.who: change for change in between(before, after).changes}
    verdicts = {name: change.verdict for name, change in told.items() if change.verdict}
    assert verdicts == {"naive": "SAME", "better": "SLOWER", "mine": "FASTER"}
    assert told["fft"].wrong == "incorrect: the bias is left out"
    assert told["tiled"].pair.a is None
    gates = [
        main.main(["runs", "diff", str(before), str(after), "--fail-on", g]) for g in ("slower", "wrong")
    ]
    assert gates == [1, 1]
    said = " ".join(capsys.readouterr().out.split())
    assert "1.30× slower in 1 (rung 02 better)" in said
    assert "1 in B alone (rung 03 tiled)" in said


def test_ladders_of_two_things_are_refused(before: Path, tmp_path: Path) -> None:
    ladder, found = example()
    for field, value in (("batch", ladder.job.batch * 2), ("device", "cuda"), ("params", {"n": 1})):
        other = saved(tmp_path / field, found, **{field: value})
        with pytest.raises(InputError, match="only ladders of one operator at one shape"):
            between(before, other)
