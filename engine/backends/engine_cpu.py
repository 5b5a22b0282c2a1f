"""Our engine on the CPU: the plan's rungs in NumPy, bound once, then called one after the other."""

from __future__ import annotations

import functools
import importlib.metadata
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import psutil

from engine import host
from engine.backend import OpTime, Options
from engine.graph import Graph
from engine.ort import check_inputs
from engine.plan import Plan, Step
from engine.planner import ENGINE_PRECISIONS, plan
from kernels import registry
from kernels.cpu import Bound, CpuKernel, line_in, load
from kernels.errors import InputError, KernelError, KernelscopeError, OutOfMemoryError, UnsupportedError

NAME = "engine-cpu"
ALIGNMENT = 256  # bytes; the plan's placements count on it


class EngineCpuSession:
    """A model at one batch size on our CPU kernels; see engine.backend.Session."""

    backend = NAME
    precision = "fp32"

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self.batch = batch
        self._what = f"{graph.name} on {NAME} at batch {batch}"
        self._op_types = {node.name: node.op_type for node in graph.nodes}
        self._blas = Blas(options.threads or host.physical_cores())
        clock = [time.perf_counter_ns()]

        made = plan(graph, batch, "cpu", precision, options)
        clock.append(time.perf_counter_ns())
        self._rungs = [registry.find("cpu", s.op, s.rung, options.kernel_dirs) for s in made.steps]
        kernels = [load(rung) for rung in self._rungs]
        clock.append(time.perf_counter_ns())
        self._steps = made.steps
        self._calls: tuple[Bound, ...] = ()
        with self._in_words("preparing"):
            scratch = [k.workspace(s.params) for k, s in zip(kernels, made.steps, strict=True)]
            self._plan = made = replace(made, workspace_nbytes=max(scratch, default=0))
            self._refuse_too_large()
            self._arena = _aligned(made.arena_nbytes)
            workspace = _aligned(made.workspace_nbytes).view(np.float32)
            clock.append(time.perf_counter_ns())
            packed = [self._packed(k, s) for k, s in zip(kernels, made.steps, strict=True)]
        self._calls = tuple(self._bound(i, kernels[i], packed[i], workspace) for i in range(len(kernels)))
        self._views = {name: self._tensor(name) for name in (*made.inputs, *made.outputs)}
        clock.append(time.perf_counter_ns())

        phases = ("load", "compile", "alloc", "upload")
        self.phases: Mapping[str, int] = {
            name: after - before for name, before, after in zip(phases, clock[:-1], clock[1:], strict=True)
        }
        held = {id(array): array.nbytes for arrays in packed for array in arrays if array is not None}
        self.memory: Mapping[str, int] = {
            "weights": sum(held.values()),
            "arena": made.arena_nbytes,
            "workspace": made.workspace_nbytes,
        }
        self.facts: Mapping[str, str] = {
            "numpy": importlib.metadata.version("numpy"),
            "blas": self._blas.words,
            "threads": str(self._blas.threads),
        }

    @property
    def plan(self) -> Plan:
        """The frozen plan that this session runs."""
        return self._plan

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        expected = {name: self._views[name] for name in self._plan.inputs}
        check_inputs(inputs, {name: (view.shape, view.dtype) for name, view in expected.items()})
        for name, view in expected.items():
            np.copyto(view, inputs[name], casting="same_kind")

    def run(self) -> None:
        self._blas.limit()
        with self._in_words("running"), np.errstate(all="ignore"):
            for call in self._calls:
                call()

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def fetch(self) -> dict[str, np.ndarray]:
        return {name: np.array(self._views[name], np.float32) for name in self._plan.outputs}

    def time_runs(self, count: int, cold: bool = False) -> int:
        self._blas.limit()
        calls = self._calls
        with self._in_words("running"), np.errstate(all="ignore"):
            if cold:
                host.overwrite_caches()
            started = time.perf_counter_ns()
            for _ in range(count):
                for call in calls:
                    call()
            return time.perf_counter_ns() - started

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """Medians over whole passes, so that every step finds the caches as it does in a forward pass."""
        self.run()
        samples: list[list[int]] = [[] for _ in self._calls]
        timed = list(zip(self._calls, samples, strict=True))
        clock = time.perf_counter_ns
        until = clock() + int(seconds * 1e9)
        with self._in_words("running"), np.errstate(all="ignore"):
            while True:
                for call, taken in timed:
                    started = clock()
                    call()
                    taken.append(clock() - started)
                if clock() >= until:
                    break
        return tuple(
            OpTime(
                nodes=step.nodes,
                op_type=self._op_types.get(step.nodes[0], step.op),
                time_ns=float(statistics.median(taken)),
                clock="host",
                rung=step.rung,
            )
            for step, taken in zip(self._steps, samples, strict=True)
        )

    def close(self) -> None:
        def closed() -> None:
            raise KernelError(f"the session of {self._what} is closed: prepare another")

        self._calls = (closed,)
        self._views = {}
        self._arena = np.empty(0, np.uint8)

    def _tensor(self, name: str) -> np.ndarray:
        """A tensor's bytes in the arena, or the weight it is, in its own shape."""
        spec = self._plan.tensors[name]
        held = self._plan.aliases.get(name, name)
        if held in self._plan.weights:
            return self._plan.weights[held].reshape(spec.shape)
        start = self._plan.placements[held].offset
        return self._arena[start : start + spec.nbytes].view(spec.dtype).reshape(spec.shape)

    def _packed(self, kernel: CpuKernel, step: Step) -> list[np.ndarray | None]:
        held = [self._plan.aliases.get(name, name) for name in step.inputs]
        inputs = zip(step.inputs, held, strict=True)
        weights = [self._tensor(name) if of in self._plan.weights else None for name, of in inputs]
        return kernel.pack(step.params, weights)

    def _bound(
        self, index: int, kernel: CpuKernel, packed: list[np.ndarray | None], workspace: np.ndarray
    ) -> Bound:
        step = self._steps[index]
        inputs = [
            self._tensor(name) if array is None else array
            for name, array in zip(step.inputs, packed, strict=True)
        ]
        with self._in_words("preparing", index):
            return kernel.bind(step.params, inputs, self._tensor(step.output), workspace)

    def _refuse_too_large(self) -> None:
        needed = self._plan.arena_nbytes + self._plan.workspace_nbytes
        available = psutil.virtual_memory().available
        if needed > available:  # Linux would grant it, and kill the process at the first touch
            raise OutOfMemoryError(
                f"{self._what} needs {needed / 2**30:.1f} GiB of memory for its activations and "
                f"{available / 2**30:.1f} GiB are available: take a smaller batch"
            )

    @contextmanager
    def _in_words(self, doing: str, index: int | None = None) -> Iterator[None]:
        """MemoryError and what a rung raises as errors of ours, one sentence each."""
        try:
            yield
        except KernelscopeError:
            raise
        except MemoryError as error:
            raise OutOfMemoryError(
                f"memory did not suffice for {doing} {self._what}: take a smaller batch"
            ) from error
        except Exception as error:
            raise KernelError(f"{self._what}: {doing} failed{self._place(error, index)}: {error}") from error

    def _place(self, error: Exception, index: int | None) -> str:
        """Which step and which line of a rung's file raised it, as far as its trace tells."""
        for i, (step, rung) in enumerate(zip(self._steps, self._rungs, strict=True)):
            line = line_in(rung, error)
            if i == index or (index is None and line is not None):
                where = f":{line}" if line is not None else ""
                return f" in node {step.name} ({rung.path.name}{where}, {type(error).__name__})"
        return f" ({type(error).__name__})"


