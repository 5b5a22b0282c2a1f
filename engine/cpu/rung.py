"""One CPU kernel of the ladder as a session of a single step, divided among threads as the engine does it.

The kernel runs in an isolated process (engine.isolated.open_rung). Its buffers are shared memory: this
process writes the inputs and the poison, and reads the output and the guard bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from engine.cpu.steps import threads_worth
from engine.isolated import pool
from engine.isolated.memory import Block, Spec
from engine.isolated.messages import Opened
from engine.isolated.reopenable import Reopenable
from engine.isolated.timed import Arena
from engine.isolated.trains import IsolatedTrains
from engine.machine import host
from engine.machine.host import free_nbytes
from engine.rung_rows import Given, blocks, bytes_of, changed
from engine.rung_session import BLOCK_NBYTES, GUARD, LOOKED_AT, Picked, Stray, layout
from kernels.errors import KernelError, OutOfMemoryError
from kernels.ops import Params
from kernels.registry import Rung


class CpuRungSession(Reopenable):
    """See engine.rung_session.RungSession; also an engine.stirring.Witnessed."""

    def __init__(
        self, rung: Rung, params: Params, inputs: Sequence[Given], threads: int | None = None
    ) -> None:
        self._rung = rung
        threads = threads or host.physical_cores()
        own = (rung.path, rung.source) if rung.user else None
        used_threads = threads_worth(rung, params, threads)
        self.one_thread = used_threads == 1
        # Threads that a rung has once had would be woken and stopped with each pass of another.
        super().__init__(
            partial(pool.child, "rung" if used_threads == 1 else "rung threads", rung.label, own)
        )
        self._params, self._threads, self._taken = params, threads, used_threads
        try:
            self._prepare(inputs)
        except BaseException:
            self.close()
            raise
        self.compiled: Mapping[str, float] = {}
        self.moved = params.nbytes

    def _opened_again(self) -> None:
        last_output = self._output.copy()
        self._prepare(self._expected)
        self._output[...] = last_output

    def _prepare(self, inputs: Sequence[Given]) -> None:
        params, threads, used_threads = self._params, self._threads, self._taken
        weights = [np.asarray(array) if i in params.weight_inputs else None for i, array in enumerate(inputs)]
        self._number = self._child.number()
        opens = pool.KINDS["rung"].opens
        opened = self._child.call(
            "open", self._number, opens, self._rung, params, weights, used_threads, answers=Opened
        )
        workspace = opened.memory.get("workspace", 0)
        if workspace < 0:
            raise KernelError(f"{self._rung.label} asks for {workspace:,} bytes of workspace")
        if workspace > (free := free_nbytes()):  # all of it is written: guards lie around it
            raise OutOfMemoryError(
                f"{self._rung.label} asks for {workspace:,} bytes of workspace, and {free:,} are free"
            )
        # No others: the kernel may have it tell what it likes.
        child_facts = {name: opened.facts[name] for name in ("blas", "parts") if name in opened.facts}
        self._facts: dict[str, str] = child_facts | {"threads": str(threads)}
        self._layout = layout(params, inputs, workspace)
        block = Block(self._layout.nbytes)
        self._arena = block.bytes
        self._arena.fill(GUARD)
        self._inputs = [self._view(f"input {i}", array) for i, array in enumerate(inputs)]
        for view, array in zip(self._inputs, inputs, strict=True):
            np.copyto(view, np.asarray(array))
        self._expected = list(inputs)
        self._random = np.random.default_rng()
        self._data = params.data_inputs
        shape, dtype = params.output_shape, np.dtype(params.out_dtype)
        self._output = self._bytes("output").view(dtype).reshape(shape)
        self._rows = self._output.reshape(params.output_rows)
        self._workspace = self._bytes("workspace") if workspace else np.empty(0, np.uint8)
        shapes = [(view.shape, view.dtype.name) for view in self._inputs]
        self._child.call("place", self._number, self._layout, shapes, self._data, memory=block)
        block.close()
        self._trains = IsolatedTrains(
            self._child,
            self._number,
            {f"input {i}": Spec(self._inputs[i].shape, self._inputs[i].dtype.name) for i in self._data},
            {"output": Spec(shape, dtype.name)},
            Arena(
                {f"input {i}": self._inputs[i] for i in self._data},
                {"output": self._output},
                used_threads,
                threads,
            ),
            used_threads,
        )
        self._bound = False  # whether what is stirred is what was written last
        self._stirred = False  # whether the inputs are those of a timed pass

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts | self._trains.facts

    def write(self, data: Sequence[Given]) -> None:
        for i, array in zip(self._data, data, strict=True):
            np.copyto(self._inputs[i], np.asarray(array))
            self._expected[i] = array
        self._bound = self._stirred = False

    def poison(self, byte: int) -> None:
        self._bytes("output").fill(byte)
        self._workspace.fill(byte)

    def run(self) -> None:
        self._settle()
        self._asked("run")

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def output(self, rows: Picked = None) -> np.ndarray:
        if rows is None:
            return self._output.copy()
        return self._rows[rows if isinstance(rows, slice) else np.asarray(rows, np.int64)].copy()

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        strays: list[Stray] = []
        for start, end in self._layout.guards:
            wrong = np.flatnonzero(self._arena[start:end] != GUARD)
            if wrong.size:
                strays.append(self._layout.stray(start + int(wrong[0]), wrong.size))
        if self._stirred:
            strays += self._settle()
        for i, (view, expected) in enumerate(zip(self._inputs, self._expected, strict=True)):
            contents, first, count = bytes_of(view), -1, 0
            each = max(1, view.nbytes) if whole else BLOCK_NBYTES
            for part in blocks(view.nbytes, whole, self._random, each, LOOKED_AT):
                if (there := changed(contents[part], expected, part.start)) is not None:
                    first, count = there[0] if first < 0 else first, count + there[1]
            if count:
                strays.append(Stray(f"input {i}", first, count, view.nbytes))
        return tuple(strays)

    def time_runs(self, count: int, cold: bool = False) -> int:
        return self._timed(lambda: self._trains.time(count, cold))

    @property
    def parts_ns(self) -> Sequence[float]:
        """See engine.backend.parts_ns."""
        return self._trains.parts_ns

    def warm_runs(self, count: int) -> int:
        return self._timed(lambda: self._trains.time(count, rough=True))

    def _timed(self, passes: Callable[[], int]) -> int:
        def timed() -> int:
            self._bind()
            self._stirred = True
            return passes()

        return self._going_on(timed)

    def renew(self, count: int, alike: int) -> None:
        self._bind()
        self._trains.renew(count, alike)

    def time_renewed(self, count: int, cold: bool = False) -> float:
        def timed() -> float:
            self._bind()
            taken = self._trains.time_renewed(count, cold)
            self._stirred |= taken > 0
            return taken

        return self._going_on(timed)

    def renewed(self) -> Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        return self._trains.renewed()

    def _bind(self) -> None:
        """Take the written inputs as those that change before timed passes."""
        if not self._bound:
            self._trains.bind({f"input {i}": np.asarray(self._expected[i]) for i in self._data})
            self._bound = True

    def _settle(self) -> list[Stray]:
        """After timed passes: find what they wrote into the inputs, and restore the written inputs."""
        if not self._stirred:
            return []
        self._stirred = False
        strays = []
        last = self._trains.last_inputs()
        for i in self._data:
            view = self._inputs[i]
            if there := changed(bytes_of(view), last[f"input {i}"]):
                strays.append(Stray(f"input {i}", there[0], there[1], view.nbytes))
            np.copyto(view, np.asarray(self._expected[i]))
        return strays

    def _bytes(self, name: str) -> np.ndarray:
        offset, size = self._layout.places[name]
        return self._arena[offset : offset + size]

    def _view(self, name: str, array: Given) -> np.ndarray:
        return self._bytes(name).view(array.dtype).reshape(array.shape)

    def _asked(self, do: str, *arguments: Any, memory: Any = None, answers: Any = None) -> Any:
        return self._going_on(
            lambda: self._child.call(do, self._number, *arguments, memory=memory, answers=answers)
        )
