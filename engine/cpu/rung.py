"""One CPU kernel of the ladder as a guarded session of a plan of one step.

It runs in an isolated process, as the plan of a net does (engine.isolated.session). Its buffers are shared
memory: this process writes the inputs and the poison, and reads the output and the guard bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.cpu.steps import threads_worth
from engine.graph.plan import TensorSpec
from engine.isolated.memory import Block, Spec
from engine.isolated.messages import Opened
from engine.isolated.session import IsolatedSession
from engine.machine import host
from engine.machine.host import free_nbytes
from engine.rung_rows import Given, bytes_of, changed
from engine.rung_session import GUARD, Picked, Stray, layout, one_step, strays
from kernels.errors import KernelError, OutOfMemoryError
from kernels.ops import Params
from kernels.registry import Rung


class CpuRungSession(IsolatedSession):
    """See engine.rung_session.RungSession."""

    def __init__(
        self, rung: Rung, params: Params, inputs: Sequence[Given], threads: int | None = None
    ) -> None:
        told = threads or host.physical_cores()
        used = threads_worth(rung, params, told)
        self._made = made = one_step(rung, params, inputs)
        self._first = dict(zip(made.steps[0].inputs, inputs, strict=True))
        self._rows, self._random = params.output_rows, np.random.default_rng()
        self._into_inputs: list[Stray] = []  # what timed passes wrote there
        own = (rung.path, rung.source) if rung.user else None
        # Threads that a rung has once had would be woken and stopped with each pass of another.
        kind, batch = "rung" if used == 1 else "rung threads", made.batch
        arguments = made, (rung,), rung.label, used, True, True
        outputs = {name: _spec(made.tensors[name]) for name in made.outputs}
        super().__init__(kind, rung.label, batch, arguments, own, outputs, used, told)
        # No others: the kernel may have it tell what it likes.
        told_facts = {name: self._facts[name] for name in ("blas", "parts") if name in self._facts}
        self.facts = told_facts | {"threads": str(told)}
        self.compiled: Mapping[str, float] = {}
        self.moved = params.nbytes
        self.bind({name: self._first[name] for name in made.inputs})

    def _lay(self, opened: Opened) -> None:
        workspace, made, what = opened.memory.get("workspace", 0), self._made, self._what
        if workspace < 0:
            raise KernelError(f"{what} asks for {workspace:,} bytes of workspace")
        if workspace > (free := free_nbytes()):  # all of it is written: guards lie around it
            raise OutOfMemoryError(f"{what} asks for {workspace:,} bytes of workspace, and {free:,} are free")
        self._layout = layout(made, workspace)
        block = Block(self._layout.nbytes)
        self._arena = block.bytes
        self._arena.fill(GUARD)
        self._inputs = {name: _spec(made.tensors[name]) for name in made.inputs}
        self._given = {name: self._tensor(name) for name in made.inputs}
        self._left = {name: self._tensor(name) for name in made.outputs}
        for name, array in self._first.items():
            np.copyto(self._tensor(name), np.asarray(array))
        self._in_place = True
        self._child.call("ask", self._number, "place", self._layout.places, memory=block)
        block.close()

    def _opened_again(self) -> None:
        output, self._ran = self._left["output"].copy(), False  # it lies here: no pass has to give it
        super()._opened_again()
        self._left["output"][...] = output

    def poison(self, byte: int) -> None:
        for name in ("output", "workspace"):
            self._bytes(name).fill(byte)

    def output(self, rows: Picked = None) -> np.ndarray:
        if rows is None:
            return self._left["output"].copy()
        by_row = self._left["output"].reshape(self._rows)
        return by_row[rows if isinstance(rows, slice) else np.asarray(rows, np.int64)].copy()

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        self._settle()
        inputs = {**self._first, **self._trains.bound}
        found = strays(self._layout, inputs, self._read, whole, self._random)
        return (*found, *self._into_inputs)

    def _read(self, pieces: Sequence[tuple[int, int]]) -> np.ndarray:
        """Bytes of the arena at these (offset, bytes), one after the other."""
        found = [self._arena[offset : offset + size] for offset, size in pieces]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def bind(self, inputs: Mapping[str, Given]) -> None:
        self._note_strays()
        super().bind(inputs)

    def _settle(self) -> None:
        self._note_strays()
        super()._settle()

    def _note_strays(self) -> None:
        """What timed passes wrote into the inputs, before others are written there."""
        if self._stirred and self._trains.stirring is not None:
            last = self._trains.last_inputs()
            for name, view in self._given.items():
                if there := changed(bytes_of(view), last[name]):
                    self._into_inputs.append(Stray(name, *there, view.nbytes))

    def _bytes(self, name: str) -> np.ndarray:
        offset, size = self._layout.places.get(name, (0, 0))
        return self._arena[offset : offset + size]

    def _tensor(self, name: str) -> np.ndarray:
        spec = self._made.tensors[name]
        return self._bytes(name).view(spec.dtype).reshape(spec.shape)


def _spec(tensor: TensorSpec) -> Spec:
    return Spec(tensor.shape, tensor.dtype)
