"""What was chosen on this machine, by whom and why: one file of the user's cache for each case.

A case is a step (its params) or a net (the params of its steps, or the model's content) on a device, at one
batch size, in one precision. Its file has these parts:

    part       what it says                                             who measures it
    rungs      the rung of a step: `Choice`                             bench.measure.tuned.rungs
    paces      how fast the rungs were at other batch sizes: a hint     the same
    defines    the values of what a rung's header lists under [tune]    bench.measure.ladder.tuning
    layouts    how a plan's tensors travel, and the rungs for that      bench.measure.tuned.layouts
    nets       which steps are one kernel                               engine.cuda.replays.one_kernel
    early      which steps begin before the one in front has ended      engine.cuda.replays.overlap
    reference  the configuration of ONNX Runtime: `Choice`              bench.measure.tuned.reference
    errors     the layer errors of a reference                          bench.measure.answers.kept_errors
    oracle     that the float64 answers agree with ONNX Runtime's       bench.measure.answers.cross_check

An entry of a part names what it stands on: the texts of every rung that could be taken, so that a changed
kernel is timed anew. Each choice has all variants that were tried, with their times or why they have none.
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
    """One variant that was tried.

    refused: why it was not timed, or no further ("": it was). first_ns: a pass by the short first look;
    time_ns: the median among the best, interleaved. strict: whether all of its parts are right, too (None:
    not looked at). Of a whole model: error, the relative L2 of its output against float64; layer,
    layer_error: the group that is furthest off when it is fed right inputs, at the case's batch; within:
    whether the output is within the precision's bound, in the first session. doubt: how it was wrong in a
    later session though all of that was right ("": it was not): what a session chooses as it is created,
    another may not.
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
        """Nanoseconds a pass, by the longest look there was."""
        return self.time_ns or self.first_ns

    @property
    def eligible(self) -> bool | None:
        """Whether it may be the best, as far as it was looked at (None: its parts were not)."""
        if self.refused or self.first_ns is None or self.within is False or self.doubt:
            return False
        return self.strict


class Choice(msgspec.Struct, Generic[V], frozen=True, kw_only=True, omit_defaults=True):
    """What came of the variants of a case, under way or done. default: what is taken unmeasured; best: the
    fastest that is right; lenient: the fastest that gives an answer at all, by the loosest bound (None: there
    is none). trying, attempts: the variant that the process was at when this was written, and how often."""

    default: V
    tried: tuple[Tried[V], ...] = ()
    best: V | None = None
    lenient: V | None = None
    trying: V | None = None
    attempts: int = 0
    done: bool = False
    chosen_at: str = ""

    def of(self, variant: V | None) -> Tried[V] | None:
        """What came of a variant."""
        return next((t for t in self.tried if t.variant == variant), None)

    @property
    def ranked(self) -> list[Tried[V]]:
        """Those that were not refused, the fastest first. Where the best by the first look was timed, only
        what was timed with it counts; else it was the best by far."""
        right = [t for t in self.tried if not t.refused and t.first_ns is not None]
        timed = [t for t in right if t.time_ns is not None]
        if min(right, key=lambda t: t.first_ns or 0.0, default=None) not in timed:
            timed = right
        return sorted(timed, key=lambda t: t.ns or 0.0)

    @property
    def unfinished(self) -> bool:
        """Whether to go on with it may find a winner: it is not done, or its best came to be doubted while
        there are others that were not looked at."""
        lost = self.best is None and any(tried.doubt for tried in self.tried)
        return not self.done or (lost and any(tried.eligible is None for tried in self.tried))

    def without(self, variant: V, reason: str, strict: bool) -> Choice[V]:
        """The choice after a variant came wrong in a case: what is next best by the times that there are wins
        in its place, where anything does. strict: it was wrong by the precision's own bound, and may still be
        right by the loosest."""
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
    """What stands in a part of a case's file, and what it stands on."""

    on: dict[str, str]
    value: Any


Parts = dict[str, list[Entry]]
_PARTS: type[Parts] = dict[str, list[Entry]]


@dataclass(frozen=True)
class Part(Generic[Value]):
    """One part of the files of cases. of: the type of its entries. Nothing is kept of no case: of a device
    that is not there."""

    name: str
    of: Any

    def read(self, case: Key | None, on: Key) -> Value | None:
        """What is kept for this case and stands on this; None where nothing is that can be read."""
        parts = STORE.read(CASES, case, _PARTS) if case is not None else None
        return self._of(parts or {}, on)

    def _of(self, parts: Parts, on: Key) -> Value | None:
        entries = parts.get(self.name, [])
        entry_found = next((entry for entry in entries if entry.on == on), None)
        try:
            return None if entry_found is None else msgspec.convert(entry_found.value, self.of)
        except msgspec.ValidationError:
            return None

    def write(self, case: Key | None, on: Key, value: Value) -> None:
        """Keep it. Raises KernelError where the cache cannot be written."""
        self.change(case, on, lambda _: value)

    def change(self, case: Key | None, on: Key, how: Callable[[Value | None], Value]) -> None:
        """Keep what `how` makes of what is kept. Raises KernelError as `write`."""
        if case is not None:
            self._put(case, on, lambda parts: [Entry(dict(on), how(self._of(parts, on)))])

    def forget(self, case: Key | None, on: Key) -> None:
        """Keep nothing of it."""
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
    """The rungs that an engine may take for these params of its own accord: the best guess first, then those
    beside the ladder, then the rest of it. One beside the ladder that promises nothing by its own estimate is
    left out: it would be compiled and timed for nothing. capability: of the CUDA device (None: the one that
    is here, if one is)."""
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
    """Why a CUDA rung cannot be launched for some params (None: it can), and the microseconds that it should
    take, where there is an estimate. Worked out once: a plan asks of every rung several times."""
    try:
        return None, launch.launch(params, rung).microseconds
    except (KernelError, UnsupportedError) as error:
        return str(error), None


