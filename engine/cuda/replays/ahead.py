"""Weights fetched into the cache ahead of their steps, by a kernel beside the first steps of a pass.

A pass of few images is a chain of small kernels that leave the memory idle, and then of products that nothing
but their weights bounds. Of those it is fetched from the start of a pass on what the cache can hold. How much
of it pays, and how fast it is asked for, is a machine's and a plan's own: it is timed, and nothing is fetched
where that gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.cuda.calls import Call
from engine.cuda.replays import overlap
from engine.cuda.runtime import Staging
from engine.cuda.stream import Stream
from engine.cuda.weights import Constant
from engine.graph.plan import Plan
from engine.planning.early import Fetched
from kernels import nvrtc, registry

FUNCTION = "ahead"
STRIDE = 16 << 10  # of what is fetched in part, so many bytes share the same part
GRAIN = 256  # parts are a multiple of it
LEAST_NBYTES = 8 << 20  # of all weights, below which they lie in the cache from pass to pass
_SHARES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75)  # of the cache
_RATES = (0.75e12, 1.5e12)  # bytes a second that are asked for at most; at once as well
_BLOCKS, _THREADS = 8, 32
_ROUNDS = 2  # measured so often, and the better time of each counts

Range = tuple[int, int]  # address and bytes


def in_order(
    plan: Plan,
    packed: Sequence[Mapping[int, Constant]],
    constants: Mapping[Constant, np.ndarray],
    pointers: Mapping[Constant, int],
) -> list[Range]:
    """Where the weights lie, in the order in which the steps first read them."""
    found: dict[Constant, Range] = {}
    for step, given in zip(plan.steps, packed, strict=True):
        for i, name in enumerate(step.inputs):
            key: Constant = given.get(i, plan.holder(name))
            if key in constants:
                found.setdefault(key, (pointers[key], constants[key].nbytes))
    return list(found.values())


def rows(ranges: Sequence[Range], nbytes: int) -> list[tuple[int, int, int]]:
    """What ahead.cu takes to fetch so many bytes of these, first ones first: address, bytes, and how many of
    every STRIDE. Of the range that is too large for what is left every stretch is fetched in part, so that
    all blocks of its kernel find their share."""
    found, left = [], nbytes
    for address, size in ranges:
        part = STRIDE if size <= left else left * STRIDE // size // GRAIN * GRAIN
        if not part:
            break
        found.append((address, size, part))
        left -= size
        if left <= 0:
            break
    return found


def worth(ranges: Sequence[Range], cache_nbytes: int) -> Iterator[Fetched]:
    """What is worth trying: so much, at such a pace."""
    whole = sum(size for _, size in ranges)
    for share in _SHARES:
        nbytes = int(share * cache_nbytes)
        if nbytes < whole:
            yield from (Fetched(nbytes=nbytes, pause_ns=pause) for pause in (0, *map(_pause, _RATES)))


def _pause(rate: float) -> int:
    return round(1e9 * _BLOCKS * _THREADS * STRIDE / rate)


class Ahead:
    """Of one session: the kernel, and a stream beside its own."""

    def __init__(self, cupy: Any, pool: Any, stream: Stream, staging: Staging, arch: str) -> None:
        self._cupy, self._pool, self._stream, self._staging = cupy, pool, stream, staging
        module = cupy.RawModule(path=str(nvrtc.compile_rung(source(), arch)))
        self._kernel = module.get_function(FUNCTION)
        self._beside = cupy.cuda.Stream(non_blocking=True)
        self._held: list[Any] = [module]

    def with_it(self, calls: Sequence[Call], ranges: Sequence[Range], how: Fetched) -> list[Call]:
        """A pass that begins with fetching and has ended when that has, too."""
        table = np.array(rows(ranges, how.nbytes), np.uint64)
        memory = self._pool.malloc(max(table.nbytes, 1))
        self._staging.upload(table, int(memory.ptr))
        self._stream.synchronize()
        began, ended = (self._cupy.cuda.Event(disable_timing=True) for _ in range(2))
        self._held += [memory, began, ended]
        arguments = (np.uint64(int(memory.ptr)), np.int32(len(table)), np.int32(how.pause_ns))

        def fetch() -> None:
            began.record(self._cupy.cuda.get_current_stream())
            self._beside.wait_event(began)
            with self._beside:
                self._kernel((_BLOCKS,), (_THREADS,), arguments)
            ended.record(self._beside)

        def join() -> None:
            self._cupy.cuda.get_current_stream().wait_event(ended)

        return [Call((fetch,)), *calls, Call((join,))]


def replayed(
    stream: Stream,
    calls: Sequence[Call],
    graph: Any,
    made: Callable[[Fetched], list[Call]],
    capture: Callable[[Sequence[Call]], Any],
    tried: Sequence[Fetched],
    known: Fetched | None = None,
) -> tuple[Fetched, list[Call], Any]:
    """How much is fetched in the fastest replay, its calls and its graph. calls, graph: without; made: calls
    with it; capture: as a graph, None where that fails; known: what trying has told before."""
    nothing = Fetched(), list(calls), graph
    if known is not None:
        if known.nbytes:
            with_it = made(known)
            if (found := capture(with_it)) is not None:
                return known, with_it, found
        return nothing
    if overlap.replay_ns(stream, graph) > overlap.LONG_NS:
        return nothing
    ways = [(how, made(how)) for how in tried]
    # Twice in a row, as trains of passes have them: a graph that cannot be had so is no way to replay.
    pairs = [capture([*calls, *calls]), *(capture([*way, *way]) for _, way in ways)]
    if pairs[0] is None:
        return nothing
    times = [
        min(times) for times in zip(*(overlap.beside(stream, pairs) for _ in range(_ROUNDS)), strict=True)
    ]
    best = min(range(len(times)), key=times.__getitem__)
    if best == 0 or times[best] > (1 - overlap.GAIN) * times[0]:
        return nothing
    how, with_it = ways[best - 1]
    found = capture(with_it)
    return nothing if found is None else (how, with_it, found)


def source() -> registry.Rung:
    """The kernel, for the compiler."""
    return registry.code(Path(__file__).parent / "ahead.cu", FUNCTION, STRIDE=STRIDE)
