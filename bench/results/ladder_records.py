"""The words of a ladder, as frozen records: rungs of one operator on one shape, checked, then timed together.

LadderJob (what to run) → RungCase (one rung, the reference, or a whole model with a rung in it) →
RungMeasurement (what came of it). A ladder's folder holds `ladder.json` (one Ladder) and `results.jsonl` (a
RungMeasurement a line). Like bench.results.records this module reaches nothing but msgspec and that.
"""

from __future__ import annotations

import sys
from typing import Literal

import msgspec

from bench.results.finding import Finding
from bench.results.machine_limits import MachineLimits
from bench.results.records import (
    ErrorStats,
    Header,
    Record,
    Sampled,
    TimedResult,
    check_name,
)

REFERENCE = "reference"
OF_LIBRARY = "CuPy"  # title of the functions of a library that kernels for a task are timed beside on a GPU
OF_FUNCTION = "the reference ({})"  # title of the reference of a task that is no model, in float64
ARCHITECTURE = "architecture"  # the fact by which a measurement says what it was compiled for
COUNTS = "counts"  # of a rung that ran without a GPU: what it cost, a sentence a line
FLOOR, FLOOR_S = "floor", "floor_s"  # and below which time no pass stays on a GPU, in words and seconds

Scope = Literal["rung", "reference", "model"]


class LadderJob(Sampled, frozen=True, kw_only=True):
    """What the user asked for. op: of kernels.ops.OPS, or "net", all of a model
    (bench.measure.net_operator); params: the fields of its record. title: what the
    params are, in words. model, node: where they come from ("" for a shape given by hand). rungs: by name;
    () all that there are. precision: only fp32's rungs and this one's ("": of every precision that there is).
    whole_model: also run the model with each rung in it. budget_s: the most seconds
    of samples a rung; timeout_s: seconds after which a rung is given up. quick: check fewer small shapes.
    tune: search among what rungs list under `[tune]` first. limits_kept: what the machine reaches is taken as
    it was measured last, where it was. simulated: CUDA rungs run on the CPU, are judged and counted, and have
    no times; counts: they are also counted so once they were timed."""

    op: str
    params: dict[str, object]
    device: str
    title: str = ""
    model: str = ""
    node: str = ""
    batch: int = 1
    precision: str = ""
    rungs: tuple[str, ...] = ()
    whole_model: bool = False
    budget_s: float = 3.0
    timeout_s: float = 60.0
    quick: bool = False
    tune: bool = False
    limits_kept: bool = False
    simulated: bool = False
    counts: bool = False


class RungCase(Record, frozen=True):
    """One thing to measure. rung: the rung's name, or "reference"; number: the rung's. scope "model": the
    whole model with that rung at the node (or the reference's whole model). precision: by whose bound it is
    judged, and in which the reference computes. yardstick: a library's kernel, to measure ours by.
    language: what it is written in, by its title; "" for the device's own."""

    rung: str
    scope: Scope = "rung"
    number: int = 0
    user: bool = False
    side: bool = False
    idea: str = ""
    precision: str = "fp32"
    yardstick: bool = False
    language: str = ""

    def __post_init__(self) -> None:
        check_name("rung", self.rung)
        check_name("precision", self.precision)

    @property
    def is_reference(self) -> bool:
        return self.rung == REFERENCE

    @property
    def key(self) -> str:
        """Unique in a ladder and fit for a file name."""
        name = self.rung
        if self.is_reference and self.precision != "fp32":
            name += f"-{self.precision}"
        return f"{name}-{self.scope}" if self.scope == "model" else name

    @property
    def label(self) -> str:
        """In a sentence or at an axis: "14 async_stages"."""
        return f"{self.number:02d} {self.rung}"

    @property
    def words(self) -> str:
        name = "the reference" if self.is_reference else f"rung {self.label}"
        if self.precision != "fp32":
            name += f" in {self.precision}" if self.is_reference else f" ({self.precision})"
        return f"the whole model with {name}" if self.scope == "model" else name


class RungMeasurement(TimedResult[RungCase], frozen=True):
    """What came of one case of a ladder. error: of the full-size checks, the worst. checks: how many passes
    were judged. compiled: registers, shared_nbytes, stack_nbytes and spill_nbytes (see
    kernels.nvrtc.Resources), threads, occupancy (0 to 1). nbytes: what it reads and writes at least, weights
    as they lie for it; 0 where that is not known, None in records from before it was told. counted: what a
    pass on the CPU has cost a GPU, by name (bench.measure.ladder.counts.totals); never a time."""

    finding: Finding | None = None
    error: ErrorStats | None = None
    checks: int = 0
    compiled: dict[str, float] = msgspec.field(default_factory=dict)
    nbytes: int | None = None
    counted: dict[str, int] = msgspec.field(default_factory=dict)


class Ladder(Header[LadderJob, RungCase], frozen=True):
    """`ladder.json`: a ladder. nbytes: every input and output once, all numbers in float32; unread: how much
    of it a rung may do without, of inputs that no window reaches whole; least_nbytes: by precision, what no
    rung of it does without (empty in records from before it was told)."""

    flops: int = 0
    nbytes: int = 0
    unread: int = 0
    least_nbytes: dict[str, int] = msgspec.field(default_factory=dict)
    reference: str = ""

    @property
    def reached(self) -> MachineLimits | None:
        """What its device was measured to reach; None where that is not known."""
        return self.limits.get(self.job.device)

    def least(self, precision: str) -> int:
        """Bytes that a rung of this precision does not do without."""
        return self.least_nbytes.get(precision, self.nbytes)

    def cached(self, precision: str) -> bool:
        """Whether a pass finds its bytes in the caches, where the one before left them."""
        return self.reached is not None and self.reached.cached(self._between(precision))

    def moved_per_s(self, precision: str) -> float:
        """Bytes a second at most, of what a rung of this precision does not do without; 0.0 where no limit is
        known."""
        return 0.0 if self.reached is None else self.reached.moved_per_s(self._between(precision))

    def _between(self, precision: str) -> int:
        """Bytes from one use to the next: those of a pass, or more than any cache holds where each pass
        begins with empty ones."""
        return self.least(precision) if self.job.l2 == "warm" else sys.maxsize
