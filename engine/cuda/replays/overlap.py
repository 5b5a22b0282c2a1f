"""Launches that may begin while the kernel before them ends: CUDA's programmatic dependent launch.

For rungs whose header says `overlaps = true`: their kernels wait by themselves, on the device, for what the
kernel before them wrote (kernels/cuda/overlap.cuh), so that their start and the reading of weights cost no
time. This needs compute capability 9.0. CuPy has no such launch, so the driver is called by cuda.bindings.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from engine.cuda.stream import Stream
from kernels.launch import Stage

Begun = frozenset[int]  # the steps of a plan that begin early
_ROUNDS = 2  # what one step gains may depend on those beside it
GAIN = 0.005  # of a pass, below which a difference is noise
LONG_NS = 2_000_000  # a pass so long that a few µs at its kernels' starts do not show
_TRAIN_NS = 500_000  # passes in a row last about so long
_BESIDE = 5  # rounds of ways to replay that are measured beside each other
T = TypeVar("T")
_TYPES: dict[type, type[Any]] = {
    np.uint64: ctypes.c_uint64,
    np.int64: ctypes.c_int64,
    np.int32: ctypes.c_int32,
    np.float32: ctypes.c_float,
}


def overlapping(cupy: Any, kernel: Any, stage: Stage, arguments: Sequence[Any]) -> Callable[[], None]:
    """A function that starts this stage on the current stream and lets it begin early. kernel: a
    cupy.RawKernel. The function raises RuntimeError with CUDA's name of the error."""
    from cuda.bindings import driver

    argument_block = _Arguments(arguments)
    function = driver.CUfunction(int(kernel.kernel.ptr))
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = stage.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = stage.block
    config.sharedMemBytes = stage.shared_nbytes
    config.attrs, config.numAttrs = [attribute], 1

    def start() -> None:
        config.hStream = driver.CUstream(int(cupy.cuda.get_current_stream().ptr))
        (result,) = driver.cuLaunchKernelEx(config, function, argument_block.address, 0)
        if result != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{driver.CUresult(result).name} when {stage.function} was launched")

    return start


def fastest(can: Sequence[int], time: Callable[..., Sequence[float]]) -> Begun:
    """Which of the steps `can` should begin early. time(way, other): measures two ways in turns, in the same
    unit. Hill climbing from two ends, no step and all steps: each step in turn is switched, and stays so if
    that is faster. The better result of both ends is taken, because the gain of one step depends on the
    others."""
    if not can:
        return frozenset()
    ends = [_climbed(start, can, time) for start in (frozenset[int](), frozenset(can))]
    return ends[0] if ends[0] == ends[1] else _better(ends[0], ends[1], time)


def _climbed(best: Begun, can: Sequence[int], time: Callable[..., Sequence[float]]) -> Begun:
    for _ in range(_ROUNDS):
        before = best
        for step in can:
            best = _better(best, best ^ {step}, time)
        if best == before:
            break
    return best


def with_early(plain: Sequence[T], early: Sequence[T], begun: Begun) -> list[T]:
    """The launches of a pass, where the steps in `begun` begin early."""
    return [early[i] if i in begun else call for i, call in enumerate(plain)]


def fastest_graph(
    stream: Stream,
    plain: Sequence[T],
    early: Sequence[T],
    graph: Any,
    capture: Callable[[list[T]], Any],
    known: Begun | None = None,
) -> tuple[Begun, Any]:
    """Which steps begin early in the fastest replay, and its CUDA graph. A block that waits takes room on the
    device, so only trying shows whether a step gains. plain, early: the launches of every step, the same
    object where it cannot begin early; graph: of the plain launches; capture: makes a graph, None where that
    fails; known: the result of an earlier trial."""
    can = [i for i, (one, other) in enumerate(zip(plain, early, strict=True)) if other is not one]
    graphs: dict[Begun, Any] = {frozenset(): graph}
    if known is not None and known <= set(can):
        early_graph = capture(with_early(plain, early, known)) if known else graph
        if early_graph is not None:
            return known, early_graph
    if replay_ns(stream, graph) > LONG_NS:
        return frozenset(), graph

    def measured(*ways: Begun) -> list[float]:
        for begun in ways:
            if begun not in graphs:
                graphs[begun] = capture(with_early(plain, early, begun))
        return alternating_ns(stream, [graphs[begun] for begun in ways])

    begun = fastest(can, measured)
    return begun, graphs[begun]


def replay_ns(stream: Stream, graph: Any, count: int = 1) -> float:
    """Nanoseconds of `count` replays: the least of three measurements."""

    def work() -> None:
        for _ in range(count):
            graph.launch(stream.on)

    return min(stream.elapsed_ns(work) for _ in range(3 if count == 1 else 1))


def alternating_ns(stream: Stream, graphs: Sequence[Any]) -> list[float]:
    """For each graph the time of some replays in a row, measured in turns, all in one unit; infinite for
    None. The first graph must not be None."""
    count = math.ceil(_TRAIN_NS / replay_ns(stream, graphs[0])) if graphs[0] is not None else 1
    rounds = [
        [replay_ns(stream, graph, count) if graph is not None else math.inf for graph in graphs]
        for _ in range(_BESIDE)
    ]
    return [min(column) for column in zip(*rounds, strict=True)]


def _better(known: Begun, other: Begun, time: Callable[..., Sequence[float]]) -> Begun:
    was, now = time(known, other)
    return other if now < (1 - GAIN) * was else known


class _Arguments:
    """A kernel's arguments in memory; address: of the pointers to them, as the driver takes them."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        # A struct is an array of one element, which lies as it is to be passed.
        self._values = [v if isinstance(v, np.ndarray) else _TYPES[type(v)](v.item()) for v in arguments]
        places = [v.ctypes.data if isinstance(v, np.ndarray) else ctypes.addressof(v) for v in self._values]
        self._pointers = (ctypes.c_void_p * len(places))(*places)
        self.address = ctypes.addressof(self._pointers)
