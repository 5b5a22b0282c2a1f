"""Our engine on the CPU: the plan's rungs in NumPy, bound once, then called one after the other."""

from __future__ import annotations

import importlib.metadata
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import psutil

from engine import host
from engine.backend import OpTime, Options
from engine.cpu_steps import Blas, CpuStep, aligned, divided, in_order
from engine.graph import Graph
from engine.ort import check_inputs
from engine.plan import Plan, Step
from engine.planner import plan
from kernels import registry
from kernels.cpu import Bound, CpuKernel, line_in, load
from kernels.errors import InputError, KernelError, KernelscopeError, OutOfMemoryError, UnsupportedError
from kernels.registry import Rung

NAME = "engine-cpu"


class EngineCpuSession:
    """A model at one batch size on our CPU kernels; see engine.backend.Session."""

    backend = NAME
    precision = "fp32"

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self.batch = batch
        self._what = f"{graph.name} on {NAME} at batch {batch}"
        self._op_types = {node.name: node.op_type for node in graph.nodes}
        self._threads = options.threads or host.physical_cores()
        self._blas = Blas()
        self._steps: tuple[CpuStep, ...] = ()
        clock = [time.perf_counter_ns()]

        made = plan(graph, batch, "cpu", precision, options)
        clock.append(time.perf_counter_ns())
        rungs = [registry.find("cpu", s.op, s.rung, options.kernel_dirs) for s in made.steps]
        kernels = [load(rung) for rung in rungs]
        clock.append(time.perf_counter_ns())
        self._plan = made
        packed = []
        steps = []
        for step, rung, kernel in zip(made.steps, rungs, kernels, strict=True):
            with self._in_words("preparing", rung):
                packed.append(self._packed(kernel, step))
                steps.append(divided(step, rung, kernel, packed[-1], self._threads))
        self._steps = tuple(steps)
        scratch = max((step.workspace_nbytes for step in steps), default=0)
        self._plan = made = replace(made, workspace_nbytes=scratch)
        clock.append(time.perf_counter_ns())
        self._refuse_too_large()
        with self._in_words("preparing"):
            self._arena = aligned(made.arena_nbytes)
            self._workspace = aligned(made.workspace_nbytes).view(np.float32)
        clock.append(time.perf_counter_ns())
        self._by_step = tuple(self._bound(*pair) for pair in zip(steps, packed, strict=True))
        self._calls = in_order(steps, self._by_step, self._blas.limit)
        self._views = {name: self._tensor(name) for name in (*made.inputs, *made.outputs)}
        clock.append(time.perf_counter_ns())

        loading, compiling, packing, allocating, binding = np.diff(clock).tolist()
        self.phases: Mapping[str, int] = {
            "load": loading,
            "compile": compiling + binding,
            "alloc": allocating,
            "upload": packing,
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
            "threads": str(self._threads),
            "kernels": made.chosen_words,
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
        with self._in_words("running"), np.errstate(all="ignore"):
            for call in self._calls:
                call()

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def fetch(self) -> dict[str, np.ndarray]:
        return {name: np.array(self._views[name], np.float32) for name in self._plan.outputs}

    def time_runs(self, count: int, cold: bool = False) -> int:
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
        samples: list[list[int]] = [[] for _ in self._steps]
        timed = list(zip(self._steps, self._by_step, samples, strict=True))
        clock = time.perf_counter_ns
        until = clock() + int(seconds * 1e9)
        with self._in_words("running"), np.errstate(all="ignore"):
            while True:
                for step, call, taken in timed:
                    self._blas.limit(step.blas_threads)
                    started = clock()
                    call()
                    taken.append(clock() - started)
                if clock() >= until:
                    break
        return tuple(
            OpTime(
                nodes=made.step.nodes,
                op_type=self._op_types.get(made.step.nodes[0], made.step.op),
                time_ns=float(statistics.median(taken)),
                clock="host",
                rung=made.step.rung,
                chosen=made.step.chosen,
            )
            for made, taken in zip(self._steps, samples, strict=True)
        )

    def run_timed(self) -> tuple[tuple[Step, int, int], ...]:
        """As `run`, with perf_counter_ns before and after each step; see engine.observe.Stepped."""
        clock = time.perf_counter_ns
        taken = []
        with self._in_words("running"), np.errstate(all="ignore"):
            for made, call in zip(self._steps, self._by_step, strict=True):
                self._blas.limit(made.blas_threads)
                started = clock()
                call()
                taken.append((made.step, started, clock()))
        return tuple(taken)

    def close(self) -> None:
        def closed() -> None:
            raise KernelError(f"the session of {self._what} is closed: prepare another")

        self._calls = (closed,)
        self._views = {}
        self._by_step = ()
        self._arena = self._workspace = np.empty(0, np.float32)

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

    def _bound(self, made: CpuStep, packed: list[np.ndarray | None]) -> Bound:
        inputs = [
            self._tensor(name) if array is None else array
            for name, array in zip(made.step.inputs, packed, strict=True)
        ]
        with self._in_words("preparing", made.rung):
            return made.bind(inputs, self._tensor(made.step.output), self._workspace, self._threads)

    def _refuse_too_large(self) -> None:
        needed = self._plan.arena_nbytes + self._plan.workspace_nbytes
        available = psutil.virtual_memory().available
        if needed > available:  # Linux would grant it, and kill the process at the first touch
            raise OutOfMemoryError(
                f"{self._what} needs {needed / 2**30:.1f} GiB of memory for its activations and "
                f"{available / 2**30:.1f} GiB are available: take a smaller batch"
            )

    @contextmanager
    def _in_words(self, doing: str, rung: Rung | None = None) -> Iterator[None]:
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
            raise KernelError(f"{self._what}: {doing} failed{self._place(error, rung)}: {error}") from error

    def _place(self, error: Exception, rung: Rung | None) -> str:
        """Which line of which rung raised it, as far as its trace tells."""
        for tried in [rung] if rung else dict.fromkeys(made.rung for made in self._steps):
            line = line_in(tried, error)
            if line is not None or rung:
                where = f":{line}" if line is not None else ""
                return f" in {tried.path.name}{where} ({tried.op}, {type(error).__name__})"
        return f" ({type(error).__name__})"


class EngineCpu:
    """Our engine with the NumPy ladder; see engine.backend.Backend."""

    name = NAME
    title = "Kernelscope engine (CPU)"
    device = "cpu"
    reference = "ort-cpu"

    @property
    def precisions(self) -> tuple[str, ...]:
        return registry.precisions(self.device)

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
