"""A plan of CUDA kernels on a machine without a GPU: each step runs on the CPU (engine.cuda.simulated), one
after the other. It has answers, and no times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.backend import OpTime, Options, check_inputs
from engine.cuda.simulated import SimulatedRungSession
from engine.cuda.stages import Launches
from engine.graph.graph import Graph
from engine.graph.plan import Plan
from engine.planning import planner
from kernels.errors import KernelError, UnsupportedError

CAPABILITY = (8, 0)  # of which it has the kernels, but where one that was named needs more
SECONDS = 120.0  # after which a launch is ended
MOST_FLOPS = 4_000_000_000  # of a pass: about a minute
NO_TIMES = "it runs on the CPU, in place of a GPU: its answers count, and it has no times"


def planned(graph: Graph, batch: int, precision: str, options: Options) -> tuple[Plan, Launches]:
    """The plan as a GPU that nothing was measured on gets it. Raises as planner.plan, UnsupportedError where
    it takes too long here."""
    options = replace(options, tuned=False, turns=False, layouts="none")
    launches = Launches(options)
    choose = planner.ladder_choice(options, CAPABILITY if not options.rungs else None)
    made = planner.plan(graph, batch, "cuda", precision, options, choose=choose, workspace=launches.workspace)
    flops = sum(step.params.flops for step in made.steps)
    if flops > MOST_FLOPS:
        raise UnsupportedError(
            f"{graph.name} at batch {batch} takes {flops / 1e9:,.1f} billion operations, and without a GPU "
            f"{MOST_FLOPS // 10**9} billion are the most: a smaller batch or net runs"
        )
    return made, launches


class SimulatedNetSession:
    """See engine.backend.Session."""

    backend = "engine-cuda-simulated"

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self.batch, self.precision = batch, precision
        self._plan, launches = planned(graph, batch, precision, options)
        self.phases: Mapping[str, int] = {}
        self.memory: Mapping[str, int] = {"arena": self._plan.arena_nbytes}
        self.facts: Mapping[str, str] = {
            "kernels": self._plan.chosen_words,
            "simulated": "PTX on the CPU: answers, no times",
        }
        self._held: dict[str, np.ndarray] = dict(self._plan.weights)
        self._steps = []
        for step in self._plan.steps:
            rung, _ = launches.of_step(step)
            given = [self._as_planned(name) for name in step.inputs if name]
            self._steps.append((step, SimulatedRungSession(rung, step.params, given, seconds=SECONDS)))

    @property
    def plan(self) -> Plan:
        """The frozen plan that this session runs."""
        return self._plan

    def _as_planned(self, name: str) -> np.ndarray:
        """A tensor in its shape: what it holds, zeros before anything was computed."""
        spec, held = self._plan.tensors[name], self._held.get(self._plan.holder(name))
        if held is None:
            return np.zeros(spec.shape, spec.dtype)
        return np.ascontiguousarray(held).reshape(-1).view(spec.dtype).reshape(spec.shape)

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        specs = {name: self._plan.tensors[name] for name in self._plan.inputs}
        check_inputs(inputs, {name: (spec.shape, np.dtype(spec.dtype)) for name, spec in specs.items()})
        for name, spec in specs.items():
            self._held[self._plan.holder(name)] = np.array(inputs[name], spec.dtype)

    def run(self) -> None:
        """One pass, to its end. Raises KernelError where something is wrong with an access to memory."""
        for step, session in self._steps:
            names = [name for name in step.inputs if name]
            changed = {
                f"input {i}": self._as_planned(name)
                for i, name in enumerate(names)
                if self._plan.holder(name) not in self._plan.weights
            }
            session.bind(changed)
            session.poison(0xFF)
            session.run()
            if found := session.report.findings:
                raise KernelError(f"{step.name} ({step.rung}): {found[0].words}")
            self._held[self._plan.holder(step.output)] = session.output()

    def synchronize(self) -> None:
        """Passes are over when `run` returns."""

    def fetch(self) -> dict[str, np.ndarray]:
        return {name: np.array(self._as_planned(name), np.float32) for name in self._plan.outputs}

    def time_runs(self, count: int, cold: bool = False) -> int:
        raise UnsupportedError(NO_TIMES)

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        raise UnsupportedError(NO_TIMES)

    def close(self) -> None:
        for _, session in self._steps:
            session.close()
        self._steps = []
        self._held = {}
