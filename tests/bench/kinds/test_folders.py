"""Runs, ladders and profiles are copied and made small alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import main
from bench.comparison.kind import KIND as COMPARISON
from bench.kinds.folders import open_folder
from bench.kinds.thin import thin
from bench.ladder.kind import KIND as LADDER
from bench.ladder.records import RungMeasurement
from bench.ladder.show.rows import rows
from bench.profile import event_files as profile_store
from bench.profile.event_files import events_in
from bench.profile.kind import KIND as PROFILE
from bench.profile.records import CaseProfile, Profile, ProfileJob, planned
from bench.results.finding import Finding
from bench.results.records import Environment
from bench.results.store import RESULTS_FILE
from kernels.errors import InputError
from tests.bench import synthetic
from tests.bench.ladder.test_ladder import example
from tests.bench.profile import profile_cases

pytestmark = pytest.mark.slow

UUID = "GPU-1234"
HERE = Environment(machine="here", gpu="H200", gpu_uuid=UUID)
BATCHES = (1, 4, 16, 64)


def run(path: Path) -> Path:
    made, measured = synthetic.run(batches=(4,))
    with COMPARISON.create(path, msgspec.structs.replace(made, environment=HERE)) as folder:
        for measurement in measured:
            folder.append(measurement)
    return path


def many(measured: RungMeasurement) -> RungMeasurement:
    """The same with as many samples as a real rung takes."""
    if not measured.samples_ns:
        return measured
    drawn = np.random.default_rng(1).normal(float(np.median(measured.samples_ns)), 1e3, 3000)
    samples = tuple(round(value, 1) for value in drawn.tolist())  # as a worker rounds them
    return msgspec.structs.replace(measured, samples_ns=samples, rounds=(0, 1000, 2000))


def ladder(path: Path) -> Path:
    made, measured = example()
    assert made.reached is not None
    limits = {"cpu": msgspec.structs.replace(made.reached, measured_on=f"here, H200 {UUID}, driver 580")}
    job = msgspec.structs.replace(made.job, kernel_dirs=("/home/somebody/my_kernels",))
    folder = LADDER.create(path, msgspec.structs.replace(made, job=job, limits=limits, environment=HERE))
    for measurement in map(many, measured):
        if measurement.case.rung == "mine":
            finding = Finding(fault="bias", reason="the bias is missing", map="errors/mine.npz")
            measurement = RungMeasurement(case=measurement.case, disposition="incorrect", finding=finding)
        folder.append(measurement)
    (path / "errors").mkdir()
    np.savez(path / "errors" / "mine.npz", error=np.random.default_rng(0).random((64, 64)))
    return path


def profile(path: Path) -> Path:
    job = ProfileJob(model="lenet5-digits", backends=("engine-cuda",), batches=BATCHES)
    folder = PROFILE.create(path, Profile(job=job, cases=planned(job), environment=HERE))
    for case in folder.header.cases:
        file = profile_store.write_events(path, case.key, profile_cases.events())
        samples = tuple(float(v) for v in np.random.default_rng(case.batch).normal(2000, 9, 999))
        folder.append(
            profile_cases.profile(case=case, file=file, samples_ns=samples, events={"activities": 10})
        )
    return path


KINDS: dict[str, Any] = {"run": run, "ladder": ladder, "profile": profile}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_copied_whole_and_what_is_in_the_making_left_out(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = KINDS[kind](tmp_path / "source"), tmp_path / "target"
    (source / ".results.tmp").write_text("half")
    assert main.main(["runs", "copy", str(source), str(target)]) == 0
    assert capsys.readouterr().out.strip() == str(target)
    files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    assert {path.relative_to(target) for path in target.rglob("*") if path.is_file()} == files - {
        Path(".results.tmp")
    }
    assert open_folder(target).measurements() == open_folder(source).measurements()
    assert main.main(["runs", "copy", str(source), str(target)]) == 2
    assert main.main(["runs", "copy", str(source), str(source / "inside")]) == 2
    assert "lies in" in capsys.readouterr().err
    assert not (source / "inside").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_loses_a_line_that_was_cut_short_and_one_that_is_damaged(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = open_folder(KINDS[kind](tmp_path / "one"))
    whole = folder.measurements()
    results = folder.path / RESULTS_FILE
    *lines, last = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines) + last[:-20])
    assert len(folder.measurements()) == len(whole) - 1
    folder.append(whole[-1])  # type: ignore[arg-type]
    assert set(map(repr, folder.measurements())) == set(map(repr, whole))
    results.write_bytes(b"".join([*lines, b"nonsense\n", last]))
    caplog.clear()
    assert set(map(repr, folder.measurements())) == set(map(repr, whole))
    (said,) = caplog.messages
    assert f"line {len(lines) + 1} of" in said
    assert "results.jsonl is damaged and was left out" in said


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_tells_a_newer_version(kind: str, tmp_path: Path) -> None:
    path = KINDS[kind](tmp_path / "one")
    (file,) = path.glob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": 99}))
    with pytest.raises(InputError, match="newer Kernelscope"):
        open_folder(path)


@pytest.mark.sampled(6)
@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_shown_again_once_it_is_small(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = KINDS[kind](tmp_path / "source"), tmp_path / "small"
    assert main.main(["runs", "thin", str(source), str(target)]) == 0
    assert capsys.readouterr().out.startswith(f"{target}: ")
    assert main.main(["runs", "show", str(target), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert not any(UUID in path.read_text() for path in target.glob("*.json*"))
    assert main.main(["runs", "list", str(tmp_path)]) == 0
    assert main.main(["runs", "report", str(target), "--out", str(tmp_path / "small.md")]) == 0


def test_a_thinned_ladder_says_the_same(tmp_path: Path) -> None:
    source = LADDER.open(ladder(tmp_path / "source"))
    small = LADDER.open(tmp_path / "small") if thin(source.path, tmp_path / "small", 40_000) else None
    assert small is not None
    assert small.header.job.kernel_dirs == ("my_kernels",)
    before, after = (rows(f.header, f.measurements()) for f in (source, small))
    assert [row.name for row in after] == [row.name for row in before]
    for one, other in zip(before, after, strict=True):
        assert (one.time is None) == (other.time is None)
        assert (other.time, other.gain, other.speedup) == (one.time, one.gain, one.speedup)
        assert (other.verdict, other.gain_verdict) == (one.verdict, one.gain_verdict)
    (wrong,) = (m for m in small.measurements() if m.finding)
    assert wrong.finding is not None
    assert wrong.finding.map == "", "the map did not fit"
    assert wrong.facts["left out"].startswith("its error map")
    assert not (small.path / "errors").exists()
    thin(source.path, tmp_path / "with_map", 300_000)
    assert (tmp_path / "with_map" / "errors" / "mine.npz").is_file()
    with pytest.raises(InputError, match="fewer rungs"):
        thin(source.path, tmp_path / "tiny", 1000)
    assert not (tmp_path / "tiny").exists()


def test_a_thinned_profile_keeps_its_records_and_the_events_that_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = PROFILE.open(profile(tmp_path / "source"))
    whole = source.measurements()

    sizes: list[int] = []

    def small(name: str, nbytes: int) -> tuple[CaseProfile, ...]:
        sizes.append(thin(source.path, tmp_path / name, nbytes))
        return PROFILE.open(tmp_path / name).measurements()

    everything = small("all", 300_000)
    assert [m.file for m in everything] == [m.file for m in whole]
    for one, other in zip(whole, everything, strict=True):
        assert (other.samples_ns, other.pass_ns) == (one.samples_ns, one.pass_ns)
        assert (other.breakdowns, other.cold, other.process) == (one.breakdowns, one.cold, one.process)
        assert events_in(tmp_path / "all", other) == events_in(source.path, one)
    some = small("some", sizes[-1] - 1)
    assert [bool(m.file) for m in some] == [True, True, False, True], "the largest, then the smallest"
    left_out = some[2]
    assert left_out.breakdowns == whole[2].breakdowns
    assert any("left out" in note for note in left_out.notes)
    assert main.main(["runs", "show", str(tmp_path / "some"), "--format", "md"]) == 0
    assert "its events were left out" in capsys.readouterr().err
    for count in (2, 1, 0):
        assert sum(bool(m.file) for m in small(f"with {count}", sizes[-1] - 1)) == count
    with pytest.raises(InputError, match="profile fewer cases"):
        small("tiny", 1000)


def test_layers_are_of_a_comparison_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["runs", "show", str(ladder(tmp_path / "one")), "--layers"]) == 2
    assert "is none, but holds a ladder" in capsys.readouterr().err
