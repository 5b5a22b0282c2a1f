"""The interface of all backends; bench knows nothing else of an engine.

A backend is a file in `engine/backends/` that defines `BACKEND`, an object of the protocol below, or a module
that an installed package names by entry point (see `engine.backends`). `prepare` compiles, allocates and
uploads; `run` only runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.graph.graph import Graph
from engine.graph.plan import Plan, Step
from engine.options import Options
from engine.rung_rows import Given
from engine.stirring import Witness, Witnessed
from kernels.errors import UnavailableError, UnsupportedError
from kernels.precision import FP32

__all__ = [
    "Answering",
    "Backend",
    "Launching",
    "OpTime",
    "Options",
    "Part",
    "Parted",
    "Planned",
    "Queued",
    "Rival",
    "Session",
    "Stepped",
    "Swapping",
    "Witness",
    "Witnessed",
    "by_default",
    "check_inputs",
    "check_runs",
    "is_ort",
]


@dataclass(frozen=True)
class OpTime:
    """The median time of one operator.

    nodes: names of the ONNX nodes that it covers. clock: "host" (perf_counter around a synchronous call),
    "events" (CUDA events), "stamps" (its share of one kernel's time, by clock stamps of the kernel's blocks),
    or "isolated" (a model of this step alone, timed by events). nbytes: bytes that it reads and writes, as
    the session keeps its tensors; None where the session does not say."""

    nodes: tuple[str, ...]
    op_type: str
    time_ns: float
    clock: str
    rung: str = ""
    chosen: str = ""
    nbytes: int | None = None


@dataclass(frozen=True)
class Part:
    """One part of a launch that does several steps: its name, the step that it belongs to, its
    nanoseconds."""

    name: str
    step: Step
    time_ns: float


class Session(Protocol):
    """A prepared model at one batch size. Not thread-safe. `close` frees everything; using it after is an
    error.

    phases: nanoseconds of each phase of preparing: "load" (graph passes and planning), "compile", "alloc",
    "upload" (weights). memory: nbytes by "weights", "arena", "workspace" (what the backend knows; absent
    where it doesn't). facts: what was really used, in words; kept in the record ("provider":
    "CUDAExecutionProvider", …)."""

    backend: str
    precision: str
    batch: int
    phases: Mapping[str, int]
    memory: Mapping[str, int]
    facts: Mapping[str, str]

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Copy the inputs (name → array of the full batch) to where `run` reads them. Returns when they are
        copied. The caller must not change the arrays until others are bound: timed passes are checked against
        them."""

    def run(self) -> None:
        """Start one forward pass; on a GPU it may return before the pass has ended."""

    def synchronize(self) -> None:
        """Wait until every started pass has ended; device errors surface here."""

    def fetch(self) -> dict[str, np.ndarray]:
        """Copies of the outputs of the last pass, float32, by ONNX name."""

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Nanoseconds of `count` passes in a row on the device's own clock (CUDA events, or perf_counter on a
        CPU), and of nothing else. cold (only with count 1): the caches are overwritten before the pass, which
        is not timed. In a `Witnessed` session each pass gets other inputs; afterwards the bound inputs are
        restored."""

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """The time of each operator, from extra passes over the bound inputs that take about `seconds`."""

    def close(self) -> None: ...


@runtime_checkable
class Planned(Protocol):
    """A Session that runs a plan of our engine. plan: the steps, and which rung computes each."""

    @property
    def plan(self) -> Plan: ...


@runtime_checkable
class Stepped(Protocol):
    """A Session that runs its plan step by step on the host."""

    def run_timed(self) -> tuple[tuple[Step, int, int], ...]:
        """Run one forward pass. For each step: perf_counter_ns at its begin and at its end."""


@runtime_checkable
class Launching(Protocol):
    """A Session that starts the same kernels in the same order in every pass."""

    def launch_order(self) -> tuple[tuple[Step, str], ...]:
        """What one pass starts on the device, in order: the step, and the name of the kernel, or "memcpy", or
        "cuBLAS" for one or several kernels of that library."""


@runtime_checkable
class Parted(Protocol):
    """A Session in which one launch may do several steps."""

    def launch_parts(self) -> tuple[Part, ...]:
        """The parts of that launch, in order, measured by clock stamps in a special build of its kernel. ()
        where there is no such launch, or no such build. Runs passes."""


@runtime_checkable
class Queued(Protocol):
    """A Session whose device can be made to wait until all its passes are queued."""

    def time_queued(self, count: int) -> int:
        """As time_runs, but the time of the device alone: the passes start only when all are queued, so that
        the host's time for starting each (tens of µs in ONNX Runtime) is not included."""


