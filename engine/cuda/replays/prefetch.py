"""Weights that a later step streams, on their way into the device's cache from the start of a pass.

A small batch of a net with large products waits for their weights, which come at the memory's rate, and while
its first layers compute the memory has next to nothing to do. One launch in front of them (prefetch.cu) asks
for as much of the first large weights as the cache may hold; whether that is worth it, and how much of it,
only trying tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.cuda.replays import overlap
from engine.cuda.runtime import capability_of
from engine.cuda.stream import Stream
from engine.cuda.weights import Constant
from engine.graph.plan import Plan, Step
from kernels import nvrtc, registry

NAME = "prefetch"
SHARES = (0.25, 0.5, 0.75)  # of the cache
LARGE = 0.25  # of the cache, weights that are worth it
_BLOCK, _PIECE, _MOST_BLOCKS = 128, 8192, 132
_MULTIPLE = 16  # bytes that one instruction fetches are a multiple of these


@dataclass(frozen=True)
class Streamed:
    """The first step behind others that reads large weights: which step, where they lie, how long."""

    index: int
    pointer: int
    nbytes: int


@dataclass(frozen=True)
class Taken:
    """What is fetched: `start` puts the launch on the current stream."""

    step: Step
    nbytes: int
    start: Callable[[], None]

    @property
    def words(self) -> str:
        return f"{self.nbytes / 2**20:.0f} MiB of the weights of {self.step.name}, from the start of a pass"


def streamed(
    plan: Plan,
    packed: Sequence[Mapping[int, Constant]],
    constants: Mapping[Constant, np.ndarray],
    pointers: Mapping[Constant, int],
    cache_nbytes: int,
) -> Streamed | None:
    """None where no step but the first has such weights. packed, constants, pointers: as engine.cuda.weights
    and the session have them."""
    for index, step in enumerate(plan.steps):
        if index == 0:
            continue
        for place, name in enumerate(step.inputs):
            key = packed[index].get(place, plan.holder(name))
            if key in constants and constants[key].nbytes >= LARGE * cache_nbytes:
                return Streamed(index, pointers[key], constants[key].nbytes)
    return None


def tried(
    cupy: Any,
    stream: Stream,
    plan: Plan,
    found: Streamed,
    cache_nbytes: int,
    graph: Any,
    capture: Callable[[Callable[[], None]], Any],
) -> tuple[Taken, Any] | None:
    """The fastest replay that fetches, and what it fetches; None where none is faster. graph: a pass without;
    capture: one with this launch in front of it as a graph, None where that fails."""
    if overlap.replay_ns(stream, graph) > overlap.LONG_NS:
        return None
    digits = "".join(map(str, capability_of(cupy)))
    module = cupy.RawModule(path=str(nvrtc.compile_rung(source(), f"sm_{digits}")))
    kernel = module.get_function(NAME)
    ways: list[tuple[Taken | None, Any]] = [(None, graph)]
    for nbytes in sorted({_multiple(min(found.nbytes, share * cache_nbytes)) for share in SHARES}):
        grid = (min(_MOST_BLOCKS, math.ceil(nbytes / (_BLOCK * _PIECE))), 1, 1)
        arguments = np.uint64(found.pointer), np.uint64(nbytes)
        start = partial(kernel, grid, (_BLOCK, 1, 1), arguments)
        if (made := capture(start)) is not None:
            ways.append((Taken(plan.steps[found.index], nbytes, start), made))
    times = overlap.beside(stream, [made for _, made in ways])
    best = min(range(len(ways)), key=times.__getitem__)
    taken, made = ways[best]
    if taken is None or times[best] >= (1 - overlap.GAIN) * times[0]:
        return None
    return taken, made


def _multiple(nbytes: float) -> int:
    return int(nbytes) // _MULTIPLE * _MULTIPLE


@lru_cache(maxsize=1)
def source() -> registry.Rung:
    """The kernel, for the compiler."""
    return registry.code(Path(__file__).parent / "prefetch.cu", NAME)
