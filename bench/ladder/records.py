"""The words of a ladder, as frozen records: rungs of one operator on one shape, checked, then timed together.

LadderJob (what to run) → RungCase (one rung, the reference, or a whole model with a rung in it) →
RungMeasurement (what came of it). A ladder's folder holds `ladder.json` (one Ladder) and `results.jsonl` (a
RungMeasurement a line). Like bench.results.records this module reaches nothing but msgspec and that.
"""

from __future__ import annotations

import sys
from typing import Literal

import msgspec

from bench.results.messages import Done, Hello, Log, Message, Progress
from bench.results.records import (
    Beyond,
    Disposition,
    Environment,
    ErrorStats,
    Record,
    Sampled,
    Telemetry,
    Validity,
    check_name,
)
from kernels.precision import PRECISIONS

SCHEMA = 1
REFERENCE = "reference"
# What was measured of a machine is not all that it can. Reads alone are faster than the copies that were
# measured, which on a CPU also fetch what they overwrite; a machine that was busy while it was probed reaches
# more than it did then.
MORE_BYTES = {"cpu": 2.0, "cuda": 1.25}
# A cache is read and written at once: on a GPU, where reads alone are measured, the larger of both counts.
MORE_CACHED = {"cpu": 3.0, "cuda": 1.25}
LEAST_RATE, MOST_RATE = 1.0, 1e24  # what a machine may reach: of the rest no chart can be drawn
MARGIN = 0.9  # of what a machine takes at least: what is faster is a fault of measuring
# Argument that tells a worker that it will be given a LadderStart.
LADDER = "--ladder"

