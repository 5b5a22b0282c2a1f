"""A session looked at while it is prepared and run: what each part of it took, what it does in which order.

Nothing of this is paid by a session that nobody looks at: functions are replaced for the time of a block, in
the one place where their callers find them, and put back at its end.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from engine.backend import Part
from engine.graph.plan import Step
from kernels.errors import KernelscopeError


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


@dataclass(frozen=True)
class Taken:
    """A call that was watched: what it is called, perf_counter_ns before and after, and what it returned."""

    name: str
    start_ns: int
    end_ns: int
    result: Any = None


@dataclass(frozen=True)
class Watched:
    """A function to watch: `attribute` of the module (imported where it is not yet) or of the object."""

    name: str
    owner: str
    attribute: str


# What preparing a session spends its time on, by what it is in words.
PREPARING = {
    "engine-cuda": (
        Watched("NVRTC compile", "kernels.nvrtc", "compile_rung"),
        Watched("module load", "cupy", "RawModule"),
    ),
    "ort": (
        Watched("cuDNN and cuBLAS load", "onnxruntime", "preload_dlls"),
        Watched("session creation", "engine.ort.sessions", "create_session"),
    ),
}

# What copies between pageable and page-locked memory spend the host's time on; each returns the bytes.
STAGING = (
    Watched("fill page-locked memory", "engine.cuda.runtime", "fill"),
    Watched("empty page-locked memory", "engine.cuda.runtime", "empty"),
)


@contextlib.contextmanager
def watching(targets: Sequence[Watched]) -> Iterator[list[Taken]]:
    """Every call of the targets inside the block, in order of its end. What is not there is not watched."""
    taken: list[Taken] = []
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for target in targets:
            try:
                owner = importlib.import_module(target.owner)
                original = getattr(owner, target.attribute)
            except (ImportError, AttributeError):
                continue
            setattr(owner, target.attribute, _timed(target.name, original, taken))
            replaced.append((owner, target.attribute, original))
        yield taken
    finally:
        for owner, attribute, original in reversed(replaced):
            setattr(owner, attribute, original)


def _timed(name: str, function: Callable[..., Any], taken: list[Taken]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        started = time.perf_counter_ns()
        result = None
        try:
            result = function(*arguments, **named)
            return result
        finally:
            taken.append(Taken(name, started, time.perf_counter_ns(), result))

    return call


class OrtProfile:
    """ONNX Runtime's own profile of the session that is made inside `recording`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: Any = None
        self.zeros_ns: tuple[int, ...] = ()  # when it may have begun, in perf_counter_ns; after `end`

    @property
    def optimized(self) -> Path | None:
        """The model as ONNX Runtime runs it, None where it was not written."""
        path = self._folder / "optimized.onnx"
        return path if path.is_file() else None

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Sessions made inside write a profile; the last one's counts."""
        ort: Any = importlib.import_module("engine.ort.sessions")
        original = ort.create_session

        def create(runtime: Any, graph: Any, batch: int, options: Any, providers: Any) -> Any:
            from engine.ort.profile import write_optimized

            def profiled(optimized: bool) -> Any:
                made = options()
                made.enable_profiling = True
                made.profile_file_prefix = str(self._folder / "profile")
                if optimized:
                    write_optimized(made, self._folder / "optimized.onnx")
                return made

            try:
                self._session = original(runtime, graph, batch, lambda: profiled(True), providers)
            except KernelscopeError:  # no room for the optimised model: the profile is had without its nodes
                self._session = original(runtime, graph, batch, lambda: profiled(False), providers)
            return self._session

        ort.create_session = create
        try:
            yield
        finally:
            ort.create_session = original

    def end(self) -> Path | None:
        """Stop; the file that was written, None where no session was made. The session has to live still."""
        session, self._session = self._session, None
        if session is None:
            return None
        self.zeros_ns = _zeros(session)
        return Path(session.end_profiling())


def _zeros(session: Any) -> tuple[int, ...]:
    """When a session's profile began, in perf_counter_ns: by the system's clock, or by the steady one. Which
    of them a build of ONNX Runtime reads shows where the runs are known."""
    try:
        began = int(session.get_profiling_start_time_ns())
    except AttributeError:
        return ()
    before = time.perf_counter_ns()
    wall, steady = time.time_ns(), time.monotonic_ns()
    now = (before + time.perf_counter_ns()) // 2
    return (began - (wall - now), began - (steady - now))
