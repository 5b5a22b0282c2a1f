"""The layers of one case: each is checked alone before anything is timed, and reported later with its time.

A wrong layer is wrong even if a softmax hides it in the model's output: a layer of ours beyond its bound
makes the case incorrect. Errors do not depend on the batch size, so every layer is checked on a few images,
once for each kernel that runs it. A kernel of the user's, and a library that chooses its algorithm by itself,
are also checked at the case's own batch size.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import msgspec

from bench.measure.answers import layer_errors, layers
from bench.measure.answers.layer_errors import Errors
from bench.measure.loaded_model import ORACLE, LoadedModel
from bench.measure.outcomes import Incorrect
from bench.results.records import Case, ErrorStats, Layer
from engine import backends
from engine.backend import Backend, Options, Planned, Session, Variant
from engine.graph.graph import Graph
from engine.graph.plan import Plan, Step
from engine.planning import groups
from kernels import registry
from kernels.errors import KernelscopeError
from kernels.precision import budget


class LayerCheck:
    """Of `case` on `backend`, prepared with `options`. warnings: what should be known of a case that is
    right: layers of a reference beyond its bound, layers that could not be looked at."""

    def __init__(self, case: Case, backend: Backend, options: Options, loaded: LoadedModel) -> None:
        self._case, self._backend, self._options = case, backend, options
        self._loaded = loaded
        self._isolated: dict[str, ErrorStats] | None = None
        self._steps: dict[str, Step] = {}  # of the plan that was looked at, each by its first node
        self._precision = case.precision  # of the plan: of a mixed case perhaps that of all its layers
        self.warnings: list[str] = []

    @property
    def _is_library(self) -> bool:
        """Whether this is a reference: its own excess is shown beside its time, and fails nothing of ours."""
        return self._backend.name == self._backend.reference or isinstance(self._backend, Variant)

    def before_timing(self, session: Session) -> None:
        """Raises Incorrect where a layer of ours is beyond its bound."""
        if self._is_library or not isinstance(session, Planned):
            return
        plan = session.plan
        self._steps = {step.nodes[0]: step for step in plan.steps}
        # By name: at another batch size other rungs would run.
        self._options = replace(self._options, rungs={node: step.rung for node, step in self._steps.items()})
        if budget(self._case.precision) is not None:
            self._precision = plan.precision
            asked = {node: step.asked for step in plan.steps for node in step.nodes}
            self._options = replace(self._options, mix=asked if plan.mixed else None)
        self._isolated = self._taken(plan)
        self._unchecked()
        wrong = {name: stats for name, stats in self._isolated.items() if not stats.ok}
        if wrong:
            name = next(iter(wrong))
            raise Incorrect(wrong[name], f"layer {self._words(name)} alone, fed right inputs")

    def known(self, along: bool = False) -> tuple[Layer, ...]:
        """The layers at the case's batch with the errors that were found before timing, without times; () of
        what was not looked at then. along: also the errors with what the layers before them computed, so that
        it can be told where a wrong answer begins."""
        if self._isolated is None:
            return ()
        golden = self._loaded.golden()
        at = (self._loaded.graph, self._backend, self._precision, self._options, golden)
        propagated: dict[str, ErrorStats] = {}
        if along:
            with contextlib.suppress(KernelscopeError, MemoryError):  # what is known is told without it
                propagated = layer_errors.propagated(*at)
        found = layers.measure(*at, self._case.batch, found=Errors(self._isolated, propagated), times=False)
        return tuple(self._by(layer) for layer in found)

    def _by(self, layer: Layer) -> Layer:
        """With the rung that runs it, what chose that, and what it computes in."""
        step = next((self._steps[node] for node in layer.nodes if node in self._steps), None)
        if step is None:
            return layer
        if layer.rung not in ("", step.rung):  # one kernel did it together with others
            return layer
        return msgspec.structs.replace(layer, rung=step.rung, chosen=step.chosen, precision=step.precision)

    def measured(self, session: Session, seconds: float, alone: bool = False) -> tuple[Layer, ...]:
        """Every layer's time at the case's batch, its errors, and their ratio to the reference's own. alone:
        of errors those of each layer fed right inputs, and nothing of the reference."""
        case, loaded = self._case, self._loaded
        golden, graph = loaded.golden(), loaded.graph
        if self._isolated is None:
            self._isolated = self._taken(None)
        propagated: dict[str, ErrorStats] = {}
        if not alone:
            propagated = layer_errors.propagated(graph, self._backend, self._precision, self._options, golden)
        reference = backends.get(self._backend.reference)
        found = layers.measure(
            graph,
            self._backend,
            self._precision,
            self._options,
            golden,
            case.batch,
            session=session,
            reference=None if alone or reference.unavailable() is not None else reference,
            found=Errors(self._isolated, propagated),
            seconds=seconds,
        )
        found = tuple(self._by(layer) for layer in found)
        self._mark(found)
        return found

    # ------------------------------------------------------------------------------------------- the inside

    def _taken(self, plan: Plan | None) -> dict[str, ErrorStats]:
        """None where another than float64 judges: what it cannot answer for the model, or is not believed,
        it cannot for the layers."""
        case, loaded = self._case, self._loaded
        loaded.golden()
        if loaded.judge != ORACLE:
            return {}
        at = (loaded.graph, self._backend, self._precision, self._options, loaded.golden())
        steps = () if plan is None else _spans(plan, loaded.graph)
        refused: list[str] = []
        found = layer_errors.isolated(*at, steps, loaded.tell, refused)
        own = self._at_its_batch(plan)
        own = None if own is None else [*own, *refused]
        if own is None or own:
            for part, stats in layer_errors.errors_at(*at, case.batch, own):
                if part.output not in found or found[part.output].ok or not stats.ok:
                    found[part.output] = stats
        return found

    def _at_its_batch(self, plan: Plan | None) -> list[str] | None:
        """The nodes whose layers are also looked at at the case's own batch; None: all."""
        if self._case.batch <= self._loaded.golden().images:
            return []
        if plan is None:
            return None if self._options.ort is not None else []
        dirs = self._options.kernel_dirs
        own = [s for s in plan.steps if dirs and registry.find(plan.device, s.op, s.rung, dirs).user]
        return [node for step in own for node in step.nodes]

    def _unchecked(self) -> None:
        """Say which layers were not looked at, where the oracle knows them."""
        loaded = self._loaded
        golden = loaded.golden()
        if self._isolated is None or loaded.judge != ORACLE:
            return
        parts = [part for part in groups.groups(loaded.graph, golden.images) if part.flops]
        missing = [part.nodes[0] for part in parts if part.output not in self._isolated]
        if missing:
            names = ", ".join(missing[:4]) + (", …" if len(missing) > 4 else "")
            self.warnings.append(f"{len(missing)} of {len(parts)} layers could not be checked alone: {names}")

    def _mark(self, found: tuple[Layer, ...]) -> None:
        """Say of a reference which of its layers is beyond the bound, and of ours what is carried along."""
        kind = "isolated" if self._is_library else "propagated"
        told = [(layer, getattr(layer, kind)) for layer in found]
        off = [(layer, stats) for layer, stats in told if stats is not None and not stats.ok]
        if not off:
            return
        layer, stats = max(off, key=lambda item: float(item[1].rel_l2))
        more = f" (and {len(off) - 1} more)" if len(off) > 1 else ""
        how = "alone" if self._is_library else "with the errors of those before it"
        self.warnings.append(f"layer {layer.nodes[0]} {how}: {stats.reason}{more}")

    def _words(self, output: str) -> str:
        """A layer by its nodes and what computes it."""
        for layer in self.known():
            if layer.output == output:
                rungs = [self._options.rungs[node] for node in layer.nodes if node in self._options.rungs]
                by = f" ({', '.join(rungs)})" if rungs else ""
                return f"{layer.nodes[0]}{by}"
        return output


def _spans(plan: Plan, graph: Graph) -> list[tuple[str, ...]]:
    """The nodes of each step. A step whose output is no tensor of the model has nothing that could be
    compared: it is looked at with those that read it."""
    known = {name for node in graph.nodes for name in node.outputs}
    makers = {step.output: step for step in plan.steps}
    spans = []
    for step in plan.steps:
        inner = [makers[name].nodes for name in step.inputs if name in makers and name not in known]
        spans.append((*(node for nodes in inner for node in nodes), *step.nodes))
    return spans
