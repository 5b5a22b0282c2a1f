"""Errors of a model's layers under configurations of a reference.

Each layer is looked at once for all configurations that are the same for it: one without a convolution knows
nothing of how those are searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from bench.measure.answers import layer_errors
from bench.measure.answers.oracle import Golden
from bench.results.records import ErrorStats
from engine.backend import Backend, Options
from engine.graph.graph import Graph
from engine.options import Configuration
from engine.ort.tuning import bearing


@dataclass
class LayerChecks:
    """Of one model on `backend` at one batch size and precision; `golden` has its inner tensors. `say` hears
    which layer is looked at, before it is. _known: by a layer's model and a configuration as far as it bears
    on it."""

    graph: Graph
    backend: Backend
    batch: int
    precision: str
    options: Options
    golden: Golden
    say: Callable[[str], None]
    _known: dict[tuple[str, Configuration], ErrorStats] = field(default_factory=dict)

    def errors(self, configuration: Configuration) -> Iterator[tuple[str, ErrorStats]]:
        """Of every layer its first node and how far off it is, as
        bench.measure.answers.layer_errors.errors_at has them. Raises OutOfMemoryError."""
        layer = "", configuration

        def known(model: Graph) -> ErrorStats | None:
            nonlocal layer
            layer = model.sha256, bearing(configuration, model)
            if layer not in self._known:
                self.say(f"checking {model.nodes[0].name} of {configuration.words}")
            return self._known.get(layer)

        options = replace(self.options, ort=configuration)
        at = (self.graph, self.backend, self.precision, options, self.golden, self.batch)
        for part, stats in layer_errors.errors_at(*at, known=known):
            self._known[layer] = stats
            yield part.nodes[0], stats
