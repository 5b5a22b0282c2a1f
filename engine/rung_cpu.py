"""A rung of the CPU ladder as a session of one step, divided among threads as the engine divides it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from engine import host
from engine.cpu_steps import Blas, aligned, divided, in_order
from engine.plan import Step
from engine.rung_rows import Given, blocks, changed, raw
from engine.rung_session import (
    BLOCK_NBYTES,
    GUARD,
    LOOKED_AT,
    WEIGHTS,
    Picked,
    Stray,
    data_inputs,
    layout,
    output_rows,
    output_shape,
)
from kernels.cpu import line_in, load
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError
from kernels.params import Params
from kernels.registry import Rung


class CpuRungSession:
    """See engine.rung_session.RungSession."""

    def __init__(
        self, rung: Rung, params: Params, inputs: Sequence[Given], threads: int | None = None
    ) -> None:
        self._rung = rung
        threads = threads or host.physical_cores()
        kernel = load(rung)
        names = tuple(f"input {i}" for i in range(len(inputs)))
        step = Step(rung.name, (rung.name,), params, names, "output", rung.name)
        weights = WEIGHTS.get(params.op, ())
        with self._in_words("prepare"), np.errstate(all="ignore"):
            given = [np.array(array) if i in weights else None for i, array in enumerate(inputs)]
            packed = kernel.pack(params, given)
            made = divided(step, rung, kernel, packed, threads)
            self._layout = layout(params, inputs, made.workspace_nbytes)
            self._arena = aligned(self._layout.nbytes)
            self._arena.fill(GUARD)
            self._inputs = [self._view(name, array) for name, array in zip(names, inputs, strict=True)]
            for view, array in zip(self._inputs, inputs, strict=True):
                np.copyto(view, np.asarray(array))
            # Weights that the rung lays out anew are its own; those that it leaves are read where they lie.
            read = [
                view
                if array is None or (array.shape == view.shape and np.array_equal(array, view))
                else array
                for view, array in zip(self._inputs, packed, strict=True)
            ]
            self._expected = list(inputs)
            self._random = np.random.default_rng()
            self._data = data_inputs(params, len(inputs))
            shape, dtype = output_shape(params), np.dtype(getattr(params, "to", params.dtype))
            self._output = self._bytes("output").view(dtype).reshape(shape)
            self._rows = self._output.reshape(output_rows(params))
            workspace = self._bytes("workspace") if made.workspace_nbytes else np.empty(0, np.uint8)
            self._workspace = workspace
            call = made.bind(read, self._output, workspace.view(np.float32), threads)
        blas = Blas()
        self._calls = in_order([made], [call], blas.limit)
        self.facts: Mapping[str, str] = {
            "threads": str(threads),
            "blas": blas.words,
            "parts": str(len(made.parts)),
        }
        self.compiled: Mapping[str, float] = {}

    def write(self, data: Sequence[Given]) -> None:
        for i, array in zip(self._data, data, strict=True):
            np.copyto(self._inputs[i], np.asarray(array))
            self._expected[i] = array

    def poison(self, byte: int) -> None:
        self._bytes("output").fill(byte)
        self._workspace.fill(byte)

    def run(self) -> None:
        with self._in_words("run"), np.errstate(all="ignore"):
            for call in self._calls:
                call()

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def output(self, rows: Picked = None) -> np.ndarray:
        if rows is None:
            return self._output.copy()
        return self._rows[rows if isinstance(rows, slice) else np.asarray(rows, np.int64)].copy()

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        found = []
        for start, end in self._layout.guards:
            wrong = np.flatnonzero(self._arena[start:end] != GUARD)
            if wrong.size:
                found.append(self._layout.stray(start + int(wrong[0]), wrong.size))
        for i, (view, expected) in enumerate(zip(self._inputs, self._expected, strict=True)):
            held, first, count = raw(view), -1, 0
            each = max(1, view.nbytes) if whole else BLOCK_NBYTES
            for part in blocks(view.nbytes, whole, self._random, each, LOOKED_AT):
                if (there := changed(held[part], expected, part.start)) is not None:
                    first, count = there[0] if first < 0 else first, count + there[1]
            if count:
                found.append(Stray(f"input {i}", first, count, view.nbytes))
        return tuple(found)

    def time_runs(self, count: int, cold: bool = False) -> int:
        calls = self._calls
        with self._in_words("run"), np.errstate(all="ignore"):
            if cold:
                host.overwrite_caches()
            started = time.perf_counter_ns()
            for _ in range(count):
                for call in calls:
                    call()
            return time.perf_counter_ns() - started

    def close(self) -> None:
        self._calls = ()

    def _bytes(self, name: str) -> np.ndarray:
        offset, size = self._layout.places[name]
        return self._arena[offset : offset + size]

    def _view(self, name: str, array: Given) -> np.ndarray:
        return self._bytes(name).view(array.dtype).reshape(array.shape)

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
