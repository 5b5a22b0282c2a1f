"""What two runs say of the same cases, and what comes of holding one against the other. A is the run before,
B the one after: a ratio above 1 says that B is faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.results.records import ErrorStats
from bench.results.stats import Interval

By = Literal["speed-up", "time", ""]


@dataclass(frozen=True)
class Side:
    """What one run says of a case. time: of a pass, ns; speedup: over the reference `against` that was timed
    beside it; rounds: whether both were timed in several rounds, so that a verdict may follow; undecided: why
    none follows from this run, "" where its interval decides; doubts: what
    speaks against the figure that is compared. rungs: the kernel of each node; layers: the time of each, ns;
    clock_mhz: of the device while it was timed; left: words for where its answer first leaves the reference
    ("" where it does not)."""

    disposition: str
    reason: str = ""
    time: Interval | None = None
    speedup: Interval | None = None
    against: str = ""
    has_rounds: bool = False
    undecided: str = ""
    doubts: tuple[str, ...] = ()
    error: ErrorStats | None = None
    top1: float | None = None
    agreement: float | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    rungs: Mapping[str, str] = field(default_factory=dict)
    layers: Mapping[str, float] = field(default_factory=dict)
    clock_mhz: tuple[float, ...] = ()
    left: str = ""


@dataclass(frozen=True)
class Pair:
    """One case in two runs. key: fit for a file's name; words: as one says it; model: what it is of; who: the
    backend or the rung. a, b: None where the run has nothing of it; planned: whether a run that has nothing
    of it meant to measure it. reference: it is the yardstick itself, which has no verdict. other: what of the
    case itself is not the same in both ("fp32 → fp16"). batch: 0 where it has none."""

    key: str
    words: str
    model: str = ""
    who: str = ""
    batch: int = 0
    a: Side | None = None
    b: Side | None = None
    planned: bool = False
    reference: bool = False
    other: str = ""


@dataclass(frozen=True)
class Difference:
    """Something around the cases that is not the same: what, of which (a node, a backend at some batch sizes;
    "" for the whole), and how it is in each; "" where a run does not say."""

    what: str
    a: str
    b: str
    of: str = ""

    @property
    def words(self) -> str:
        where = f" of {self.of}" if self.of else ""
        return f"{self.what}{where}: {self.a or 'not said'} → {self.b or 'not said'}"


@dataclass(frozen=True)
class Step:
    """A part of the way from A's time to B's. what: "kernel", "batch", "clock", or a part of a pass that is
    none (bench.results.parts.OTHERS), of which "rest" is what nobody explains. label: what it is of; note:
    what changed there. a_ns, b_ns: what it took of a pass in each (None: it is no part of a pass but a
    reason, as a clock is). margin_ns: how far the change may be off, at 95 % (None: not known)."""

    what: str
    label: str
    change_ns: float
    note: str = ""
    a_ns: float | None = None
    b_ns: float | None = None
    margin_ns: float | None = None

    @property
    def named(self) -> bool:
        return self.what != "rest"

    @property
    def sure(self) -> bool:
        """Whether it is more than passes differ by."""
        return self.margin_ns is None or abs(self.change_ns) > self.margin_ns


@dataclass(frozen=True)
class Waterfall:
    """From the wall of A's profiled pass to that of B's, in steps that add up. largest first, the rest
    last."""

    key: str
    words: str
    a_ns: float
    b_ns: float
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def change_ns(self) -> float:
        return self.b_ns - self.a_ns

    @property
    def explained(self) -> float | None:
        """Which share of the change has a name; None where there is no change. What is not explained counts
        against it in either direction."""
        if not self.change_ns:
            return None
        rest = sum(abs(step.change_ns) for step in self.steps if not step.named)
        return max(0.0, 1 - rest / abs(self.change_ns))


@dataclass(frozen=True)
class Compared:
    """What a kind of run has to say of two of its folders. who: what a pair's `who` is, as a heading;
    no_verdict: why no verdict follows ("" where one may)."""

    pairs: Sequence[Pair]
    differences: Sequence[Difference] = ()
    waterfalls: Sequence[Waterfall] = ()
    who: str = "backend"
    no_verdict: str = ""


@dataclass(frozen=True)
class Change:
    """What came of one case. ratio: how many times as fast B is as A, by their speed-ups or by their times
    alone; verdict: as bench.results.stats names it, "" where there is none; undecided: why it is UNCLEAR.
    wrong: what is wrong with B
    here; worse: which of its answers are worse; lost: why A has a figure here and B has none; apart: why
    there is no ratio."""

    pair: Pair
    by: By = ""
    ratio: Interval | None = None
    verdict: str = ""
    undecided: str = ""
    doubts: tuple[str, ...] = ()
    wrong: str = ""
    worse: str = ""
    lost: str = ""
    apart: str = ""

    @property
    def matched(self) -> bool:
        return self.pair.a is not None and self.pair.b is not None

    @property
    def unjudged(self) -> bool:
        """Whether there should be a ratio and is none: both ran well."""
        a, b = self.pair.a, self.pair.b
        fine = a is not None and b is not None and "ok" == a.disposition == b.disposition
        return fine and bool(self.apart) and not self.pair.reference

    @property
    def mended(self) -> bool:
        """Whether B is well where A was not."""
        a, b = self.pair.a, self.pair.b
        return a is not None and b is not None and a.disposition != "ok" and b.disposition == "ok"


@dataclass(frozen=True)
class Named:
    """One of the two runs, as it is told: its folder, what it is called, when and where it was measured."""

    path: Path
    name: str
    created_at: str = ""
    machine: str = ""
    command: str = ""

    @property
    def words(self) -> str:
        when = self.created_at.replace("T", " ")[:16]
        return " · ".join(filter(None, (self.name, when, self.machine)))


@dataclass(frozen=True)
class Diff:
    """kind: of run ("comparison", …); bound: within which two are the same; machines: whether both are of one
    machine."""

    kind: str
    a: Named
    b: Named
    bound: float
    one_machine: bool
    changes: tuple[Change, ...]
    differences: tuple[Difference, ...] = ()
    waterfalls: tuple[Waterfall, ...] = ()
    who: str = "backend"
    no_verdict: str = ""

    @property
    def matched(self) -> list[Change]:
        return [change for change in self.changes if change.matched]
