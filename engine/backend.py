"""The one interface every backend stands behind; bench knows nothing else of an engine.

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
from engine.stirring import Witness, Witnessed
from kernels.errors import UnsupportedError

__all__ = [
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
    "Witness",
    "Witnessed",
    "check_inputs",
    "is_ort",
]


@dataclass(frozen=True)
class OpTime:
    """Median time of one operator in its profile pass, by the clock named in `clock`.

    `nodes` are the ONNX node names it covers; clock is "host" (perf_counter round a synchronous call),
    "events" (CUDA events), "stamps" (its share of one kernel's time by events, as clock stamps in its
    blocks tell it) or "isolated" (a one-step model of its own, timed by events). `nbytes`: what it reads and
    writes as the session keeps its tensors; None where the session does not tell.
    """

    nodes: tuple[str, ...]
    op_type: str
    time_ns: float
    clock: str
    rung: str = ""
    chosen: str = ""
    nbytes: int | None = None


@dataclass(frozen=True)
class Part:
    """Of a launch that does several steps: what it is called, the step that it is of, and nanoseconds."""

    name: str
    step: Step
    time_ns: float


class Session(Protocol):
    """A prepared model at one batch size. Not thread-safe. `close` frees everything; using it after is an
    error.

    phases: ns spent preparing: "load" (graph passes and planning), "compile", "alloc", "upload" (weights).
    memory: nbytes by "weights", "arena", "workspace" (what the backend knows; absent where it doesn't).
    facts: what was really used, in words, for the record ("provider": "CUDAExecutionProvider", …).
    """

    backend: str
    precision: str
    batch: int
    phases: Mapping[str, int]
    memory: Mapping[str, int]
    facts: Mapping[str, str]

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Copy inputs (name → array of the full batch) to where `run` reads them; returns when copied. The
        arrays stay as they are until others are bound: timed passes are held against them."""

    def run(self) -> None:
        """Start one forward pass; on a GPU it may return before the pass has ended."""

    def synchronize(self) -> None:
        """Wait until every started pass has ended; device errors surface here."""

    def fetch(self) -> dict[str, np.ndarray]:
        """Copies of the outputs of the last pass, float32, by ONNX name."""

    def time_runs(self, count: int, cold: bool = False) -> int:
        """Nanoseconds that `count` passes in a row take on the device's own clock (CUDA events, or
        perf_counter on a CPU), nothing else included. `cold` (count 1): the caches are overwritten before,
        outside the timed window. No two passes are given the same inputs where the session is `Witnessed`;
        afterwards those that were bound lie there again."""

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """Per-operator times from a pass of its own over the bound inputs, spending about `seconds`."""

    def close(self) -> None: ...


@runtime_checkable
class Planned(Protocol):
    """A Session that runs a plan of ours. plan: what runs, step by step, by which rung."""

    @property
    def plan(self) -> Plan: ...


@runtime_checkable
class Stepped(Protocol):
    """A Session that runs its plan step by step on the host."""

    def run_timed(self) -> tuple[tuple[Step, int, int], ...]:
        """One forward pass: each step with perf_counter_ns when it began and when it had ended."""


@runtime_checkable
class Launching(Protocol):
    """A Session that starts the same kernels in the same order in every pass."""

    def launch_order(self) -> tuple[tuple[Step, str], ...]:
        """What one pass puts on the device, in order: the step it belongs to, and the kernel's name, or
        "memcpy", or "cuBLAS" for one or several kernels of names that are the library's."""


@runtime_checkable
class Parted(Protocol):
    """A Session one of whose launches may do several steps."""

    def launch_parts(self) -> tuple[Part, ...]:
        """That launch's parts, one after the other, as clock stamps in a build of its own tell them; () where
        there is no such launch, or that cannot be had. Passes are run for it."""


@runtime_checkable
class Queued(Protocol):
    """A Session whose device can be held back while its passes are queued."""

    def time_queued(self, count: int) -> int:
        """As time_runs, but of the device alone: the passes wait until all are queued, so that what the host
        takes to start each (tens of µs in ONNX Runtime) is not in it."""


def in_one_thread(session: Any) -> bool:
    """Whether its passes take one thread, on the core that all such are timed on (engine.machine.cores)."""
    return bool(getattr(session, "one_thread", False))


def parts_ns(session: Any) -> Sequence[float]:
    """Of one that takes one thread: nanoseconds of a pass in each part of what was timed last."""
    parts: Sequence[float] = session.parts_ns
    return parts


class Warmed(Protocol):
    """What takes samples, and can run passes whose times nobody keeps. Asked before each train, so that it is
    looked for by its method's name."""

    def warm_runs(self, count: int) -> int:
        """As time_runs, for less: what is taken off the time is known less well."""


def warm_runs(session: Any, count: int) -> int:
    """Nanoseconds of passes in a warm-up, of whatever has time_runs."""
    elapsed_ns: int = getattr(session, "warm_runs", session.time_runs)(count)
    return elapsed_ns


@runtime_checkable
class Variant(Protocol):
    """A Backend that is another one, configured by what was measured on this machine. It takes part only
    where it is asked for.

    variant_of: the other's name. lenient: its answers are shown with their error, and count as right up to
    the loosest bound of any precision.
    """

    variant_of: str
    lenient: bool

    def resolved(self, graph: Graph, batch: int, precision: str, options: Options) -> Options:
        """`options` with the configuration for this model, batch and precision filled in, so that parts of
        the model run by it too. Raises UnsupportedError where nothing was measured for them."""


@runtime_checkable
class Rival(Protocol):
    """A Backend that takes part only where it is asked for by name. asked_only: True; get: how it comes to
    this machine, in a sentence; untried: "" where it was run by those who wrote it, else a sentence."""

    asked_only: bool
    get: str
    untried: str


def is_ort(backend: Backend) -> bool:
    """Whether ONNX Runtime runs this backend's models."""
    return backend.name.startswith("ort") and not isinstance(backend, Rival)


class Backend(Protocol):
    """name: as on the command line; device: "cpu" or "cuda"; reference: the backend that ours is compared
    with on this device (a reference names itself); precisions: those it offers; apart: the kind of process
    that its sessions run in (engine.apart.pool.KINDS), "" for the worker's own."""

    name: str
    title: str
    device: str
    reference: str
    precisions: tuple[str, ...]
    apart: str

    def unavailable(self) -> str | None:
        """Why this backend cannot run here and what would help, in a sentence; None if it can. Cheap: it
        starts no device."""

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        """Why this backend refuses this model (naming node, op and what is supported), or None."""

    def prepare(
        self, graph: Graph, batch: int, precision: str = "fp32", options: Options | None = None
    ) -> Session:
        """A session ready to bind and run. Raises UnsupportedError, UnavailableError, OutOfMemoryError,
        KernelError."""


def check_inputs(
    given: Mapping[str, np.ndarray], expected: Mapping[str, tuple[tuple[int, ...], np.dtype]]
) -> None:
    """Raise UnsupportedError where an input is missing, unknown or of another shape."""
    if set(given) != set(expected):
        raise UnsupportedError(
            f"the model's inputs are {', '.join(sorted(expected))}; given were {', '.join(sorted(given))}"
        )
    for name, (shape, _) in expected.items():
        if given[name].shape != shape:
            raise UnsupportedError(f"input {name} has shape {given[name].shape}; the session expects {shape}")
