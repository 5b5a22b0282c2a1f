"""A run of a plan's steps as one kernel, where that was timed to be faster than their kernels one by one.

What lies between the steps stays in shared memory (kernels.net). Which way of sharing the work out is the
fastest, and whether any of them is faster than the kernels one by one in a CUDA graph, is tried once on a
machine and kept (engine.planning.runs); an answer that differs is never taken.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.cuda import overlap
from engine.cuda.stages import kernel_of, launching
from engine.cuda.stream import Stream
from engine.graph.plan import Plan, Step
from engine.machine import host
from engine.planning import runs
from engine.planning.runs import Run, Timed
from kernels import nvrtc
from kernels.errors import KernelError, KernelscopeError
from kernels.net.plan import Way, block_nbytes, room, ways
from kernels.net.text import FILE, FUNCTION, OneKernel, one_kernel

GAIN = 0.02  # of a pass, below which a difference is noise
# How far two right answers of a precision may be from each other, relative to their norm.
ALIKE = {"fp32": 1e-4, "fp32-tc": 1e-4, "tf32": 0.02, "fp16": 0.02}
_LONG_NS = 20_000_000  # a pass of so many images that nothing is gained by trying
_TRAIN_NS = 300_000
_ROUNDS = 5
_STAMPED = 9  # passes whose steps are told apart
_DRAWN = 1 << 20  # values of an input that are drawn; more are these again


@dataclass(frozen=True)
class Taken:
    """A run as one kernel, ready: `start` puts it on the current stream. stamps(): a pass of the same kernel
    with clock stamps, which are returned. held: its weights on the device."""

    run: Run
    kernel: OneKernel
    start: Callable[[], None]
    stamps: Callable[[], np.ndarray]
    held: Any = field(repr=False)

    @property
    def words(self) -> str:
        return f"{len(self.run.steps)} steps as one in fp32 ({self.kernel.way.words})"

    def starts(self, calls: Sequence[Callable[[], None]]) -> list[Callable[[], None]]:
        """What starts the steps of a pass, the one kernel in the place of its own."""
        return [*calls[: self.run.start], self.start, *calls[self.run.end :]]

    def shares(self) -> list[float] | None:
        """Of the kernel's time, what each step of the run takes in its first block, the reading of images and
        weights being the first step's; None where that cannot be had."""
        try:
            passes = np.array([np.diff(self.stamps()) for _ in range(_STAMPED)])
        except (KernelscopeError, RuntimeError, LookupError):
            return None
        taken = np.zeros(len(self.run.steps))
        for layer, cycles in zip(self.run.layers, np.median(passes, axis=0)[1:], strict=True):
            taken[layer.step] += cycles
        taken[0] += np.median(passes[:, 0])
        return (taken / taken.sum()).tolist() if (taken >= 0).all() and taken.sum() > 0 else None

    def order(self, steps: Sequence[Step], order: Callable[[Step], Sequence[tuple[Step, str]]]) -> list[Any]:
        """What a pass puts on the device: the one kernel between the steps before and behind it."""
        first = self.run.steps[0]
        whole = Step(
            first.name, self.run.nodes, first.params, first.inputs, self.run.steps[-1].output, FILE.stem
        )
        found = [item for step in steps[: self.run.start] for item in order(step)]
        found.append((whole, FUNCTION))
        return found + [item for step in steps[self.run.end :] for item in order(step)]


