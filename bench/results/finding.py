"""What is wrong with a kernel's answer, as a record."""

from __future__ import annotations

from typing import Literal

from bench.results.records import ErrorStats, Record

Fault = Literal[
    "stray_write",
    "outside",
    "input_written",
    "uninitialised",
    "barrier",
    "endless",
    "stopped",
    "unwritten",
    "nan",
    "stale",
    "remembers",
    "race",
    "zeros_only",
    "batch_one_only",
    "pad",
    "stride",
    "dilation",
    "bias",
    "group",
    "activation",
    "kernel",
    "half_precision",
    "digits",
    "left_out",
    "layout",
    "scale",
    "sign",
    "axis",
    "kind",
    "place",
    "wrong",
]


class Finding(Record, frozen=True):
    """What is wrong with a rung's answer: a name, when it was seen, on which params (in words), and where.
    index: the first element that differs, in an output of this shape, expected and got its values as text;
    wrong: how many of `elements` differ. map: file of the error map in the ladder's folder ("" for none)."""

    fault: Fault
    reason: str
    when: str = ""
    params: str = ""
    index: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""
    wrong: int = 0
    elements: int = 0
    error: ErrorStats | None = None
    map: str = ""
