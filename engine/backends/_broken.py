"""What stands on the list of backends for a plugin that gives none: its name, and why."""

from __future__ import annotations

from engine.backend import Options, Session
from engine.graph.graph import Graph
from kernels.errors import UnavailableError


class Broken:
    """See engine.backend.Backend."""

    device = "cpu"
    reference = "ort-cpu"
    precisions: tuple[str, ...] = ("fp32",)
    apart = ""
    asked_only = True
    get = ""
    untried = ""

    def __init__(self, name: str, reason: str) -> None:
        self.name = self.title = name
        self._reason = reason

    def unavailable(self) -> str | None:
        return self._reason

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return self._reason

    def prepare(
        self, graph: Graph, batch: int, precision: str = "fp32", options: Options | None = None
    ) -> Session:
        raise UnavailableError(f"{self.name} cannot run here: {self._reason}")
