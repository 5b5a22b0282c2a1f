"""The reference on an NVIDIA GPU in its fastest configuration, whatever its error.

A sweep (`compare --tune-reference`) measures which configuration that is, and keeps it. Without a sweep the
case is refused.
"""

from __future__ import annotations

from dataclasses import replace

from engine.backend import Backend, Options, Session
from engine.backends.ort_cuda import BACKEND as ORT_CUDA
from engine.graph.graph import Graph
from engine.options import Configuration
from engine.ort import sessions as ort
from engine.ort import tuning as ort_tuning
from engine.planning.choices import Choice
from kernels.errors import UnsupportedError
from kernels.precision import FP32


class Tuned:
    """ONNX Runtime (`plain`) in the configuration that a sweep found fastest; see engine.backend.Backend and
    Variant. strict: only configurations count whose every layer is within the precision's bound."""

    def __init__(self, plain: Backend, name: str, title: str, strict: bool) -> None:
        self.name, self.title = name, title
        self.device, self.precisions, self.apart = plain.device, plain.precisions, plain.apart
        self.reference = self.variant_of = plain.name
        self.end_to_end = "model"
        self.lenient = not strict
        self._plain = plain

    def unavailable(self) -> str | None:
        return self._plain.unavailable()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        reason = ort.refusal(graph, batch, precision, self.precisions, self.name)
        if reason is not None:
            return reason
        try:
            self._configuration(graph, batch, precision)
        except UnsupportedError as error:
            return str(error)
        return None

    def resolved(self, graph: Graph, batch: int, precision: str, options: Options) -> Options:
        return replace(options, ort=self._configuration(graph, batch, precision))

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """As the plain backend's; options without a configuration are resolved first. Raises
        UnsupportedError also where no sweep has been made."""
        options = options or Options()
        if options.ort is None:
            options = self.resolved(graph, batch, precision, options)
        session = self._plain.prepare(graph, batch, precision, options)
        session.backend = self.name
        sweep = ort_tuning.read(self.variant_of, graph, batch, precision)
        if sweep is not None:
            on = ort_tuning.machine()
            session.facts = {**session.facts, **facts(sweep, options.ort), "tuned_on": on}
        return session

    def _configuration(self, graph: Graph, batch: int, precision: str) -> Configuration:
        sweep = ort_tuning.read(self.variant_of, graph, batch, precision)
        if sweep is None or not sweep.done:
            raise UnsupportedError(
                f"{self.variant_of} was not tuned for {graph.name} at batch {batch} in {precision} on this "
                "machine; compare --tune-reference does that"
            )
        chosen = sweep.lenient if self.lenient else sweep.best
        if chosen is None:
            what = "" if self.lenient else " with every layer and its answer within the bound"
            raise UnsupportedError(
                f"no configuration of {self.variant_of} runs {graph.name} at batch {batch} in {precision}"
                f"{what}{_why(sweep, self.lenient)}"
            )
        return chosen


def facts(sweep: Choice[Configuration], configuration: Configuration | None) -> dict[str, str]:
    """For the record: when the sweep was made, out of how many configurations, which of them were right only
    at first, and how large this configuration's error was."""
    refused = sum(bool(tried.refused) for tried in sweep.tried)
    words = {
        "tuned_at": sweep.chosen_at,
        "tuned_among": f"{len(sweep.tried)} configurations"
        + (f", {refused} of them refused" if refused else ""),
    }
    if doubted := [f"{tried.variant.words}: {tried.doubt}" for tried in sweep.tried if tried.doubt]:
        words["tuned_doubted"] = "; ".join(doubted)
    tried = sweep.of(configuration)
    if tried is not None and tried.layer_error is not None:
        words["tuned_worst_layer"] = f"{tried.layer}, relative L2 error {tried.layer_error:.2e}"
    default = sweep.of(sweep.default)
    if tried is not None and tried.time_ns and default is not None and default.time_ns:
        words["tuned_gain"] = f"{default.time_ns / tried.time_ns:.2f} × the default, when it was tuned"
    return words


def _why(sweep: Choice[Configuration], lenient: bool) -> str:
    reasons = [tried.refused for tried in sweep.tried if tried.refused]
    if not lenient:  # what was right until it was seen again says more
        reasons = [f"{t.variant.words}, {t.doubt}" for t in sweep.tried if t.doubt] + reasons
    return f": {reasons[0]}" if reasons else ""


BACKEND = Tuned(ORT_CUDA, "ort-cuda-tuned", "ONNX Runtime (CUDA), tuned", strict=False)
