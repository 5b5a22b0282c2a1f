"""The device memory of one kernel: inputs, output and workspace in one allocation, with guard bytes between
them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.cuda.runtime import Staging
from engine.cuda.stirring import CudaTensor
from engine.cuda.stream import Stream
from engine.rung_rows import Given, Rows, blocks, changed, picked
from engine.rung_session import BLOCK_NBYTES, GUARD, GUARD_NBYTES, LOOKED_AT, Picked, Stray, layout, one_step
from kernels.ops import Params
from kernels.registry import Rung

ON_DEVICE = 3  # cudaMemcpyKind
# Page-locked memory takes long to be had, a session is opened for moments, and pieces of this size fill the
# bus. What lies in many places is gathered on the device in as much.
PIECE_NBYTES = 4 << 20
READ_NBYTES = 16 << 20  # of an input that is compared whole, at once


class RungMemory:
    """Memory for the given inputs, in the form that the launch wants. Errors are CUDA's own."""

    def __init__(
        self,
        cupy: Any,
        pool: Any,
        stream: Stream,
        rung: Rung,
        params: Params,
        inputs: Sequence[Given],
        scratch: int,
    ) -> None:
        """scratch: bytes of the workspace."""
        self._cupy, self._stream = cupy, stream
        self.layout = layout(one_step(rung, params, inputs), scratch)
        self.arena = pool.malloc(self.layout.nbytes + PIECE_NBYTES)
        self.arena.memset_async(GUARD, self.layout.nbytes, stream.on)
        largest = max(size for _, size in self.layout.places.values())
        self.staging = Staging(cupy, stream.on, min(PIECE_NBYTES, max(largest, GUARD_NBYTES)))
        self._given = [_in_order(array) for array in inputs]
        self._data = params.data_inputs
        dtype = np.dtype(params.out_dtype)
        self._result, self._rows = (params.output_shape, dtype), params.output_rows
        self._random = np.random.default_rng()
        for place in range(len(inputs)):
            self._upload(place)
        stream.synchronize()

    def pointer(self, name: str) -> int:
        """The address of a buffer; 0 for a workspace of no bytes."""
        return int(self.arena.ptr) + self.layout.places[name][0] if name in self.layout.places else 0

    @property
    def stirred(self) -> tuple[dict[str, CudaTensor], dict[str, CudaTensor]]:
        """The tensors that change before each timed pass: the inputs that are no weights, and the output."""
        inputs = {}
        for place in self._data:
            array, name = self._given[place], f"input {place}"
            inputs[name] = CudaTensor(self.pointer(name), tuple(array.shape), array.dtype)
        return inputs, {"output": CudaTensor(self.pointer("output"), *self._result)}

    @property
    def output_nbytes(self) -> int:
        return self.layout.places["output"][1]

    def data(self) -> dict[str, Given]:
        """The inputs that are no weights, as they were written."""
        return {f"input {place}": self._given[place] for place in self._data}

    def poison(self, byte: int) -> None:
        for name in ("output", "workspace"):
            if name in self.layout.places:
                offset, size = self.layout.places[name]
                (self.arena + offset).memset_async(byte, size, self._stream.on)

    def write(self, data: Mapping[str, Given]) -> None:
        for place in self._data:
            self._given[place] = _in_order(data[f"input {place}"])
            self._upload(place)
        self._stream.synchronize()

    def _upload(self, place: int) -> None:
        """Copy an input to the device. Of a batch that repeats rows each distinct row is sent once, and
        copied to its other places on the device."""
        array, pointer = self._given[place], self.pointer(f"input {place}")
        if not isinstance(array, Rows):
            self.staging.upload(array, pointer)
            return
        there: dict[int, int] = {}
        for row, kind in enumerate(array.index.tolist()):
            here = pointer + row * array.row_nbytes
            if kind in there:
                self._copy(here, there[kind], array.row_nbytes)
            else:
                there[kind] = here
                self.staging.upload(array.distinct[kind], here)

    def _copy(self, to: int, source: int, nbytes: int) -> None:
        self._cupy.cuda.runtime.memcpyAsync(to, source, nbytes, ON_DEVICE, self._stream.on.ptr)

    def _fetch(self, pieces: Sequence[tuple[int, int]]) -> np.ndarray:
        """Read pieces of device memory, (address, bytes) each, one after the other. Small pieces are
        collected on the device first, so that the host waits for few copies."""
        fetched = np.empty(sum(nbytes for _, nbytes in pieces), np.uint8)
        gathered = int(self.arena.ptr) + self.layout.nbytes
        copied = waiting = 0
        for address, nbytes in pieces:
            if waiting and waiting + nbytes > PIECE_NBYTES:
                self.staging.download(gathered, fetched[copied - waiting : copied])
                waiting = 0
            if nbytes > PIECE_NBYTES:
                self.staging.download(address, fetched[copied : copied + nbytes])
            else:
                self._copy(gathered + waiting, address, nbytes)
                waiting += nbytes
            copied += nbytes
        if waiting:
            self.staging.download(gathered, fetched[copied - waiting : copied])
        return fetched

    def output(self, rows: Picked = None) -> np.ndarray:
        shape, dtype = self._result
        start = self.pointer("output")
        if rows is None:
            pieces = [(start, math.prod(shape) * dtype.itemsize)]
        else:
            each = math.prod(self._rows[1:]) * dtype.itemsize
            places = picked(rows, self._rows[0])
            pieces = [(start + each * at, each * count) for at, count in _runs(places.tolist())]
            shape = (len(places), *self._rows[1:])
        return self._fetch(pieces).view(dtype).reshape(shape)

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        strays = []
        base, guards = int(self.arena.ptr), self.layout.guards
        guard_bytes = self._fetch([(base + start, end - start) for start, end in guards])
        for start, end in guards:
            wrong = np.flatnonzero(guard_bytes[: end - start] != GUARD)
            if wrong.size:
                strays.append(self.layout.stray(start + int(wrong[0]), wrong.size))
            guard_bytes = guard_bytes[end - start :]
        written = (self._written(i, whole) for i in range(len(self._given)))
        strays += [stray for stray in written if stray is not None]
        return tuple(strays)

    def _written(self, place: int, whole: bool) -> Stray | None:
        """A write into an input, which is only to be read; None where there was none."""
        array, pointer = self._given[place], self.pointer(f"input {place}")
        each = READ_NBYTES if whole else BLOCK_NBYTES
        parts = blocks(array.nbytes, whole, self._random, each, LOOKED_AT)
        together = 1 if whole else len(parts)
        first, count = -1, 0
        for some in (parts[i : i + together] for i in range(0, len(parts), together)):
            contents = self._fetch([(pointer + part.start, part.stop - part.start) for part in some])
            for part in some:
                size = part.stop - part.start
                if (there := changed(contents[:size], array, part.start)) is not None:
                    first, count = there[0] if first < 0 else first, count + there[1]
                contents = contents[size:]
        return Stray(f"input {place}", first, count, array.nbytes) if count else None


def _in_order(given: Given) -> Given:
    return given if isinstance(given, Rows) else np.ascontiguousarray(given)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Rows that follow each other, as (first, how many)."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][0] + runs[-1][1] == place:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((place, 1))
    return runs
