"""Our engine on the CPU. The kernels are Python and may be the user's, so they run in an isolated process
(engine.isolated)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from engine.backend import OpTime, Options, check_inputs
from engine.cpu.session import CpuSession, refuse_too_large
from engine.graph.graph import Graph
from engine.graph.plan import Plan, Step
from engine.isolated.memory import Spec
from engine.isolated.session import IsolatedSession
from engine.machine import host
from engine.planning import mixed
from engine.planning.planner import plan
from kernels import registry
from kernels.errors import InputError, UnsupportedError
from kernels.precision import FP32, MIXED, budget
from kernels.registry import Rung

NAME = "engine-cpu"
APART = "engine"  # see engine.isolated.pool.KINDS


class _Planned:
    """What both sessions below derive from a plan."""

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        started = time.perf_counter_ns()
        self.made: Plan = plan(graph, batch, "cpu", precision, options)
        self.load_ns = time.perf_counter_ns() - started
        rungs = [registry.find("cpu", s.op, s.rung, options.kernel_dirs) for s in self.made.steps]
        self.rungs: tuple[Rung, ...] = tuple(rungs)
        self.what = f"{graph.name} on {NAME} at batch {batch}"
        self.threads = options.threads or host.physical_cores()
        self.joined = options.one_kernel
        self._mixed = (
            {"mixed": mixed.fact(self.made, graph, precision, options)}
            if budget(precision) is not None
            else {}
        )
        self._op_types = {node.name: node.op_type for node in graph.nodes}

    def op_times(self, taken: Sequence[float]) -> tuple[OpTime, ...]:
        return tuple(
            OpTime(
                nodes=step.nodes,
                op_type=self._op_types.get(step.nodes[0], step.op),
                time_ns=time_ns,
                clock="host",
                rung=step.rung,
                chosen=step.chosen,
                nbytes=step.nbytes,
            )
            for step, time_ns in zip(self.made.steps, taken, strict=True)
        )

    def stepped(self, taken: Sequence[tuple[int, int]]) -> tuple[tuple[Step, int, int], ...]:
        return tuple((step, *between) for step, between in zip(self.made.steps, taken, strict=True))

    def facts(self, facts: Mapping[str, str]) -> dict[str, str]:
        return {**facts, "kernels": self.made.chosen_words, **self._mixed}

    def phases(self, phases: Mapping[str, int]) -> dict[str, int]:
        return {"load": self.load_ns, **phases}


class EngineCpuIsolated(IsolatedSession):
    """A model at one batch size on our CPU kernels, in an isolated process; see engine.backend.Session."""

    backend = NAME

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self._planned = planned = _Planned(graph, batch, precision, options)
        step_plan = planned.made
        refuse_too_large(planned.what, step_plan.arena_nbytes)
        users = frozenset((rung.path, rung.source) for rung in planned.rungs if rung.user)
        super().__init__(
            APART,
            planned.what,
            batch,
            (step_plan, planned.rungs, planned.what, planned.threads, planned.joined),
            users or None,
            {name: _spec(step_plan, name) for name in step_plan.outputs},
            planned.threads,
        )
        self.phases = planned.phases(self.phases)
        self._facts = planned.facts(self._facts)

    @property
    def plan(self) -> Plan:
        """The frozen plan that this session runs."""
        return self._planned.made

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """Medians over whole passes, so that every step finds the caches as in a forward pass."""
        return self._planned.op_times(self._asked("ask", "step_times", seconds, answers=tuple[float, ...]))

    def run_timed(self) -> tuple[tuple[Step, int, int], ...]:
        """As `run`, with perf_counter_ns before and after each step; see engine.backend.Stepped."""
        return self._planned.stepped(self._asked("ask", "run_stepwise", answers=tuple[tuple[int, int], ...]))


class EngineCpuHere(CpuSession):
    """The same in this process, for tests and profiles."""

    backend = NAME
    precision = FP32

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self._planned = planned = _Planned(graph, batch, precision, options)
        self.batch = batch
        super().__init__(planned.made, planned.rungs, planned.what, planned.threads, planned.joined)
        self.phases = planned.phases(self.phases)
        self.facts = planned.facts(self.facts)

    @property
    def plan(self) -> Plan:
        return self._planned.made

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        input_arrays = self.given
        check_inputs(inputs, {name: (view.shape, view.dtype) for name, view in input_arrays.items()})
        for name, view in input_arrays.items():
            np.copyto(view, inputs[name], casting="same_kind")

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def fetch(self) -> dict[str, np.ndarray]:
        return {name: np.array(view, np.float32) for name, view in self.answers().items()}

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        return self._planned.op_times(self.step_times(seconds))

    def run_timed(self) -> tuple[tuple[Step, int, int], ...]:
        return self._planned.stepped(self.run_stepwise())


def _spec(made: Plan, name: str) -> Spec:
    spec = made.tensors[name]
    return Spec(tuple(spec.shape), np.dtype(spec.dtype).name)


class EngineCpu:
    """Our engine with the NumPy ladder; see engine.backend.Backend."""

    name = NAME
    title = "Kernelscope engine (CPU)"
    device = "cpu"
    reference = "ort-cpu"
    end_to_end = "kernel"
    apart = APART

    @property
    def precisions(self) -> tuple[str, ...]:
        return (*registry.precisions(self.device), MIXED)

    def unavailable(self) -> str | None:
        return None

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        try:
            plan(graph, batch, self.device, precision)
        except (UnsupportedError, InputError) as error:
            return str(error)
        return None

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> EngineCpuIsolated:
        """A session ready to bind and run.

        Raises UnsupportedError (a node, batch or precision), InputError (an unknown node or rung in the
        options), KernelError (a rung that breaks), OutOfMemoryError.
        """
        return EngineCpuIsolated(graph, batch, precision, options or Options())

    def prepare_here(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> EngineCpuHere:
        """As `prepare`, in this process."""
        return EngineCpuHere(graph, batch, precision, options or Options())


BACKEND = EngineCpu()
