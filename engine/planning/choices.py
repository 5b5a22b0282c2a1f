"""Which rung of ours is the fastest right one for some params on this machine: timed once, and kept.

An entry is found by device, params, precision and by the text of every rung that could be taken, so that a
changed kernel is timed anew.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict

import msgspec
import numpy as np

from engine import tuned_store
from engine.machine import driver as cuda_driver
from engine.machine import host
from engine.tuned_store import Key
from kernels import launch, registry
from kernels.errors import KernelError, UnsupportedError
from kernels.ops import Params
from kernels.registry import ROOT, Rung

KIND = "rungs"
PACES = "paces"  # of rungs at other batch sizes
MOST_BATCHES = 32  # of which those are kept
NEARBY = 4.0  # a batch size so many times as large or small says something of this one
PROMISE = 0.9  # of the ladder's least time: estimates are hardly right to less than a tenth
# What else than its own file makes a rung's time: headers, launch shapes, how work is divided.
_SHARED = {
    "cuda": ("cuda/*.cuh", "launch/*.py", "estimates/*.py", "packing*.py"),
    "cpu": ("cpu/*.py", "ops/*.py"),
}


class TriedRung(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rung that was looked at: a pass by the short first look (first_ns), the median among the best,
    interleaved (time_ns), or why it was not timed, or no further."""

    rung: str
    first_ns: float | None = None
    time_ns: float | None = None
    refused: str = ""


class Choice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of the rungs for some params. rung: the one to take, "" until `done`; ladder: the one that
    would be taken untimed; trying, attempts: the rung that the process was at, and how often."""

    ladder: str
    rung: str = ""
    tried: tuple[TriedRung, ...] = ()
    trying: str = ""
    attempts: int = 0
    done: bool = False
    timed_at: str = ""

    def of(self, rung: str) -> TriedRung | None:
        """What came of a rung."""
        return next((t for t in self.tried if t.rung == rung), None)


class Paces(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as long as the fastest each rung took, by batch size (JSON's keys are text): which to
    try first at another."""

    at: dict[str, dict[str, float]]


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
    beside = list(filter(able, registry.beside(device, params.op, precision, weights_known)))
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
) -> Choice | None:
    """What is kept for these params, done or not. rungs: their candidates."""
    key = key_of(device, params, precision, rungs, threads)
    return None if key is None else tuned_store.read(KIND, key, Choice)


def write(
    device: str,
    params: Params,
    precision: str,
    rungs: Sequence[Rung],
    threads: int | None,
    choice: Choice,
) -> None:
    """Keep it. Raises KernelError where the cache cannot be written; nothing is kept of a device that has no
    name."""
    key = key_of(device, params, precision, rungs, threads)
    if key is not None:
        tuned_store.write(KIND, key, choice)


def chosen(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> str | None:
    """The rung that was timed to be the fastest, if one was."""
    if len(rungs) < 2:
        return None  # there is nothing to choose, and nothing is read
    choice = read(device, params, precision, rungs, threads)
    if choice is None or not choice.done or choice.rung not in [rung.name for rung in rungs]:
        return None
    return choice.rung


def time_ns(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> float | None:
    """Nanoseconds of the rung that was timed to be the fastest; None where none was, or where there was
    nothing to choose."""
    choice = read(device, params, precision, rungs, threads) if len(rungs) > 1 else None
    taken = choice.of(choice.rung) if choice is not None and choice.done else None
    return None if taken is None or taken.refused else taken.time_ns or taken.first_ns


def nearby(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> dict[str, float]:
    """How many times as long as the fastest each of these rungs took, as they are now, at the batch size
    nearest to that of the params; nothing where none is near. A hint of what to try first and no more."""
    key, rows = _pace_key(device, params, precision, threads), params.rows
    known = None if key is None else tuned_store.read(PACES, key, Paces)
    if known is None or not rows:
        return {}
    far = {n: abs(math.log(int(n) / rows)) for n in known.at if n.isdecimal() and int(n)}
    nearest = min(far, key=lambda n: far[n], default="")
    if not nearest or far[nearest] > math.log(NEARBY) + 1e-9:
        return {}
    names = {_text(device, rung): rung.name for rung in rungs}
    return {names[text]: pace for text, pace in known.at[nearest].items() if text in names}


def remember(
    device: str,
    params: Params,
    precision: str,
    rungs: Sequence[Rung],
    threads: int | None,
    paces: dict[str, float],
) -> None:
    """Keep them for `nearby`, by the rungs' names. Raises KernelError where the cache cannot be written."""
    key, rows = _pace_key(device, params, precision, threads), params.rows
    if key is None or not rows:
        return
    known = tuned_store.read(PACES, key, Paces)
    others = {} if known is None else {n: p for n, p in known.at.items() if n != str(rows)}
    here = {_text(device, rung): paces[rung.name] for rung in rungs if rung.name in paces}
    at = {str(rows): here, **others}
    tuned_store.write(PACES, key, Paces(at=dict([*at.items()][:MOST_BATCHES])))


def _text(device: str, rung: Rung) -> str:
    """A rung as it is now: one that was changed may be faster."""
    return f"{rung.name} {digest(device, (rung.source,))}"


def _pace_key(device: str, params: Params, precision: str, threads: int | None) -> Key | None:
    found = machine(device, threads)
    if found is None or params.rows is None:
        return None
    return {**found, "params": encoded(params.of_rows(1)), "precision": precision}


def key_of(
    device: str, params: Params, precision: str, rungs: Sequence[Rung], threads: int | None = None
) -> Key | None:
    """What a choice holds for; None for a device that is not there."""
    found = machine(device, threads)
    if found is None:
        return None
    return {
        **found,
        "params": encoded(params),
        "precision": precision,
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
    made = hashlib.sha256(_shared(device))
    for source in sources:
        made.update(source.encode() + b"\0")
    return made.hexdigest()[:32]


@functools.cache
def _shared(device: str) -> bytes:
    """A digest of the files that all rungs of a device stand on, as they were when the process began."""
    digest = hashlib.sha256()
    for pattern in _SHARED[device]:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()
