"""What was measured to be best on this machine, kept in the user's cache: one file for each case.

A rung is one kernel file of the ladder (kernels.registry). A case is a step (its params) or a net (the params
of its steps, or the model's content) on a device, at one batch size, in one precision. Its file has these
parts:

    part       what it says                                             who measures it
    rungs      the rung of a step: `Choice`                             bench.measure.tuned.rungs
    paces      how fast the rungs were at other batch sizes: a hint     the same
    defines    the values of what a rung's header lists under [tune]    bench.measure.ladder.tuning
    layouts    how a plan's tensors travel, and the rungs for that      bench.measure.tuned.layouts
    nets       which steps are one kernel                               engine.cuda.replays.one_kernel
    mixes      what each product of a mixed net computes in             bench.measure.tuned.mixes
    early      which steps begin before the one in front has ended      engine.cuda.replays.overlap
    reference  the configuration of ONNX Runtime: `Choice`              bench.measure.tuned.reference
    errors     the layer errors of a reference                          bench.measure.answers.kept_errors
    oracle     that the float64 answers agree with ONNX Runtime's       bench.measure.answers.cross_check

An entry of a part also keeps what it depends on (`on`): the names and texts of all rungs that could be taken.
So a changed kernel is timed anew: the old entry is not found. A `Choice` has all variants that were tried,
each with its time, or with the reason why it has none.

The arguments of most functions here say which step is meant. device: "cuda" or "cpu"; params: what the step
computes, batch size included; precision: what was asked for; rungs: those of `candidates`, in that order;
threads: of the CPU (None: one a physical core; without meaning on CUDA).
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from engine.graph.plan import Plan
from engine.machine import driver as cuda_driver
from engine.machine import host
from kernels import launch, registry
from kernels.cache import Key, Store
from kernels.errors import KernelError, UnsupportedError
from kernels.ops import Params
from kernels.registry import ROOT, Rung

# The version goes up where the meaning of entries changes: no older file is read, and all is measured anew.
STORE = Store("tuned", 2, "what was tuned")
CASES = "cases"  # the folder of the files
MOST_ENTRIES = 8  # of a part of a case: those written last
MOST_BATCHES = 32  # of which paces are kept
NEARBY = 4.0  # a batch size so many times as large or small says something of this one
PROMISE = 0.9  # of the ladder's least time: estimates are hardly right to less than a tenth
# What else than its own file makes a rung's time: headers, launch shapes, how work is divided.
_SHARED = {
    "cuda": ("cuda/*.cuh", "launch/*.py", "estimates/*.py", "packing*.py"),
    "cpu": ("cpu/*.py", "ops/*.py"),
}

V = TypeVar("V")  # a variant: the name of a rung, a configuration of ONNX Runtime
Value = TypeVar("Value")


class Tried(msgspec.Struct, Generic[V], frozen=True, kw_only=True, omit_defaults=True):
    """What came of one variant (a rung, or a configuration of ONNX Runtime).

    refused: why it was not timed, or was dropped later ("": neither). first_ns: nanoseconds a pass in a short
    first measurement. time_ns: nanoseconds a pass in the second one, in which the best take turns: the
    median. strict: whether each of its parts is right, too (None: not checked).

    Only for a whole model: error: relative L2 error of its output against float64. within: whether that is
    within the precision's bound, in the first session. layer, layer_error: the group of layers with the
    largest error when it gets right inputs, at the case's batch size, and that error. doubt: how a later
    session was wrong though the first was right ("": none was). That happens, because each session chooses
    its algorithms when it is created.
    """

    variant: V
    refused: str = ""
    first_ns: float | None = None
    time_ns: float | None = None
    error: float | None = None
    layer: str = ""
    layer_error: float | None = None
    strict: bool | None = None
    within: bool | None = None
    doubt: str = ""

    @property
    def ns(self) -> float | None:
        """Nanoseconds a pass: time_ns, or else first_ns. None where it was never timed."""
        return self.time_ns or self.first_ns

    @property
    def eligible(self) -> bool | None:
        """Whether it may be the best: timed and right. None where its parts were not checked yet."""
        if self.refused or self.first_ns is None or self.within is False or self.doubt:
            return False
        return self.strict


class Choice(msgspec.Struct, Generic[V], frozen=True, kw_only=True, omit_defaults=True):
    """The variants of a case and what came of them; also while the search still goes on (`done` is False).

    default: the variant that is taken without measuring. best: the fastest that is right. lenient: the
    fastest whose answer is within the loosest bound. Both are None where there is none. trying: the variant
    that was being measured when this was written, and attempts: how often it was begun (a variant can crash
    the process). chosen_at: the date and time of the choice.
    """

    default: V
    tried: tuple[Tried[V], ...] = ()
    best: V | None = None
    lenient: V | None = None
    trying: V | None = None
    attempts: int = 0
    done: bool = False
    chosen_at: str = ""

    def of(self, variant: V | None) -> Tried[V] | None:
        """What came of this variant; None where it was not tried."""
        return next((t for t in self.tried if t.variant == variant), None)

    @property
    def ranked(self) -> list[Tried[V]]:
        """The variants that were timed and not refused, the fastest first. If the best of the first
        measurement has a time_ns, only variants with a time_ns are in the list. If it has none, it was the
        best by far, and all are."""
        right = [t for t in self.tried if not t.refused and t.first_ns is not None]
        timed = [t for t in right if t.time_ns is not None]
        if min(right, key=lambda t: t.first_ns or 0.0, default=None) not in timed:
            timed = right
        return sorted(timed, key=lambda t: t.ns or 0.0)

    @property
    def unfinished(self) -> bool:
        """Whether more measuring may find a best variant: it is not done; or its best was doubted later, and
        the parts of some others were not checked yet."""
        lost = self.best is None and any(tried.doubt for tried in self.tried)
        return not self.done or (lost and any(tried.eligible is None for tried in self.tried))

    def without(self, variant: V, reason: str, strict: bool) -> Choice[V]:
        """The choice after this variant gave a wrong answer; reason says how. The next best by the kept times
        takes its place (None if there is none). strict: only the precision's own bound was exceeded: the
        variant may still be `lenient`. Else it counts as refused."""
        wrong = {"doubt": reason} if strict else {"refused": reason, "time_ns": None}
        tried = tuple(msgspec.structs.replace(t, **wrong) if t.variant == variant else t for t in self.tried)
        remaining = [t for t in tried if t.first_ns is not None and not t.refused]
        remaining.sort(
            key=lambda t: (t.time_ns is None, t.ns)
        )  # what was timed before what was only looked at
        lenient, best = self.lenient, self.best
        if variant == lenient and not strict:
            lenient = next((t.variant for t in remaining), None)
        if variant == best:
            best = next((t.variant for t in remaining if t.eligible), None)
        return msgspec.structs.replace(self, tried=tried, lenient=lenient, best=best)


class Entry(msgspec.Struct, frozen=True):
    """One value in a part of a case's file. on: what the value depends on; it is found by an equal `on`
    only."""

    on: dict[str, str]
    value: Any


Parts = dict[str, list[Entry]]
_PARTS: type[Parts] = dict[str, list[Entry]]


@dataclass(frozen=True)
class Part(Generic[Value]):
    """One part of the files of cases; see the table of this module. of: the type of its values.

    A case is None for a device that is not there: then nothing is read and nothing is kept. A part of a case
    keeps the MOST_ENTRIES values that were written last.
    """

    name: str
    of: Any

    def read(self, case: Key | None, on: Key) -> Value | None:
        """The value that is kept for this case and this `on`; None where there is none that can be read."""
        parts = STORE.read(CASES, case, _PARTS) if case is not None else None
        return self._value(parts or {}, on)

    def _value(self, parts: Parts, on: Key) -> Value | None:
        entries = parts.get(self.name, [])
        entry_found = next((entry for entry in entries if entry.on == on), None)
        try:
            return None if entry_found is None else msgspec.convert(entry_found.value, self.of)
        except msgspec.ValidationError:
            return None

    def write(self, case: Key | None, on: Key, value: Value) -> None:
        """Keep this value. Raises KernelError where the cache cannot be written."""
        self.change(case, on, lambda _: value)

    def change(self, case: Key | None, on: Key, how: Callable[[Value | None], Value]) -> None:
        """Keep what `how` returns; it is called with the kept value, or None. Raises as `write`."""
        if case is not None:
            self._put(case, on, lambda parts: [Entry(dict(on), how(self._value(parts, on)))])

    def forget(self, case: Key | None, on: Key) -> None:
        """Remove the value of this case and this `on`. Raises as `write`."""
        if case is not None:
            self._put(case, on, lambda parts: [])

    def _put(self, case: Key, on: Key, first: Callable[[Parts], list[Entry]]) -> None:
        def put(parts: Parts | None) -> Parts:
            parts = parts or {}
            others = [entry for entry in parts.get(self.name, []) if entry.on != on]
            return {**parts, self.name: [*first(parts), *others][:MOST_ENTRIES]}

        STORE.change(CASES, case, _PARTS, put)


RUNGS = Part[Choice[str]]("rungs", Choice[str])
PACES = Part[dict[str, dict[str, float]]]("paces", dict[str, dict[str, float]])
"""How many times as long as the fastest each rung took, by batch size (JSON's keys are text)."""


def candidates(
    device: str,
    params: Params,
    precision: str,
    weights_known: bool,
    capability: tuple[int, int] | None = None,
) -> tuple[Rung, ...]:
    """The rungs that can run these params and that an engine may take unless the user names one.

    The order: the best guess of the ladder; then side rungs (those beside the ladder); then the rest of the
    ladder. A side rung whose own estimate is not clearly faster is left out: compiling and timing it would
    be for nothing. () where no rung of the ladder can run them.

    weights_known: whether the weights are constants. capability: compute capability of the CUDA device, such
    as (9, 0) (None: that of the device that is here, if there is one).
    """
    if device == "cuda" and capability is None and (gpu := cuda_driver.device()) is not None:
        capability = gpu.capability

    def able(rung: Rung) -> bool:
        refused = rung.refusal(params, capability) is not None
        return not refused and (device != "cuda" or launched(params, rung)[0] is None)

    ladder = list(filter(able, registry.candidates(device, params.op, precision, weights_known)))
    ladder = [rung for rung in ladder if not params.loses_digits(rung.method)] or ladder
    ladder.sort(key=lambda rung: not rung.suits(params))
    beside = list(filter(able, registry.side_rungs(device, params.op, precision, weights_known)))
    beside = [rung for rung in beside if not params.loses_digits(rung.method)]
    if device == "cuda":
        beside = _promising(params, ladder, beside)
    return (*ladder[:1], *beside, *ladder[1:]) if ladder else ()


@functools.lru_cache(maxsize=4096)
def launched(params: Params, rung: Rung) -> tuple[str | None, float | None]:
    """Whether a CUDA rung could be launched for these params; launches nothing. Returns (why it cannot, or
    None; the microseconds that it is estimated to take, or None). The result is cached, because a plan asks
    several times for every rung."""
    try:
        return None, launch.launch(params, rung).microseconds
    except (KernelError, UnsupportedError) as error:
        return str(error), None


def _promising(params: Params, ladder: Sequence[Rung], beside: Sequence[Rung]) -> list[Rung]:
    """The side rungs (`beside`) without those whose estimate is near the ladder's least, or above it."""
    times = {rung: launched(params, rung)[1] for rung in beside}
    if all(us is None for us in times.values()):
        return [*beside]
    known = [us for rung in ladder if (us := launched(params, rung)[1]) is not None]
    limit = PROMISE * min(known, default=math.inf)
    return [rung for rung, us in times.items() if us is None or us < limit]


def read(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> Choice[str] | None:
    """The choice that is kept for this step, done or not; None where none is kept for just these rungs."""
    return RUNGS.read(of_step(device, params, precision, threads), on_rungs(device, rungs))


def write(
    device: str,
    params: Params,
    precision: str,
    rungs: Sequence[Rung],
    threads: int | None,
    choice: Choice[str],
) -> None:
    """Keep the choice for this step. Raises KernelError where the cache cannot be written."""
    RUNGS.write(of_step(device, params, precision, threads), on_rungs(device, rungs), choice)


def chosen(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> str | None:
    """The name of the fastest right rung by the kept choice. None where none is kept that is done, and where
    there are fewer than two rungs."""
    if len(rungs) < 2:
        return None  # there is nothing to choose, and nothing is read
    choice = read(device, params, precision, rungs, threads)
    if choice is None or not choice.done or choice.best not in [rung.name for rung in rungs]:
        return None
    return choice.best


def time_ns(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> float | None:
    """Nanoseconds a pass of the rung that `chosen` names, as they were measured then. None where it names
    none."""
    choice = read(device, params, precision, rungs, threads) if len(rungs) > 1 else None
    fastest = choice.of(choice.best) if choice is not None and choice.done else None
    return None if fastest is None or fastest.refused else fastest.ns


def nearby(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> dict[str, float]:
    """By rung's name: its time divided by the time of the fastest rung, at another batch size (a pace).

    Taken from the measured batch size that is nearest to that of the params; {} where none is within a factor
    of NEARBY. A rung whose text was changed since is left out. Only a hint which rung to try first.
    """
    known, rows = PACES.read(_one_row_case(device, params, precision, threads), {}), params.rows
    if known is None or not rows:
        return {}
    far = {n: abs(math.log(int(n) / rows)) for n in known if n.isdecimal() and int(n)}
    nearest = min(far, key=lambda n: far[n], default="")
    if not nearest or far[nearest] > math.log(NEARBY) + 1e-9:
        return {}
    names = {_rung_key(device, rung): rung.name for rung in rungs}
    return {names[text]: pace for text, pace in known[nearest].items() if text in names}


def remember(
    device: str,
    params: Params,
    precision: str,
    rungs: Sequence[Rung],
    threads: int | None,
    paces: dict[str, float],
) -> None:
    """Keep these paces (rung's name → time divided by that of the fastest) at the batch size of the params,
    for `nearby`. Raises KernelError where the cache cannot be written."""
    rows = str(params.rows)
    here = {_rung_key(device, rung): paces[rung.name] for rung in rungs if rung.name in paces}

    def joined(known: dict[str, dict[str, float]] | None) -> dict[str, dict[str, float]]:
        others = {n: p for n, p in (known or {}).items() if n != rows}
        return dict([*{rows: here, **others}.items()][:MOST_BATCHES])

    PACES.change(_one_row_case(device, params, precision, threads), {}, joined)


def _rung_key(device: str, rung: Rung) -> str:
    """A rung's name and digest: under it a pace is kept, so that a changed rung does not get the old one."""
    return f"{rung.name} {digest(device, (rung.source,))}"


def _one_row_case(device: str, params: Params, precision: str, threads: int | None) -> Key | None:
    """The case of this step with one row: its file keeps what holds for all batch sizes. None for params
    without rows, and for a device that is not there."""
    return of_step(device, params.of_rows(1), precision, threads) if params.rows else None


def of_step(device: str, params: Params, precision: str, threads: int | None = None) -> Key | None:
    """The key of a step's case; None for a device that is not there."""
    machine_key = machine(device, threads)
    return machine_key and {**machine_key, "params": encoded(params), "precision": precision}


def of_plan(plan: Plan) -> Key | None:
    """The key of a whole plan's case; None for a device that is not there. Plans with the same steps have the
    same case, whatever their tensors are called."""
    machine_key = machine(plan.device, None)
    steps = " ".join(encoded(step.params) for step in plan.steps)
    return machine_key and {
        **machine_key,
        "steps": steps,
        "batch": str(plan.batch),
        "precision": " ".join(step.asked for step in plan.steps) if plan.mixed else plan.precision,
    }


def on_rungs(device: str, rungs: Sequence[Rung]) -> dict[str, str]:
    """What a choice among these rungs depends on: their names and a digest of their texts."""
    return {
        "rungs": ", ".join(rung.name for rung in rungs),
        "sources": digest(device, tuple(rung.source for rung in rungs)),
    }


def encoded(params: Params) -> str:
    """Params as the JSON text that stands in a key."""
    return msgspec.json.encode({"op": params.op, **asdict(params)}).decode()


def machine(device: str, threads: int | None) -> dict[str, str] | None:
    """The part of a key that says on which machine a time was measured; None for a device that is not
    there."""
    if device == "cpu":
        cores = str(threads or host.physical_cores())
        return {"device": host.cpu_name(), "threads": cores, "numpy": np.__version__}
    gpu = cuda_driver.device()
    if gpu is None:
        return None
    return {"device": gpu.name, "compute_capability": f"{gpu.capability[0]}.{gpu.capability[1]}"}


@functools.lru_cache(maxsize=1024)
def digest(device: str, sources: tuple[str, ...]) -> str:
    """A digest (32 hexadecimal digits) of these kernels' texts, and of the files that all rungs of the device
    share."""
    hashed = hashlib.sha256(_shared(device))
    for source in sources:
        hashed.update(source.encode() + b"\0")
    return hashed.hexdigest()[:32]


@functools.cache
def _shared(device: str) -> bytes:
    """A digest of the files that all rungs of a device stand on, as they were when the process began."""
    digest = hashlib.sha256()
    for pattern in _SHARED[device]:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()