def _promising(params: Params, ladder: Sequence[Rung], beside: Sequence[Rung]) -> list[Rung]:
    """Those beside the ladder, less whose estimate is near the ladder's least or above it."""
    times = {rung: launched(params, rung)[1] for rung in beside}
    if all(us is None for us in times.values()):
        return [*beside]
    known = [us for rung in ladder if (us := launched(params, rung)[1]) is not None]
    limit = PROMISE * min(known, default=math.inf)
    return [rung for rung, us in times.items() if us is None or us < limit]


def read(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> Choice[str] | None:
    """What is kept for these params, done or not. rungs: their candidates."""
    return RUNGS.read(of_step(device, params, precision, threads), on_rungs(device, rungs))


def write(
    device: str,
    params: Params,
    precision: str,
    rungs: Sequence[Rung],
    threads: int | None,
    choice: Choice[str],
) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    RUNGS.write(of_step(device, params, precision, threads), on_rungs(device, rungs), choice)


def chosen(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> str | None:
    """The rung that was timed to be the fastest right one, if one was."""
    if len(rungs) < 2:
        return None  # there is nothing to choose, and nothing is read
    choice = read(device, params, precision, rungs, threads)
    if choice is None or not choice.done or choice.best not in [rung.name for rung in rungs]:
        return None
    return choice.best


def time_ns(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> float | None:
    """Nanoseconds of the rung that was timed to be the fastest; None where none was, or where there was
    nothing to choose."""
    choice = read(device, params, precision, rungs, threads) if len(rungs) > 1 else None
    fastest = choice.of(choice.best) if choice is not None and choice.done else None
    return None if fastest is None or fastest.refused else fastest.ns


def nearby(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> dict[str, float]:
    """How many times as long as the fastest each of these rungs took, as they are now, at the batch size
    nearest to that of the params; nothing where none is near. A hint of what to try first and no more."""
    known, rows = PACES.read(_any_batch(device, params, precision, threads), {}), params.rows
    if known is None or not rows:
        return {}
    far = {n: abs(math.log(int(n) / rows)) for n in known if n.isdecimal() and int(n)}
    nearest = min(far, key=lambda n: far[n], default="")
    if not nearest or far[nearest] > math.log(NEARBY) + 1e-9:
        return {}
    names = {_text(device, rung): rung.name for rung in rungs}
    return {names[text]: pace for text, pace in known[nearest].items() if text in names}


def remember(
    device: str,
    params: Params,
    precision: str,
    rungs: Sequence[Rung],
    threads: int | None,
    paces: dict[str, float],
) -> None:
    """Keep them for `nearby`, by the rungs' names. Raises KernelError where the cache cannot be written."""
    rows = str(params.rows)
    here = {_text(device, rung): paces[rung.name] for rung in rungs if rung.name in paces}

    def joined(known: dict[str, dict[str, float]] | None) -> dict[str, dict[str, float]]:
        others = {n: p for n, p in (known or {}).items() if n != rows}
        return dict([*{rows: here, **others}.items()][:MOST_BATCHES])

    PACES.change(_any_batch(device, params, precision, threads), {}, joined)


def _text(device: str, rung: Rung) -> str:
    """A rung as it is now: one that was changed may be faster."""
    return f"{rung.name} {digest(device, (rung.source,))}"


def _any_batch(device: str, params: Params, precision: str, threads: int | None) -> Key | None:
    """The case of one row, whose file has what is known of a step at all batch sizes; None of params that
    have no rows."""
    return of_step(device, params.of_rows(1), precision, threads) if params.rows else None


def of_step(device: str, params: Params, precision: str, threads: int | None = None) -> Key | None:
    """The case of a step; None on a device that is not there, as in `of_plan`."""
    machine_key = machine(device, threads)
    return machine_key and {**machine_key, "params": encoded(params), "precision": precision}


def of_plan(plan: Plan) -> Key | None:
    """The case of a whole plan: of all that have the same steps, whatever their tensors are called."""
    machine_key = machine(plan.device, None)
    steps = " ".join(encoded(step.params) for step in plan.steps)
    return machine_key and {
        **machine_key,
        "steps": steps,
        "batch": str(plan.batch),
        "precision": plan.precision,
    }


def on_rungs(device: str, rungs: Sequence[Rung]) -> dict[str, str]:
    """What a choice among these stands on."""
    return {
        "rungs": ", ".join(rung.name for rung in rungs),
        "sources": digest(device, tuple(rung.source for rung in rungs)),
    }


def encoded(params: Params) -> str:
    """Params as they are in a key."""
    return msgspec.json.encode({"op": params.op, **asdict(params)}).decode()


def machine(device: str, threads: int | None) -> dict[str, str] | None:
    """What a time holds for; None for a device that is not there."""
    if device == "cpu":
        cores = str(threads or host.physical_cores())
        return {"device": host.cpu_name(), "threads": cores, "numpy": np.__version__}
    gpu = cuda_driver.device()
    if gpu is None:
        return None
    return {"device": gpu.name, "compute_capability": f"{gpu.capability[0]}.{gpu.capability[1]}"}


@functools.lru_cache(maxsize=1024)
def digest(device: str, sources: tuple[str, ...]) -> str:
    """Of kernels' texts and what they stand on."""
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
