"""The log of saves: what a saved version gained or lost over the last right one, kept with its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import main
from bench.results import saves
from bench.results.ladder_records import Ladder, RungCase, RungMeasurement
from bench.results.records import Disposition
from bench.views.tables import save_tables
from tests.bench.ladder.test_ladder_folders import example


def version(case: RungCase, us: float, disposition: Disposition = "ok", **fields: Any) -> RungMeasurement:
    """One whose rounds say the same."""
    samples = tuple(us * 1e3 * factor for factor in (1.0, 1.001, 0.999) * 5) if disposition == "ok" else ()
    rounds, instances = ((0, 5, 10), (0, 1, 2)) if samples else ((), ())
    return RungMeasurement(
        case=case, disposition=disposition, samples_ns=samples, rounds=rounds, instances=instances, **fields
    )


@pytest.fixture
def logged(tmp_path: Path) -> tuple[Path, Ladder, RungCase]:
    """A log of a try that paid, one that is wrong, one that lost, one like the last right one."""
    ladder, found = example()
    case = next(m.case for m in found if m.case.user)
    log = saves.SaveLog(tmp_path)
    log.begin({m.case.key: m for m in found} | {case.key: version(case, 100)})
    for now in (
        version(case, 50),
        version(case, 0, "incorrect", reason="the bias is missing | <b>"),
        version(case, 80),
        version(case, 80.1),
    ):
        assert len(log.note(ladder, [case], {case.key: now}, {case.rung: "// as it was"})) == 1
    return tmp_path, ladder, case


def test_each_save_is_held_against_the_last_right_one(logged: tuple[Path, Ladder, RungCase]) -> None:
    folder, ladder, case = logged
    found = saves.read(folder)
    assert [save.verdict for save in found] == ["gained", "incorrect", "lost", "same"]
    gains = [save.gain for save in found]
    assert gains[0] == pytest.approx(2.0, rel=0.01)
    assert gains[1] is None
    assert gains[2] == pytest.approx(50 / 80, rel=0.01), "what was wrong in between is nothing to beat"
    assert {save.source for save in found} == {"// as it was"}
    assert {(save.rung, save.what) for save in found} == {(case.rung, ladder.job.title)}


def test_a_first_version_and_another_s_rung(tmp_path: Path) -> None:
    ladder, found = example()
    mine = next(m.case for m in found if m.case.user)
    ours = next(m.case for m in found if not m.case.user and not m.case.is_reference)
    log = saves.SaveLog(tmp_path)
    known = {mine.key: version(mine, 10), ours.key: version(ours, 10)}
    (made,) = log.note(ladder, [mine, ours], known, {})
    assert (made.rung, made.verdict, made.gain) == (mine.rung, "first", None)
    assert len(saves.read(tmp_path)) == 1


def test_it_is_shown_in_every_format(
    logged: tuple[Path, Ladder, RungCase], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _, case = logged
    for form in ("table", "csv", "md"):
        assert main.main(["ladder", "--saves", str(folder), "--format", form]) == 0
        out = capsys.readouterr().out
        assert "lost" in out
        assert case.rung in out
    assert "| <b>" not in out.replace("\\|", "").replace("\\<", ""), "text of others is text"
    assert main.main(["ladder", "--saves", str(folder), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    schema_held = msgspec.convert(printed, save_tables.SavesOutput)
    assert len(schema_held.saves) == 4
    assert main.main(["ladder", "--saves", str(folder / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_before_the_first_save_there_are_none_and_that_is_no_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["ladder", "--saves", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("no saves yet; `ladder --watch --kernels ")
    assert main.main(["ladder", "--saves", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["saves"] == []
    (tmp_path / saves.FILE).mkdir()
    assert main.main(["ladder", "--saves", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_damaged_log_is_refused_and_one_cut_off_is_read(logged: tuple[Path, Ladder, RungCase]) -> None:
    folder, _, _ = logged
    path = folder / saves.FILE
    path.write_bytes(path.read_bytes() + b'{"at":"2026')
    assert len(saves.read(folder)) == 4
    path.write_bytes(b"[]\n")
    with pytest.raises(saves.InputError, match="no log of saves"):
        saves.read(folder)


def test_a_ladder_that_is_gone_on_with_keeps_the_versions_it_had(tmp_path: Path) -> None:
    ladder, found = example()
    case = next(m.case for m in found if m.case.user)
    other = msgspec.structs.replace(case, rung="another")
    for one, source in ((case, "// first"), (other, "// second"), (other, "// third")):
        saves.keep(tmp_path, ladder, [version(one, 50)], {one.rung: source})
    assert [(save.rung, save.source) for save in saves.read(tmp_path)] == [
        (case.rung, "// first"),
        ("another", "// third"),
    ]
