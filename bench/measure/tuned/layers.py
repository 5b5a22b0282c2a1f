"""Errors of a model's layers under configurations of a reference.

Each layer is looked at once for all configurations that are the same for it: one without a convolution knows
nothing of how those are searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bench.measure.answers import layer_errors
from bench.measure.answers.oracle import Golden
from bench.results.records import ErrorStats
from engine.backend import Backend, Options, Session
from engine.graph.graph import Graph
from engine.options import Configuration
from engine.ort.tuning import bearing
from kernels.errors import UnsupportedError

Found = tuple[str, ErrorStats]  # a layer's first node, and how far off it is
_Key = tuple[str, Configuration]  # a layer's model, and a configuration as far as it bears on it


@dataclass
class LayerChecks:
    """Of one model on `backend` at one batch size and precision; `golden` has its inner tensors. `say` hears
    which layer is looked at, before it is."""

    graph: Graph
    backend: Backend
    batch: int
    precision: str
    options: Options
    golden: Golden
    say: Callable[[str], None]
    _known: dict[_Key, Found] = field(default_factory=dict)

    def errors(self, configuration: Configuration) -> Iterator[Found]:
        """Of every layer, as bench.measure.answers.layer_errors.errors_at has them. Raises
        OutOfMemoryError.
        """
        unknown = _Unknown(self.backend, self._known, self.say)
        options = replace(self.options, ort=configuration)
        judged = layer_errors.errors_at(self.graph, unknown, self.precision, options, self.golden, self.batch)
        for part, stats in judged:
            yield from unknown.passed_over()
            found = self._known[unknown.layer] = part.nodes[0], stats
            yield found
        yield from unknown.passed_over()


class _Unknown:
    """`backend` for the layers of which nothing is known yet. It refuses the others, so that a check passes
    them over: what is known of those is had of `passed_over`."""

    def __init__(self, backend: Backend, known: dict[_Key, Found], say: Callable[[str], None]) -> None:
        self._backend, self._known, self._say = backend, known, say
        self._met: list[_Key] = []
        self.layer: _Key = ("", Configuration())  # the one last asked for

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def prepare(
        self, graph: Graph, batch: int, precision: str = "fp32", options: Options | None = None
    ) -> Session:
        configuration = (options and options.ort) or Configuration()
        self.layer = graph.sha256, bearing(configuration, graph)
        if self.layer in self._known:
            self._met.append(self.layer)
            raise UnsupportedError(f"{graph.name} was looked at before")
        self._say(f"checking {graph.nodes[0].name} of {configuration.words}")
        return self._backend.prepare(graph, batch, precision, options)

    def passed_over(self) -> list[Found]:
        """Of the layers refused since this was last asked for."""
        met, self._met = self._met, []
        return [self._known[key] for key in met]
