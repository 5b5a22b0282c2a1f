"""Files with some of their bytes or fields changed are taken or refused in a sentence, whatever the change;
and what would not be is found, told, counted once and gone on from."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from engine.graph import importer
from kernels.errors import KernelscopeError
from tests import sampling
from tests.fuzz import __main__ as fuzz
from tests.fuzz import child, of_models, targets

pytestmark = pytest.mark.slow

# How many files of each target a run tries, other ones with each seed; `make fuzz` goes on and on.
TRIED = {
    "model": 40,
    "tensor": 75,
    "lines": 5,
    "records": 8,
    "packed": 25,
    "events": 10,
    "shown": 10,
    "written": 2,
    "handed_in": 40,
}
# Further seeds, each of which found something once.
FOUND: dict[str, tuple[int, ...]] = {"model": (160263666, 1434878423, 1006728721)}


def test_every_target_is_tried() -> None:
    assert set(TRIED) == set(targets.TARGETS)


@pytest.mark.sampled
@pytest.mark.parametrize("target", TRIED)
def test_files_drawn_anew_and_those_that_found_something(target: str, tmp_path: Path) -> None:
    first = sampling.number(f"fuzz {target}")
    for seed in (*range(first, first + TRIED[target]), *FOUND.get(target, ())):
        try:
            tried = child.one(target, seed, tmp_path)
        except Exception as error:
            error.add_note(f"again: python -m tests.fuzz --only {target} --seed {seed}")
            raise
        assert tried >= 1


def test_changed_models_are_taken_and_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else none of them reaches what is behind the first check, or none reaches a check."""
    came: list[bool] = []

    def load(path: Path) -> object:
        try:
            graph = importer.load(path)
        except KernelscopeError:
            came.append(False)
            raise
        came.append(True)
        return graph

    monkeypatch.setattr(of_models, "load", load)
    for seed in range(100):
        of_models.model(tmp_path, random.Random(seed))
    assert 20 < sum(came) < 80


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_FUZZ_TARGETS", "tests.fuzz.planted")
    monkeypatch.setattr(child, "TARGETS", "tests.fuzz.planted")
    monkeypatch.setenv("KERNELSCOPE_FUZZ_SECONDS", "1")
    monkeypatch.setattr(child, "MOST_S", 1.0)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("fails", "ValueError: planted"),
        ("dies", "was ended by SIGSEGV"),
        ("hangs", "took more than 1 s"),
        ("grows", "MemoryError"),
    ],
)
@pytest.mark.usefixtures("planted")
def test_a_fault_is_found_and_told(
    target: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = {"hangs": "2"}.get(target, "0.3")
    assert fuzz.main(["--state", str(tmp_path), "--only", target, "--seconds", seconds]) == 1
    found = sorted((tmp_path / fuzz.FINDINGS).iterdir())
    assert found
    assert said in found[0].read_text()
    assert f"--only {target} --seed {found[0].stem.partition('-')[2]}" in found[0].read_text()
    assert target in capsys.readouterr().err
    # It goes on behind the seed that ended the process.
    held = json.loads((tmp_path / fuzz.STATE_FILE).read_text())[target]
    assert held["seed"] == held["cases"] > int(found[0].stem.partition("-")[2])


@pytest.mark.usefixtures("planted")
def test_counts_go_on_and_begin_anew_with_the_code(tmp_path: Path) -> None:
    def tried() -> dict[str, int]:
        assert fuzz.main(["--state", str(tmp_path), "--only", "fine", "--seconds", "0.2"]) == 0
        held: dict[str, int] = json.loads((tmp_path / fuzz.STATE_FILE).read_text())["fine"]
        return held

    first, second = tried(), tried()
    assert second["cases"] > first["cases"] > 0
    assert second["records"] == 2 * second["cases"] == 2 * second["cases_of_code"]
    file = tmp_path / fuzz.STATE_FILE
    file.write_text(file.read_text().replace(str(second["code"]), "other"))
    third = tried()
    assert third["cases_of_code"] == third["cases"] - second["cases"]
