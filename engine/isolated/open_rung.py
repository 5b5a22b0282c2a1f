"""A rung alone, in an isolated process: bound to an arena that lies in the parent's memory.

The parent writes the inputs, poisons, reads the answer and looks for strays; here is the kernel, and what it
is called with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from engine.cpu.steps import Blas, calls_of_pass, divide
from engine.graph.plan import Step
from engine.isolated import slots
from engine.rung_session import ArenaLayout
from kernels.cpu import Bound, line_in, load
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError
from kernels.ops import Params
from kernels.registry import Rung


class RungHere:
    """weights: by an input's place; None: it is there at run time alone. memory["workspace"]: bytes of
    scratch that the arena needs room for."""

    def __init__(
        self, rung: Rung, params: Params, weights: Sequence[np.ndarray | None], threads: int
    ) -> None:
        self._rung, self._params, self._weights, self._threads = rung, params, list(weights), threads
        kernel = load(rung)
        names = tuple(f"input {i}" for i in range(len(weights)))
        step = Step(rung.name, (rung.name,), params, names, "output", rung.name)
        with self._in_words("prepare"), np.errstate(all="ignore"):
            # Of weights that lie in the arena, what the kernel makes of them is its own.
            self._packed = kernel.pack(params, [None if a is None else np.array(a) for a in weights])
            self._made = divide(step, rung, kernel, self._packed, threads)
        self._calls: tuple[Bound, ...] = ()
        self._blas = Blas()
        self.given: dict[str, np.ndarray] = {}
        self._output = np.empty(0)
        self.phases: Mapping[str, int] = {}
        self.memory: Mapping[str, int] = {"workspace": int(self._made.workspace_nbytes)}
        self.facts: Mapping[str, str] = {
            "threads": str(threads),
            "blas": self._blas.words,
            "parts": str(len(self._made.parts)),
        }

    def answers(self) -> Mapping[str, np.ndarray]:
        return {"output": self._output} if self._output.size else {}

    def place(
        self,
        layout: ArenaLayout,
        inputs: Sequence[tuple[tuple[int, ...], str]],
        data: Sequence[int],
        arena: np.ndarray,
    ) -> None:
        """Bind the kernel to this arena. inputs: shapes and dtypes; data: the places of those that are no
        weights."""

        def held(name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
            offset, size = layout.places[name]
            return arena[offset : offset + size].view(dtype).reshape(shape)

        views = [held(f"input {i}", *of) for i, of in enumerate(inputs)]
        # Weights that the rung lays out anew are its own; those that it leaves are read where they lie.
        read = [
            view if array is None or (array.shape == view.shape and np.array_equal(array, view)) else array
            for view, array in zip(views, self._packed, strict=True)
        ]
        dtype = np.dtype(self._params.out_dtype)
        self._output = held("output", self._params.output_shape, dtype.name)
        workspace = np.empty(0, np.uint8)
        if "workspace" in layout.places:
            workspace = held("workspace", (layout.places["workspace"][1],), "uint8")
        with self._in_words("prepare"), np.errstate(all="ignore"):
            call = self._made.bind(read, self._output, workspace.view(np.float32), self._threads)
        self.given = {f"input {i}": views[i] for i in data}
        self._calls = calls_of_pass([self._made], [call], self._blas.limit, self._threads)

    def run(self) -> None:
        with self._in_words("run"), np.errstate(all="ignore"):
            for call in self._calls:
                call()

    def passes(self, untimed: int, count: int, done: Callable[[], None]) -> None:
        """See slots.passes."""
        with self._in_words("run"), np.errstate(all="ignore"):
            slots.passes(self._calls, untimed, count, done)

    def close(self) -> None:
        self._calls = ()

    @contextlib.contextmanager
    def _in_words(self, doing: str) -> Iterator[None]:
        try:
            yield
        except KernelscopeError:
            raise
        except MemoryError as error:
            raise OutOfMemoryError(f"memory did not suffice to {doing} {self._rung.label}") from error
        except Exception as error:  # whatever a rung raises
            line = line_in(self._rung, error)
            where = f"{self._rung.path}:{line}: " if line is not None else ""
            text = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            raise KernelError(f"{where}{self._rung.label} did not {doing}: {text}") from error


opened = RungHere
