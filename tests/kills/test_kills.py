"""A kill in every run of the tests; and a loss that is planted in a run which nobody kills is told."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from bench.results.store import RESULTS_FILE
from bench.results.summaries import SAMPLE
from tests.kills import __main__ as kills

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the worker is found by /proc"),
]


def test_nothing_is_lost_and_a_loss_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--state", str(tmp_path)]
    assert kills.main([*arguments, "--count", "1"]) == 0
    assert "| 0 |" in capsys.readouterr().out
    assert not list(tmp_path.glob("run-*"))

    def loses(self: kills.Kills, path: Path, before: list[bytes]) -> None:
        lines = (path / RESULTS_FILE).read_bytes().splitlines(keepends=True)
        (path / RESULTS_FILE).write_bytes(b"".join(lines[1:]))
        kills._kept(path, [line[:-1] for line in lines])

    def killed(self: kills.Kills, path: Path, *_: object) -> bool:
        shutil.copytree(SAMPLE, path)
        self.state["worker"] += 1
        self.state["a line"] += 1
        return False

    monkeypatch.setattr(kills.Kills, "_killed", killed)
    monkeypatch.setattr(kills.Kills, "_finished", loses)
    assert kills.main([*arguments, "--count", "2"]) == 1, "it goes on"
    assert "lines that were written before are gone or changed" in capsys.readouterr().out
    assert list(tmp_path.glob("run-*")), "the run is kept, to be looked at"
    held = kills.Kills(tmp_path)
    assert held.count == 2
    assert sum(held.state[since] for since in kills.SINCE) == 2
