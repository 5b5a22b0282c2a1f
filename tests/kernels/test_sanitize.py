"""The module that the sanitizers are run over: every rung, a wrong answer told, what is missing said."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.errors import UnavailableError
from kernels.ops import OPS, Params
from kernels.registry import Rung
from tests import sampling
from tests.kernels import sanitize

pytestmark = pytest.mark.slow

QUICK = ("unary", "cast")


class Echo:
    """A device that answers what it is told to: the right answer, or one with a mistake for one rung."""

    capability = (9, 0)

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong
        self.ran: list[str] = []

    def run(
        self,
        rung: Rung,
        params: Params,
        inputs: tuple[np.ndarray | None, ...],
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> tuple[np.ndarray, str]:
        self.ran.append(rung.label)
        if self.wrong == "fault" and rung.op == "cast":
            raise RuntimeError("an illegal memory access was encountered\nmore")
        case = sanitize.small_case(rung, self.capability)
        assert case is not None
        assert case.params == params
        return case.expected.astype(dtype), "4 bytes written outside" if rung.label == self.wrong else ""


@pytest.mark.sampled
@pytest.mark.parametrize("op", [*QUICK, "conv"])
def test_there_is_a_case_for_every_rung(op: str) -> None:
    for rung in sampling.some(f"sanitized {op}", list(sanitize.ladder([op])), 10):
        case = sanitize.small_case(rung, (9, 0))
        assert case is not None, rung.label
        assert case.params.flops < 2e8, f"{rung.label}: too much work under a sanitizer"


def test_every_rung_is_run_once_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    device = Echo()
    assert sanitize.main(["--op", "unary", "--op", "cast"], device) == 0
    labels = [rung.label for rung in sanitize.ladder(QUICK)]
    assert device.ran == labels
    out = capsys.readouterr().out
    assert all(f"{label}: right on " in out for label in labels)
    assert f"{len(labels)} rungs, 0 wrong" in out


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("unary 01 naive", "WRONG, 4 bytes written outside"),
        ("fault", "WRONG, an illegal memory access was encountered on"),
    ],
)
def test_a_wrong_answer_or_a_fault_is_told_and_the_rest_goes_on(
    wrong: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    device = Echo(wrong)
    assert sanitize.main(["--op", "cast", "--op", "unary"], device) == 1
    assert words in capsys.readouterr().out
    assert len(device.ran) == len(sanitize.ladder(QUICK))


def test_a_rung_whose_compiler_compiles_nothing_here_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    class Without(Echo):
        def run(self, rung: Rung, *given: object) -> tuple[np.ndarray, str]:  # type: ignore[override]
            if rung.op == "cast":
                raise UnavailableError(f"{rung.label} cannot be compiled here: no compiler")
            return super().run(rung, *given)  # type: ignore[arg-type]

    assert sanitize.main(["--op", "cast", "--op", "unary"], Without()) == 0
    out = capsys.readouterr().out
    assert out.count("left out, cast") == len(sanitize.ladder(["cast"]))
    assert "right on" in out


def test_rungs_that_call_a_library_can_be_left_out() -> None:
    everything = sanitize.ladder(list(OPS))
    assert [r for r in everything if not r.yardstick] == sanitize.ladder(list(OPS), libraries=False)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Absent:
        @staticmethod
        def unavailable() -> str:
            return "no GPU answers"

    monkeypatch.setattr(sanitize, "BACKEND", Absent)
    monkeypatch.setattr(sanitize, "sanitizer", lambda: None)
    assert sanitize.main(["--under", "memcheck,racecheck"]) == 2
    out = capsys.readouterr().out
    assert "compute-sanitizer is not there" in out
    assert "no GPU answers" in out
    assert sanitize.main([]) == 2
    with pytest.raises(SystemExit):
        sanitize.main(["--under", "magic"])


def test_each_tool_is_run_over_this_module(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], check: bool) -> object:
        ran.append(command)
        return type("Done", (), {"returncode": 1 if "racecheck" in command else 0})

    monkeypatch.setattr(sanitize.BACKEND.__class__, "unavailable", lambda self: None)
    monkeypatch.setattr(sanitize, "sanitizer", lambda: "/bin/compute-sanitizer")
    monkeypatch.setattr(sanitize.subprocess, "run", run)
    assert sanitize.main(["--under", "memcheck,racecheck", "--op", "unary"]) == 1
    assert [command[2] for command in ran] == ["memcheck", "racecheck"]
    assert ran[0][-2:] == ["--op", "unary"]
    assert ran[1][-1] == "--no-libraries"
    out = capsys.readouterr().out
    assert "memcheck: clean" in out
    assert "racecheck: something was found" in out