@dataclass
class Trial:
    """A session's plan, its stream, where its tensors lie and what it needs to try one kernel for a run.

    upload(array, address), download(address, array); fetch(): the outputs by name; capture(work): as a CUDA
    graph, None where that does not work; early: whether a kernel may begin before the one in front has
    ended."""

    cupy: Any
    pool: Any
    stream: Stream
    plan: Plan
    capability: tuple[int, int]
    pointer: Callable[[str], int]
    upload: Callable[[np.ndarray, int], None]
    download: Callable[[int, np.ndarray], None]
    fetch: Callable[[], Mapping[str, np.ndarray]]
    capture: Callable[[Callable[[], None]], Any]
    early: bool

    def taken(self, graph: Any, calls: Sequence[Callable[[], None]]) -> tuple[Taken, Any] | None:
        """The run that is faster as one kernel, and the graph of a pass with it; None where none is. graph:
        of the kernels one by one, which `calls` start."""
        run = runs.longest(self.plan)
        if run is None:
            return None
        known = runs.read(self.plan, run)
        if known is not None and known.taken is None:
            return None
        if self.stream.elapsed_ns(lambda: graph.launch(self.stream.on)) > _LONG_NS:
            return None
        made = self._ready(run, [known.taken] if known is not None and known.taken else None)
        graphs = [(one, self._graph(one, calls)) for one in made]
        self._fill()
        graph.launch(self.stream.on)
        wanted = self._output()
        right = [(one, held) for one, held in graphs if held is not None and self._alike(held, wanted)]
        if known is not None:
            return right[0] if right else None
        return self._fastest(run, graph, right)

    def _fastest(self, run: Run, graph: Any, right: Sequence[tuple[Taken, Any]]) -> tuple[Taken, Any] | None:
        apart, *times = self._times([graph, *(held for _, held in right)]) if right else [0.0]
        best = min(range(len(times)), key=lambda i: times[i], default=None)
        if best is None or times[best] > (1 - GAIN) * apart:
            self._keep(run, Timed(way=None, one_ns=min(times, default=0.0), apart_ns=apart))
            return None
        way = right[best][0].kernel.way
        shared = (way.ranks, way.images, way.threads, way.blocks, way.most)
        self._keep(run, Timed(way=shared, one_ns=times[best], apart_ns=apart))
        return right[best]

    def _keep(self, run: Run, timed: Timed) -> None:
        with contextlib.suppress(KernelError):  # a cache that cannot be written: it is tried again
            runs.write(self.plan, run, timed)

    def _ready(self, run: Run, only: Sequence[Way] | None) -> list[Taken]:
        """Every way that can be had here, compiled and loaded."""
        count = int(self.cupy.cuda.Device().attributes["MultiProcessorCount"])
        kernels = []
        for way in only or ways(run.layers, self.plan.batch, self.capability, count):
            lies = room(run.layers, way, block_nbytes(self.capability, way))
            if lies is not None:
                kernels.append(one_kernel(run.layers, way, lies, self.plan.batch, count))
        arch = f"sm_{self.capability[0]}{self.capability[1]}"
        nvrtc.compile_ahead(
            [(kernel.rung(), kernel.defines) for kernel in kernels], arch, host.physical_cores()
        )
        made = []
        for kernel in kernels:
            try:
                made.append(self._loaded(run, kernel, arch))
            except (KernelscopeError, RuntimeError, MemoryError):  # it is not to be had on this device
                continue
        return made

    def _loaded(self, run: Run, kernel: OneKernel, arch: str) -> Taken:
        path = nvrtc.compile_rung(kernel.rung(), arch, kernel.defines)
        function = kernel_of(self.cupy.RawModule(path=str(path)), kernel.rung(), kernel.stage)
        packed = kernel.packed(run.weights(self.plan))
        held = self.pool.malloc(packed.nbytes)
        self.upload(packed, int(held.ptr))
        ends = self.pointer(run.steps[0].inputs[0]), int(held.ptr), self.pointer(run.steps[-1].output)
        arguments = (*map(np.uint64, ends), np.int32(self.plan.batch))
        if self.early and self.capability >= overlap.CAPABILITY:
            start = overlap.overlapping(self.cupy, function, kernel.stage, arguments)
        else:
            start = launching(function, kernel.stage, arguments)

        def stamps() -> np.ndarray:
            defines = {**kernel.defines, "STAMPS": 1}
            path = nvrtc.compile_rung(kernel.rung(), arch, defines)
            module = self.cupy.RawModule(path=str(path))
            self.stream.put(
                launching(kernel_of(module, kernel.rung(), kernel.stage), kernel.stage, arguments)
            )
            self.stream.synchronize()
            found = np.empty(len(kernel.layers) + 2, np.int64)
            self.download(int(module.get_global("stamps").ptr), found)
            return found

        return Taken(run, kernel, start, stamps, held)

    def _graph(self, one: Taken, calls: Sequence[Callable[[], None]]) -> Any:
        def work() -> None:
            for start in one.starts(calls):
                start()

        return self.capture(work)

    def _fill(self) -> None:
        """Random inputs: nothing is bound yet."""
        random = np.random.default_rng(0)
        for name in self.plan.inputs:
            spec = self.plan.tensors[name]
            size = math.prod(spec.shape)
            count = min(size, _DRAWN)
            real = np.dtype(spec.dtype).kind == "f"
            few = (random.standard_normal(count) if real else random.integers(0, 2, count)).astype(spec.dtype)
            self.upload(np.resize(few, size), self.pointer(name))
        self.stream.synchronize()

    def _output(self) -> np.ndarray:
        """All outputs, one behind the other."""
        return np.concatenate([array.reshape(-1) for array in self.fetch().values()])

    def _alike(self, graph: Any, wanted: np.ndarray) -> bool:
        graph.launch(self.stream.on)
        got = self._output()
        return bool(np.linalg.norm(got - wanted) <= ALIKE[self.plan.precision] * np.linalg.norm(wanted))

    def _times(self, graphs: Sequence[Any]) -> list[float]:
        """Nanoseconds of a pass of each, measured beside each other."""

        def replays(graph: Any, count: int) -> float:
            def work() -> None:
                for _ in range(count):
                    graph.launch(self.stream.on)

            return self.stream.elapsed_ns(work) / count

        once = min(replays(graphs[0], 1) for _ in range(3))
        count = max(1, math.ceil(_TRAIN_NS / max(once, 1)))
        rounds = [[replays(graph, count) for graph in graphs] for _ in range(_ROUNDS)]
        return [min(column) for column in zip(*rounds, strict=True)]