def in_one_thread(session: Any) -> bool:
    """Whether its passes use one thread only; all such sessions are timed on the same core
    (engine.machine.cores)."""
    return bool(getattr(session, "one_thread", False))


def parts_ns(session: Any) -> Sequence[float]:
    """For a session of one thread: nanoseconds of a pass, in each part of the samples that were timed
    last."""
    parts: Sequence[float] = session.parts_ns
    return parts


class Warmed(Protocol):
    """A session that can also run warm-up passes, whose times are not kept. Found by the name of its method,
    because that is asked before each train of passes."""

    def warm_runs(self, count: int) -> int:
        """As time_runs, but cheaper: what is subtracted from the time is known less exactly."""


def warm_runs(session: Any, count: int) -> int:
    """Nanoseconds of warm-up passes of any session that has time_runs."""
    elapsed_ns: int = getattr(session, "warm_runs", session.time_runs)(count)
    return elapsed_ns


@runtime_checkable
class Variant(Protocol):
    """A Backend that is another backend, configured by measurements on this machine. It takes part only where
    it is named.

    variant_of: name of the other backend. lenient: its answers are shown with their error, and count as right
    up to the loosest bound of all precisions.
    """

    variant_of: str
    lenient: bool

    def resolved(self, graph: Graph, batch: int, precision: str, options: Options) -> Options:
        """`options` with the configuration for this model, batch and precision, so that parts of the model
        can run with it, too. Raises UnsupportedError where nothing was measured for them."""


@runtime_checkable
class Swapping(Protocol):
    """A Backend that is another one in which some nodes are computed by kernels of the ladder: those that
    `Options.rungs` names. It takes part only where such a kernel is named (`compare --swap`). swaps_in: name
    of the other backend; invited: the two also take part where no backend is named, if they can run here."""

    swaps_in: str
    invited: bool


@runtime_checkable
class Rival(Protocol):
    """A Backend that takes part only where it is named. asked_only: True; get: a sentence on how to install
    it; untried: "" where its authors have run it, else a sentence that says so."""

    asked_only: bool
    get: str
    untried: str


@runtime_checkable
class Answering(Protocol):
    """A Backend that has answers and no times: it is judged, and never timed. It takes part only where it is
    named. untimed: True; rungs_of: the device whose kernels it runs."""

    untimed: bool
    rungs_of: str


def by_default(backend: Backend) -> bool:
    """Whether it takes part in a comparison that names no backends."""
    return not isinstance(backend, Variant | Rival | Swapping | Answering)


def is_ort(backend: Backend) -> bool:
    """Whether ONNX Runtime runs this backend's models."""
    return backend.name.startswith("ort") and not isinstance(backend, Rival)


class Backend(Protocol):
    """name: as on the command line; device: "cpu" or "cuda"; reference: the backend that it is compared with
    on this device (a reference names itself); precisions: those that it offers; apart: the kind of isolated
    process that its sessions run in (engine.isolated.pool.KINDS), "" for the worker's own process."""

    name: str
    title: str
    device: str
    reference: str
    precisions: tuple[str, ...]
    apart: str

    def unavailable(self) -> str | None:
        """Why this backend cannot run here and what would help, in a sentence; None if it can. Quick: it
        starts no device."""

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        """Why this backend refuses this model (naming node, op and what is supported), or None."""

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> Session:
        """A session ready to bind and run. Raises UnsupportedError, UnavailableError, OutOfMemoryError,
        KernelError."""


def check_runs(backend: Backend, graph: Graph, batch: int, precision: str) -> None:
    """Raise UnsupportedError where the backend refuses this model, UnavailableError where it cannot run
    here."""
    if reason := backend.supports(graph, batch, precision):
        raise UnsupportedError(reason)
    if reason := backend.unavailable():
        raise UnavailableError(f"{backend.name} cannot run here: {reason}")


def check_inputs(
    given: Mapping[str, Given], expected: Mapping[str, tuple[tuple[int, ...], np.dtype]]
) -> None:
    """Raise UnsupportedError where an input is missing, unknown or of another shape."""
    if set(given) != set(expected):
        raise UnsupportedError(
            f"the model's inputs are {', '.join(sorted(expected))}; given were {', '.join(sorted(given))}"
        )
    for name, (shape, _) in expected.items():
        if given[name].shape != shape:
            raise UnsupportedError(f"input {name} has shape {given[name].shape}; the session expects {shape}")
