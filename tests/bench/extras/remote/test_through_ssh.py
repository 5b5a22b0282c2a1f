"""What measures, through OpenSSH, with the program's own workers at the other end.

`python -m tests.bench.extras.remote.whole` holds what comes of it against what is measured here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import main
from bench.results.folders import open_folder
from bench.results.records import MACHINE
from tests.bench.extras.remote import whole
from tests.bench.extras.remote.loopback import Loopback, needs_sshd

pytestmark = [needs_sshd, pytest.mark.slow]

LENET = ("lenet5-digits", "--backend", "ort-cpu", "--batch", "1", "--budget", "0.05")
LADDER = ("ladder", "conv", *whole.SHAPE, "--device", "cpu", "--budget", "0.05")


@pytest.mark.sampled(9, "places")
@pytest.mark.parametrize(
    ("words", "count", "part"),
    [
        (("compare", *LENET, "--images", "8"), 1, "layers"),
        (("profile", *LENET, "--runs", "1"), 1, "events"),
        ((*LADDER, "--rung", "shift_and_add"), 2, ""),
    ],
)
def test_its_figures_and_files_lie_here_and_say_where_they_are_from(
    lab: Loopback, tmp_path: Path, words: tuple[str, ...], count: int, part: str
) -> None:
    lab.place()
    out = tmp_path / "run"
    assert main.main([*words, "--on", "lab", "--out", str(out), "--charts", "none"]) == 0
    with open_folder(out) as folder:
        found = folder.measurements()
        assert folder.header.environment.machine, "the other machine's environment is that of the run"
    assert [(m.disposition, m.facts[MACHINE]) for m in found] == [("ok", "lab")] * count
    assert not part or len(list((out / part).iterdir())) == count


@pytest.mark.sampled(9, "places")
def test_a_kernel_that_is_saved_is_judged_there(lab: Loopback, tmp_path: Path, monkeypatch) -> None:
    lab.place()
    monkeypatch.setattr(whole, "SAVES", 1)
    assert main.main(["ladder", "conv", str(tmp_path / "mine"), "--new", "--device", "cpu"]) == 0
    (kernel,) = (tmp_path / "mine").glob("90_*.py")
    words = [*LADDER, "--kernels", str(tmp_path / "mine"), "--rung", "mine", "--on", "lab"]
    assert len(whole.saves(kernel, words, tmp_path)) == 1
    shown = (tmp_path / "watch.txt").read_text()
    assert len(re.findall(r"\bmine\b.*\bok\b", shown)) >= 2, shown
