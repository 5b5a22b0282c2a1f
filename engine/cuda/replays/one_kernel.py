"""Several steps of a plan as one kernel, where that was timed to be faster than one kernel for each step.

The tensors between the steps stay in shared memory (kernels.net). Which way to divide the work is fastest,
and whether any is faster than the single kernels in a CUDA graph, is tried once on a machine and kept
(engine.planning.runs). A way whose answer differs is never taken.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from engine.backend import Part
from engine.cuda.replays import overlap
from engine.cuda.runtime import load_module
from engine.cuda.stages import kernel_of, launching
from engine.cuda.stream import Stream
from engine.graph.plan import Plan, Step
from engine.machine import host
from engine.planning import runs
from engine.planning.runs import Run, Timed
from kernels import nvrtc
from kernels.errors import KernelError, KernelscopeError
from kernels.header import Define
from kernels.net.plan import block_nbytes, room, ways
from kernels.net.records import Way
from kernels.net.text import FILE, FUNCTION, OneKernel, one_kernel
from kernels.ops import ITEMSIZE
from kernels.ops.gemm import Gemm
from kernels.overlaps import CAPABILITY as OVERLAP_CAPABILITY
from kernels.precision import EXACT, narrow, of
from kernels.registry import Rung

GAIN = 0.02  # of a pass, below which a difference is noise
SLOWER = "its kernels one by one are faster here"
WRONG = "as one kernel it does not give the answer of its kernels one by one"
_LONG_NS = 20_000_000  # a pass of so many images that nothing is gained by trying
_TRAIN_NS = 300_000
_ROUNDS = 5
_STAMPED = 25  # passes whose steps are told apart
READING = "images and weights"  # what a kernel does before its first step
_DRAWN = 1 << 20  # values of an input that are drawn; more are these again


@dataclass(frozen=True)
class Taken:
    """A run of steps as one kernel, ready to launch. start: puts it on the current stream. stamps(): runs a
    pass of the same kernel with clock stamps and returns them (see OneKernel.stamps_shape). moved: bytes that
    each step reads and writes in device memory. held: its weights on the device."""

    run: Run
    kernel: OneKernel
    start: Callable[[], None]
    stamps: Callable[[], np.ndarray]
    moved: tuple[int, ...]
    held: Any = field(repr=False)

    @property
    def words(self) -> str:
        way = self.kernel.way
        return f"{len(self.run.steps)} steps as one in {'tf32' if way.tensor else 'fp32'} ({way.words})"

    def starts(self, calls: Sequence[Callable[[], None]]) -> list[Callable[[], None]]:
        """What starts the steps of a pass; the one kernel stands in the place of its steps."""
        return [*calls[: self.run.start], self.start, *calls[self.run.end :]]

    def parts(self) -> tuple[Part, ...]:
        """The time of each step within a launch, after the reading of images and weights: their shares of the
        lifetime of all blocks, times that of the block that lives longest. () where stamps cannot be had."""
        try:
            passes = np.array([self.stamps() for _ in range(_STAMPED + 1)])[1:].astype(np.float64)
        except (KernelscopeError, RuntimeError, LookupError):
            return ()
        cycles, lives_ns = passes[..., :-2], passes[..., -1] - passes[..., -2]
        # A cycle's length by all blocks together: the clock in nanoseconds may tick once in a thousand.
        cycle_ns = lives_ns.sum() / max(cycles.sum(), 1.0)
        firsts = cycles[:, :: self.kernel.way.ranks]  # of each team: the others wait for it in the last steps
        longest = np.median(firsts.sum(axis=2).max(axis=1))
        mean = np.median(firsts.mean(axis=1), axis=0)
        if not (cycle_ns > 0 and (mean >= 0).all() and mean.sum() > 0):
            return ()
        reading, *of_layers = (mean / mean.sum() * longest * cycle_ns).tolist()
        times_ns = [0.0] * len(self.run.steps)
        for layer, time_ns in zip(self.run.layers, of_layers, strict=True):
            times_ns[layer.step] += time_ns
        own = zip(self.run.steps, self.moved, strict=True)
        steps = [replace(step, rung=FILE.stem, moved=moved) for step, moved in own]
        parts = [Part(step.name, step, time_ns) for step, time_ns in zip(steps, times_ns, strict=True)]
        return (Part(READING, steps[0], reading), *parts)

    def shares(self) -> list[float] | None:
        """The share of each step in the kernel's time; the reading counts for the first step. None where
        stamps cannot be had."""
        parts = self.parts()
        if not parts:
            return None
        whole = sum(part.time_ns for part in parts)
        reading, *rest = (part.time_ns / whole for part in parts)
        return [reading + rest[0], *rest[1:]]

    def order(self, orders: Sequence[Sequence[tuple[Step, str]]]) -> list[Sequence[tuple[Step, str]]]:
        """What a pass puts on the device: the one kernel between the launches of the steps before and after
        it."""
        first = self.run.steps[0]
        whole = Step(
            first.name, self.run.nodes, first.params, first.inputs, self.run.steps[-1].output, FILE.stem,
            moved=sum(self.moved),
        )  # fmt: skip
        return [*orders[: self.run.start], [(whole, FUNCTION)], *orders[self.run.end :]]


def _moved(run: Run, kernel: OneKernel, pieces: Sequence[np.ndarray]) -> tuple[int, ...]:
    """Bytes that each step moves. What is read before the first step counts for it, as its time does: the
    images, the weights of convolutions, and those of products that wait in shared memory."""
    common, *products = pieces
    nbytes = [0] * len(run.steps)
    first, last = run.steps[0].params, run.steps[-1].params
    nbytes[0] = common.nbytes + math.prod(first.input_shapes[0]) * ITEMSIZE[first.dtype]
    laid = ((place, layer) for place, layer in enumerate(run.layers) if isinstance(layer.params, Gemm))
    for (place, layer), piece in zip(laid, products, strict=True):
        nbytes[layer.step if kernel.room.products[place].at is None else 0] += piece.nbytes
    nbytes[-1] += last.outputs * ITEMSIZE[last.out_dtype]
    return tuple(nbytes)


def _kernels(
    plan: Plan,
    run: Run,
    capability: tuple[int, int],
    multiprocessors: int,
    only: Sequence[Way] | None = None,
) -> list[OneKernel]:
    """A run of steps in every way that is worth trying, or only in the ways `only`."""
    kernels = []
    cores = plan.precision not in EXACT, narrow(plan.precision)
    for way in only or ways(run.layers, plan.batch, capability, multiprocessors, *cores):
        lies = room(run.layers, way, block_nbytes(capability, way))
        if lies is not None:
            kernels.append(one_kernel(run.layers, way, lies, plan.batch, multiprocessors))
    return kernels


def to_compile(
    plan: Plan, capability: tuple[int, int], multiprocessors: int, stamped: bool
) -> list[tuple[Rung, Mapping[str, Define]]]:
    """What a session of this plan will compile to try a run of its steps as one kernel. Nothing where there
    is no such run, or it is known to be slower. stamped: also the build with clock stamps, which gives the
    times of the steps."""
    run = runs.longest(plan)
    known = runs.read(plan, run) if run is not None else None
    if run is None or (known is not None and known.taken is None):
        return []
    only = [known.taken] if known is not None and known.taken is not None else None
    kernels = _kernels(plan, run, capability, multiprocessors, only)
    items = [(kernel.rung(), kernel.defines) for kernel in kernels]
    return [*items, *((kernel.rung(), kernel.stamped()) for kernel in kernels if stamped)]


@dataclass
class Trial:
    """Tries one kernel for a run of a session's plan. It gets the session's plan and stream, where its
    tensors lie, and these functions:

    upload(array, address), download(address, array); fetch(): the outputs by name; capture(work): a CUDA
    graph, None where that fails. early: whether a kernel may begin before the one in front has ended; anyway:
    take one kernel even where it is slower.
    """

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
    anyway: bool = False

    def taken(self, graph: Any, calls: Sequence[Callable[[], None]]) -> tuple[Taken, Any] | str:
        """The run that is faster as one kernel (with `anyway`: also a slower one), and the CUDA graph of a
        pass with it; else the reason why there is none, in words. graph: of the single kernels, which `calls`
        start."""
        run = runs.longest(self.plan)
        if run is None:
            return "no two of its steps can be one kernel"
        known = runs.read(self.plan, run)
        if known is not None and known.taken is None and not self.anyway:
            return SLOWER if known.one_ns else WRONG
        once = self.stream.elapsed_ns(lambda: graph.launch(self.stream.on))
        if once > _LONG_NS and not self.anyway:
            return "a pass of so many images gains nothing by it"
        ready = self._ready(run, [known.taken] if known is not None and known.taken else None)
        if not ready:
            return "what its steps hold has no room in the shared memory of this GPU's blocks"
        graphs = [(one, self._graph(one, calls)) for one in ready]
        self._fill()
        graph.launch(self.stream.on)
        wanted = self._output()
        right = [
            (one, captured)
            for one, captured in graphs
            if captured is not None and self._alike(run, captured, wanted)
        ]
        if known is not None and known.taken is not None:
            return right[0] if right else WRONG
        return self._fastest(run, graph, right)

    def _fastest(self, run: Run, graph: Any, right: Sequence[tuple[Taken, Any]]) -> tuple[Taken, Any] | str:
        apart, *times = self._times([graph, *(captured for _, captured in right)]) if right else [0.0]
        best = min(range(len(times)), key=lambda i: times[i], default=None)
        if best is None or times[best] > (1 - GAIN) * apart:
            self._keep(run, Timed(way=None, one_ns=min(times, default=0.0), apart_ns=apart))
            return WRONG if best is None else right[best] if self.anyway else SLOWER
        way = right[best][0].kernel.way
        self._keep(run, Timed(way=astuple(way), one_ns=times[best], apart_ns=apart))
        return right[best]

    def _keep(self, run: Run, timed: Timed) -> None:
        with contextlib.suppress(KernelError):  # a cache that cannot be written: it is tried again
            runs.write(self.plan, run, timed)

    def _ready(self, run: Run, only: Sequence[Way] | None) -> list[Taken]:
        """Every way that is possible here, compiled and loaded."""
        count = int(self.cupy.cuda.Device().attributes["MultiProcessorCount"])
        kernels = _kernels(self.plan, run, self.capability, count, only)
        arch = f"sm_{self.capability[0]}{self.capability[1]}"
        nvrtc.compile_ahead(
            [(kernel.rung(), kernel.defines) for kernel in kernels], arch, host.physical_cores()
        )
        ready = []
        for kernel in kernels:
            try:
                ready.append(self._loaded(run, kernel, arch))
            except (KernelscopeError, RuntimeError, MemoryError):  # it is not to be had on this device
                continue
        return ready

    def _loaded(self, run: Run, kernel: OneKernel, arch: str) -> Taken:
        path = nvrtc.compile_rung(kernel.rung(), arch, kernel.defines)
        function = kernel_of(load_module(self.cupy, path), kernel.rung(), kernel.stage)
        pieces = kernel.parts(run.weights(self.plan))
        packed = np.concatenate(pieces)
        memory = self.pool.malloc(packed.nbytes)
        self.upload(packed, int(memory.ptr))
        ends = self.pointer(run.steps[0].inputs[0]), int(memory.ptr), self.pointer(run.steps[-1].output)
        arguments = (*map(np.uint64, ends), np.int32(self.plan.batch))
        if self.early and self.capability >= OVERLAP_CAPABILITY:
            start = overlap.overlapping(self.cupy, function, kernel.stage, arguments)
        else:
            start = launching(function, kernel.stage, arguments)

        @cache
        def stamping() -> tuple[Any, Callable[[], None]]:
            path = nvrtc.compile_rung(kernel.rung(), arch, kernel.stamped())
            module = load_module(self.cupy, path)
            return module, launching(kernel_of(module, kernel.rung(), kernel.stage), kernel.stage, arguments)

        def stamps() -> np.ndarray:
            module, stamped = stamping()
            self.stream.put(stamped)
            self.stream.synchronize()
            clock_stamps = np.empty(kernel.stamps_shape, np.int64)
            self.download(int(module.get_global("stamps").ptr), clock_stamps)
            return clock_stamps

        return Taken(run, kernel, start, stamps, _moved(run, kernel, pieces), memory)

    def _graph(self, one: Taken, calls: Sequence[Callable[[], None]]) -> Any:
        def work() -> None:
            for start in one.starts(calls):
                start()

        return self.capture(work)

    def _fill(self) -> None:
        """Write random inputs: nothing is bound yet."""
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
        """All outputs, one after the other."""
        return np.concatenate([array.reshape(-1) for array in self.fetch().values()])

    def _alike(self, run: Run, graph: Any, wanted: np.ndarray) -> bool:
        """Whether a pass with the run as one kernel gives the wanted answer. What the pass before left in its
        output is overwritten first."""
        last = run.steps[-1].output
        nothing = np.full(math.prod(self.plan.tensors[last].shape), np.nan, np.float32)
        self.upload(nothing, self.pointer(last))
        graph.launch(self.stream.on)
        got = self._output()
        return bool(
            np.linalg.norm(got - wanted) <= of(self.plan.precision).model_bound * np.linalg.norm(wanted)
        )

    def _times(self, graphs: Sequence[Any]) -> list[float]:
        """Nanoseconds of a pass of each graph, measured in turns."""

        def replays(graph: Any, count: int) -> float:
            def work() -> None:
                for _ in range(count):
                    graph.launch(self.stream.on)

            return self.stream.elapsed_ns(work) / count

        once = min(replays(graphs[0], 1) for _ in range(3))
        count = max(1, math.ceil(_TRAIN_NS / max(once, 1)))
        rounds = [[replays(graph, count) for graph in graphs] for _ in range(_ROUNDS)]
        return [min(column) for column in zip(*rounds, strict=True)]
