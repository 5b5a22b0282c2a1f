"""OpenVINO on the CPU as a rival, in an isolated process, in the environment that has it."""

from __future__ import annotations

from engine.backend import Options, Session, check_runs
from engine.graph.graph import Graph
from engine.isolated import pool
from engine.isolated.pool import Kind
from engine.isolated.session import IsolatedSession
from engine.ort.sessions import refusal
from kernels.environment import NEEDED, Environment, how_to_install
from kernels.precision import FP32

GET = how_to_install("openvino")
ENVIRONMENT = Environment("openvino", "OpenVINO", "openvino", GET, needs=NEEDED)
APART = pool.register(
    "openvino", Kind("OpenVINO on the CPU", "engine.rivals.openvino_cpu", True, 1, ENVIRONMENT.interpreter)
)


class OpenVinoCpu:
    """See engine.backend.Backend and Rival."""

    name = "openvino-cpu"
    title = "OpenVINO (CPU)"
    device = "cpu"
    reference = "ort-cpu"
    precisions: tuple[str, ...] = (FP32,)
    apart = APART
    asked_only = True
    get = GET
    untried = ""

    def unavailable(self) -> str | None:
        return ENVIRONMENT.missing()

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """A session ready to bind and run. Raises UnsupportedError, UnavailableError, OutOfMemoryError,
        KernelError."""
        check_runs(self, graph, batch, precision)
        what = f"{graph.name} on {self.name} at batch {batch}"
        session = IsolatedSession(APART, what, batch, (graph, batch, options or Options()))
        session.backend = self.name
        return session


BACKEND = OpenVinoCpu()