class Blas:
    """The BLAS behind NumPy, told how many threads to take."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._libraries = _blas_libraries()

    @property
    def words(self) -> str:
        named = []
        for library in self._libraries:
            kernels = getattr(library, "architecture", None) or "generic"
            named.append(f"{library.internal_api} {library.version} ({kernels} kernels)")
        return ", ".join(named) or "unknown"

    def limit(self) -> None:
        """Costs a microsecond where the number is right already: another session may have changed it."""
        for library in self._libraries:
            if library.get_num_threads() != self.threads:
                library.set_num_threads(self.threads)


@functools.cache
def _blas_libraries() -> tuple[Any, ...]:
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _aligned(nbytes: int) -> np.ndarray:
    """Bytes that start on ALIGNMENT, touched, so that the first pass does not pay for their pages."""
    room = np.zeros(nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    held = room[start : start + nbytes]
    held.fill(0)
    return held


class EngineCpu:
    """Our engine with the NumPy ladder; see engine.backend.Backend."""

    name = NAME
    title = "Kernelscope engine (CPU)"
    device = "cpu"
    reference = "ort-cpu"
    precisions: tuple[str, ...] = ENGINE_PRECISIONS

    def unavailable(self) -> str | None:
        return None

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        try:
            plan(graph, batch, self.device, precision)
        except (UnsupportedError, InputError) as error:
            return str(error)
        return None

    def prepare(
        self, graph: Graph, batch: int, precision: str = "fp32", options: Options | None = None
    ) -> EngineCpuSession:
        """A session ready to bind and run.

        Raises UnsupportedError (a node, batch or precision), InputError (an unknown node or rung in the
        options), KernelError (a rung that breaks), OutOfMemoryError.
        """
        return EngineCpuSession(graph, batch, precision, options or Options())


BACKEND = EngineCpu()
