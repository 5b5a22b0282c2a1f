"""The reports behind the page of results: each can still be asked for, and what is missing is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main

import main
from tests import figures


@pytest.mark.parametrize("report", figures.REPORTS, ids=lambda report: report.name)
def test_every_command_is_one_that_the_program_takes(report: figures.Report, tmp_path: Path) -> None:
    for words in figures.commands(report, tmp_path):
        found, rest = typer.main.get_command(main.app), words
        while known := getattr(found, "commands", {}):
            found, rest = known[rest[0]], rest[1:]
        assert found.make_context("main.py", list(rest)).params  # parsed, and not run


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    [report] = [one for one in figures.REPORTS if one.name == "catalogue-cpu"]
    (tmp_path / "catalogue-cpu" / "1").mkdir(parents=True)
    first, second, _ = figures.commands(report, tmp_path)
    assert first[:2] == ["compare", "--resume"]
    assert "--out" in second


def test_what_this_machine_cannot_make_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = figures.Report("mine", ("compare lenet5-digits",), ("mine-cuda",))
    monkeypatch.setattr(figures, "REPORTS", (lacking,))
    assert figures.main(["mine", "--out", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert told.out == "mine: there is no backend mine-cuda\n"
    assert told.err == "not made: mine\n"