Scope = Literal["rung", "reference", "model"]
Fault = Literal[
    "stray_write",
    "input_written",
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


class LadderJob(Sampled, frozen=True, kw_only=True):
    """What the user asked for. op: of kernels.ops.OPS, or "net", all of a model
    (bench.ladder.net); params: the fields of its record. title: what the
    params are, in words. model, node: where they come from ("" for a shape given by hand). rungs: by name;
    () all that there are. precision: only fp32's rungs and this one's ("": of every precision that there is).
    whole_model: also run the model with each rung in it. budget_s: the most seconds
    of samples a rung; timeout_s: seconds after which a rung is given up. quick: check fewer small shapes.
    tune: search among what rungs list under `[tune]` first."""

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


def compared_in(precision: str) -> str:
    """The precision of the reference that a rung of `precision` is held against: fp32-tc stands for fp32."""
    return PRECISIONS[precision].reference if precision in PRECISIONS else precision


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


class RungMeasurement(Record, frozen=True):
    """What came of one case. samples_ns, rounds, instances, quantile, load, runs_per_sample as
    bench.results.records.Measurement. error: of the full-size checks, the worst. checks: how many passes were
    judged. compiled: registers, shared_nbytes, stack_nbytes and spill_nbytes (see kernels.nvrtc.Resources),
    threads, occupancy (0 to 1). notes: what a reader should know of a right answer. nbytes: what it reads and
    writes at least, weights as they lie for it; 0 where that is not known, None in records from before it was
    told.
    """

    case: RungCase
    disposition: Disposition
    reason: str = ""
    finding: Finding | None = None
    samples_ns: tuple[float, ...] = ()
    runs_per_sample: int = 1
    rounds: tuple[int, ...] = ()
    instances: tuple[int, ...] = ()
    quantile: float = 0.5
    load: dict[str, float] = msgspec.field(default_factory=dict)
    error: ErrorStats | None = None
    checks: int = 0
    compiled: dict[str, float] = msgspec.field(default_factory=dict)
    compile_ns: int = 0
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    telemetry: Telemetry = Telemetry()
    validity: Validity = Validity()
    started_at: str = ""
    nbytes: int | None = None
    schema: int = SCHEMA


class MachineLimits(Record, frozen=True):
    """What a machine was measured to reach: bytes and float32 operations a second, by which means, when.
    matrix_flops_per_s: of the matrix units, by the precision of the factors; matrix_missing: why that is not
    known ("" where it is, and for a device that has none). cache_nbytes: of the caches together;
    cache_bytes_per_s: how fast those of the second level are; nearest_nbytes: what may lie nearer than these
    from one pass to the next. 0 where not known."""

    device: str
    bytes_per_s: float
    flops_per_s: float
    copied_by: str
    multiplied_by: str
    measured_on: str
    measured_at: str
    matrix_flops_per_s: dict[str, float] = msgspec.field(default_factory=dict)
    matrix_by: str = ""
    matrix_missing: str = ""
    cache_nbytes: int = 0
    cache_bytes_per_s: float = 0.0
    nearest_nbytes: int = 0

    def __post_init__(self) -> None:
        known = (self.cache_bytes_per_s, *self.matrix_flops_per_s.values())
        reached = (self.bytes_per_s, self.flops_per_s, *filter(None, known))
        if not all(LEAST_RATE <= rate <= MOST_RATE for rate in reached):
            raise ValueError(
                f"limits that no machine has: rates lie within {LEAST_RATE:g} and {MOST_RATE:g} a second"
            )
        if self.cache_nbytes < 0 or self.nearest_nbytes < 0:
            raise ValueError("limits that no machine has: a cache of less than 0 bytes")

    def beyond(self, nbytes: int, written: int, seconds: float) -> Beyond:
        """What is to be said of so many bytes, of which these were written, in such a time, as a step does
        it again and again: "cache", where they came faster than the memory gives them; "impossible", where
        they do so by more than what a cache holds, or faster than the caches give them; else "", as where the
        caches are not known."""
        if not nbytes or not self.cache_nbytes or seconds <= 0:
            return ""
        came = self.bytes_per_s * MORE_BYTES[self.device] * seconds
        cached = self.cache_bytes_per_s * MORE_CACHED[self.device] * seconds
        through = nbytes if self.device == "cpu" else max(nbytes - written, nbytes // 2)
        if MARGIN * (nbytes - self.cache_nbytes) > came:
            return "impossible"
        if cached and MARGIN * (through - self.nearest_nbytes) > cached:
            return "impossible"
        return "cache" if nbytes > came else ""

    def cached(self, between: int) -> bool:
        """Whether bytes that are used again after so many, themselves among these, come out of the caches, of
        which it is known how fast they are."""
        return bool(self.cache_bytes_per_s) and between <= self.cache_nbytes

    def moved_per_s(self, between: int) -> float:
        """Bytes a second of what is used again after so many: the caches' rate, or the memory's."""
        return self.cache_bytes_per_s if self.cached(between) else self.bytes_per_s

    def rate(self, precision: str) -> float:
        """Operations a second of the units that rungs of this precision stand on; 0.0 where not known."""
        if precision == "fp32-tc":  # three products of a lower precision make one of float32
            return max(self.matrix_flops_per_s.values(), default=0.0) / 3
        return self.flops_per_s if precision == "fp32" else self.matrix_flops_per_s.get(precision, 0.0)


class Ladder(Record, frozen=True):
    """`ladder.json`: everything about a ladder that is not a measurement. nbytes: every input and output
    once, all numbers in float32; unread: how much of it a rung may do without, of inputs that no window
    reaches whole; least_nbytes: by precision, what no rung of it does without (empty in records from before
    it was told)."""

    job: LadderJob
    cases: tuple[RungCase, ...]
    flops: int = 0
    nbytes: int = 0
    unread: int = 0
    least_nbytes: dict[str, int] = msgspec.field(default_factory=dict)
    reference: str = ""
    limits: MachineLimits | None = None
    command: str = ""
    created_at: str = ""
    environment: Environment = Environment()
    schema: int = SCHEMA

    def least(self, precision: str) -> int:
        """Bytes that a rung of this precision does not do without."""
        return self.least_nbytes.get(precision, self.nbytes)

    def cached(self, precision: str) -> bool:
        """Whether a pass finds its bytes in the caches, where the one before left them."""
        return self.limits is not None and self.limits.cached(self._between(precision))

    def moved_per_s(self, precision: str) -> float:
        """Bytes a second at most, of what a rung of this precision does not do without; 0.0 where no limit is
        known."""
        return 0.0 if self.limits is None else self.limits.moved_per_s(self._between(precision))

    def _between(self, precision: str) -> int:
        """Bytes from one use to the next: those of a pass, or more than any cache holds where each pass
        begins with empty ones."""
        return self.least(precision) if self.job.l2 == "warm" else sys.maxsize


class LadderStart(Record, frozen=True):
    """The one line a worker of the ladder reads; see bench.results.records.Start."""

    job: LadderJob
    cases: tuple[RungCase, ...] = ()
    folder: str = ""


class RungStarted(Message, frozen=True, tag="rung_started"):
    """The worker turns to this case. stage: "prepare", "check", "time"."""

    case: RungCase
    stage: str


class RungProvisional(Message, frozen=True, tag="rung_provisional"):
    """What a pass takes so far, after the first round of a case's timing; see
    bench.results.records.Provisional.
    """

    case: RungCase
    median_ns: float


class RungMeasured(Message, frozen=True, tag="rung_measured"):
    """A case is done."""

    measurement: RungMeasurement


class LimitsMeasured(Message, frozen=True, tag="limits_measured"):
    """What this machine reaches, measured now or read from the cache."""

    limits: MachineLimits


LadderMessage = Hello | RungStarted | Progress | RungProvisional | RungMeasured | LimitsMeasured | Log | Done
