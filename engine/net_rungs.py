"""The ladder of a whole net: ways to put its steps together into a pass, from one launch for each step to one
launch for all. The kernels of the steps are the same in all of them: those that the engine takes by default.

These rungs are no kernels and have no files of their own; each shows the file that implements it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.options import Options
from kernels import registry
from kernels.errors import InputError
from kernels.nearest import did_you_mean
from kernels.net.text import FILE
from kernels.precision import FP32
from kernels.registry import Rung

OP = "net"
_ENGINE = Path(__file__).parent


@dataclass(frozen=True)
class _Way:
    """asked: fields of Options that the session gets; fact: name of the session's fact that begins with "no"
    if the session could not do as asked."""

    name: str
    idea: str
    file: Path
    asked: Mapping[str, bool]
    fact: str = ""
    compiled: bool = False


_APART = {"one_kernel": False}
_WAYS = {
    "cuda": (
        _Way(
            "launch_a_step",
            "A kernel a step, launched by the host one after the other: below some microseconds a step, the "
            "launches are what is timed.",
            _ENGINE / "cuda" / "stages.py",
            {"cuda_graph": False, **_APART},
        ),
        _Way(
            "cuda_graph",
            "The same kernels in a CUDA graph: one launch a pass, and the device goes from kernel to kernel.",
            _ENGINE / "cuda" / "stream.py",
            _APART,
            "cuda_graph",
        ),
        _Way(
            "one_kernel",
            "One kernel for the net: a block or a cluster of blocks takes its images through all steps, and "
            "what lies between two steps stays in shared memory.",
            FILE,
            {"anyway": True},
            "one_kernel",
        ),
    ),
    "cpu": (
        _Way(
            "numpy_call_a_step",
            "A call a step from Python, each in NumPy, divided among threads.",
            _ENGINE / "cpu" / "steps.py",
            {"compiled": False},
        ),
        _Way(
            "compiled_call_a_step",
            "A call a step from Python into compiled loops, where a step has such a kernel.",
            registry.ROOT / "cpu" / "compiled.py",
            _APART,
            compiled=True,
        ),
        _Way(
            "one_compiled_call",
            "One compiled call a pass: a block of images goes through several steps in one core's cache, and "
            "the interpreter is not asked in between.",
            _ENGINE / "cpu" / "program.py",
            {},
            compiled=True,
        ),
    ),
}


def rungs(device: str, precision: str = FP32) -> tuple[Rung, ...]:
    """The rungs of a device, the simplest first. precision: what the session computes in."""
    nothing = MappingProxyType[str, int | float | str | bool]({})
    return tuple(
        Rung(
            device, OP, number, way.name, way.idea, "", nothing, nothing, way.file,
            way.file.read_text(encoding="utf-8"), precision=precision, compiled=way.compiled,
        )
        for number, way in enumerate(_WAYS[device], 1)
    )  # fmt: skip


def find(device: str, name_or_number: str, precision: str = FP32) -> Rung:
    """As kernels.registry.find."""
    ladder = rungs(device, precision)
    for rung in ladder:
        if name_or_number in (rung.name, str(rung.number)):
            return rung
    hint = did_you_mean(name_or_number, [rung.name for rung in ladder])
    known = ", ".join(f"{rung.number} {rung.name}" for rung in ladder)
    raise InputError(f"no rung {name_or_number!r} of {OP} on {device}{hint}; there are: {known}")


def options(rung: Rung, given: Options) -> Options:
    """The options with which a session is this rung."""
    requested: dict[str, Any] = dict(_way(rung).asked)
    return replace(given, **requested)


def refusal(rung: Rung, facts: Mapping[str, str]) -> str | None:
    """Why a session with these facts is not this rung although it was asked for; None where it is."""
    way = _way(rung)
    outcome = facts.get(way.fact, "no: it takes a CUDA graph, which could not be made") if way.fact else ""
    return outcome.removeprefix("no: ") if outcome.startswith("no") else None


def _way(rung: Rung) -> _Way:
    ways: Sequence[_Way] = _WAYS[rung.device]
    return ways[rung.number - 1]
