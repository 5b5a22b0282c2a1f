"""Changes before each timed pass: a few values of every input change, and a few of every output are
overwritten, at places that a kernel cannot predict.

A kernel whose input never changes can answer from memory. So each timed pass has a number, and before pass
`number` each input is as it was bound except for a few values: at least one in each row (of the first axis,
up to MOST rows). A few values of each output are poisoned. Places and values follow from `number` and a
secret seed by a counter-based hash (splitmix64), so that the inputs of a pass can be made again later from
its number, on the host as on a device. New values are taken from the values of the same input: an index stays
a valid index.

Sessions that do this are `Witnessed`: some timed passes are recorded (`Witness`) and checked afterwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.rung_rows import Given, Rows

FEWEST, MOST = 512, 4096  # changed places of a tensor in a pass
VALUES = 1024  # distinct values of an input that new values are drawn from, at most
# Inputs that are all new are drawn from the distribution of the bound values: SAMPLED of these are sorted and
# divided at 2^CELL_BITS quantiles; a draw picks a cell between two quantiles, and a place in it of
# PLACE_BITS.
CELL_BITS, PLACE_BITS = 12, 20
SAMPLED = 4 << CELL_BITS
LEAST = 0.05  # share of a measured time that is left to the passes, however much is subtracted from it
POISON = 0xFF  # each byte of a poisoned value: a NaN in every float, -1 in every signed integer

# The purpose of a hash, so that two draws are never correlated.
CHANGED, VALUE, POISONED, LOOKED_AT = range(4)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


Number = int | np.ndarray
"""The number of a pass, or of several: uint64 (passes,); then every draw has them as its first axis."""


def hashed(seed: int, number: Number, tensor: int, purpose: int, count: int) -> np.ndarray:
    """uint64 (count,): number j is the output of splitmix64 at the state made of seed, pass, tensor, purpose
    and j. stirring.cuh has the same in CUDA."""
    with np.errstate(over="ignore"):
        stream = _mixed(np.uint64(seed) + np.asarray(number, np.uint64) * _GOLDEN)
        stream = _mixed(stream + np.uint64(4 * tensor + purpose + 1) * _GOLDEN)
        return _mixed(stream[..., None] + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * _GOLDEN)


def _mixed(state: Any) -> Any:
    state = (state ^ (state >> np.uint64(30))) * _MIX1
    state = (state ^ (state >> np.uint64(27))) * _MIX2
    return state ^ (state >> np.uint64(31))


@dataclass(frozen=True)
class Stirred:
    """A tensor that changes. index: its place among those of the session (inputs first, then outputs); count:
    how many values change in a pass; values: what new values are drawn from (empty for an output)."""

    index: int
    shape: tuple[int, ...]
    dtype: np.dtype
    count: int
    values: np.ndarray

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @cached_property
    def stretches(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays uint64 (count,): the tensor is divided into `count` stretches, in each of which one
        value changes; where each begins, and its length."""
        edges = np.arange(self.count + 1, dtype=np.uint64) * np.uint64(self.size)
        edges //= np.uint64(max(self.count, 1))
        return edges[:-1], np.maximum(np.diff(edges), np.uint64(1))


@dataclass(frozen=True)
class Cells:
    """The distribution that new values of an input are drawn from. base, span: uint64 (1 << CELL_BITS,) each:
    for each cell the bits of its value of least magnitude, and how many bit patterns follow it in the cell.
    New values have the distribution and the range of the bound ones; floats hardly ever repeat. Whole
    numbers, Booleans, and cells with values on both sides of 0 give bound values themselves."""

    base: np.ndarray
    span: np.ndarray

    def drawn(self, hashes: np.ndarray) -> np.ndarray:
        """hashes: uint64. Returns the bits of one value for each hash, uint64."""
        cell = hashes >> np.uint64(64 - CELL_BITS)
        place = (hashes >> np.uint64(PLACE_BITS)) & np.uint64((1 << PLACE_BITS) - 1)
        span, bits = self.span[cell], np.uint64(PLACE_BITS)
        low = span & np.uint64((1 << PLACE_BITS) - 1)
        return np.asarray(self.base[cell] + (span >> bits) * place + ((low * place) >> bits))


def cells(sample: np.ndarray) -> Cells:
    """The cells of a sample of an input's values; at least two of them differ."""
    ordered, count = np.sort(sample), 1 << CELL_BITS
    number = np.arange(count)
    if sample.dtype.kind != "f" or (ordered == np.rint(ordered)).all():
        bits = _bits(ordered[number * len(ordered) // count]).astype(np.uint64)
        return Cells(bits, np.zeros_like(bits))
    gaps = len(ordered) - 1
    at = number * gaps // count
    low, high = ordered[at], ordered[np.maximum(at + 1, (number + 1) * gaps // count)]
    first, last = _bits(low).astype(np.uint64), _bits(high).astype(np.uint64)
    one_side = (np.sign(low) == np.sign(high)) & (low != 0)
    base = np.where(one_side, np.minimum(first, last), first)
    return Cells(base, np.where(one_side, np.maximum(first, last) - base, np.uint64(0)))


def places_of(shape: tuple[int, ...]) -> int:
    """How many values of a tensor of this shape change in a pass: the same number in each row, at least
    FEWEST in all."""
    size = int(np.prod(shape, dtype=np.int64))
    rows = shape[0] if len(shape) > 1 else 1
    if rows > MOST:
        return min(size, MOST)
    return min(size, max(rows, 1) * -(-FEWEST // max(rows, 1)))


def places(seed: int, tensor: Stirred, number: Number, purpose: int) -> np.ndarray:
    """See Stirring.places."""
    begins, lengths = tensor.stretches
    return (begins + hashed(seed, number, tensor.index, purpose, tensor.count) % lengths).astype(np.int64)


class Stirring:
    """The changes of all passes of a session. inputs: the bound arrays by name; outputs: shape and dtype by
    name, as the pass writes them. seed: 64 bits; random if None."""

    def __init__(
        self,
        inputs: Mapping[str, Given],
        outputs: Mapping[str, tuple[tuple[int, ...], np.dtype]],
        seed: int | None = None,
    ) -> None:
        self.seed = secrets.randbits(64) if seed is None else seed
        self._bound: dict[str, Given] = {
            name: array if isinstance(array, Rows) else np.ascontiguousarray(array)
            for name, array in inputs.items()
        }
        self.inputs: dict[str, Stirred] = {}
        self.outputs: dict[str, Stirred] = {}
        for i, (name, array) in enumerate(self._bound.items()):
            shape = array.shape
            self.inputs[name] = Stirred(i, shape, array.dtype, places_of(shape), self._values(i, array))
        for i, (name, (shape, dtype)) in enumerate(outputs.items(), len(inputs)):
            none = np.empty(0, dtype)
            self.outputs[name] = Stirred(i, tuple(shape), np.dtype(dtype), places_of(tuple(shape)), none)

    def places(self, tensor: Stirred, number: Number, purpose: int) -> np.ndarray:
        """int64 (tensor.count,): flat places, all distinct: one in each of `count` stretches of equal
        length."""
        return places(self.seed, tensor, number, purpose)

    def changes(self, name: str, number: Number) -> tuple[np.ndarray, np.ndarray]:
        """The flat places where input `name` differs in this pass from the bound array, and the values
        there."""
        tensor = self.inputs[name]
        at = self.places(tensor, number, CHANGED)
        picked = hashed(self.seed, number, tensor.index, VALUE, tensor.count) % np.uint64(len(tensor.values))
        # The next value, where the drawn one would change nothing.
        same = _bits(tensor.values[picked.astype(np.int64)]) == _bits(_elements(self._bound[name], at))
        picked = (picked + same.astype(np.uint64)) % np.uint64(len(tensor.values))
        return at, tensor.values[picked.astype(np.int64)]

    def inputs_of(self, number: int) -> dict[str, np.ndarray]:
        """All inputs of this pass."""
        inputs = {}
        for name, bound in self._bound.items():
            inputs[name] = np.asarray(bound) if isinstance(bound, Rows) else bound.copy()
            at, values = self.changes(name, number)
            inputs[name].reshape(-1)[at] = values
        return inputs

    def cells(self, name: str) -> Cells:
        """The distribution that all-new values of this input are drawn from."""
        tensor = self.inputs[name]
        if tensor.dtype == np.bool_:
            return cells(tensor.values)
        sampled = replace(tensor, count=min(SAMPLED, tensor.size))
        some = _elements(self._bound[name], places(self.seed, sampled, 0, LOOKED_AT))
        some = some[np.isfinite(some)] if some.dtype.kind == "f" else some
        return cells(some if len(some) and (some != some[0]).any() else tensor.values)

    def _values(self, index: int, array: Given) -> np.ndarray:
        """At least two distinct values of the input."""
        size = int(np.prod(array.shape, dtype=np.int64))
        if size == 0:
            return np.empty(0, array.dtype)
        if array.dtype == np.bool_:
            return np.array([False, True])
        drawn = hashed(self.seed, 0, index, LOOKED_AT, min(4 * VALUES, size)) % np.uint64(size)
        distinct = np.unique(_elements(array, drawn.astype(np.int64)))
        if distinct.dtype.kind == "f":
            distinct = distinct[np.isfinite(distinct)]
        if len(distinct) == 0:
            distinct = np.array([0, 1], array.dtype)
        if len(distinct) == 1:
            distinct = np.unique([distinct[0], _other(distinct[0])])
        if len(distinct) > VALUES:
            distinct = distinct[np.linspace(0, len(distinct) - 1, VALUES).astype(np.int64)]
        return distinct.astype(array.dtype)


def _elements(array: Given, places: np.ndarray) -> np.ndarray:
    """The elements at these flat places. A batch that repeats a few rows is not expanded: it may be
    gigabytes."""
    return array.at(places) if isinstance(array, Rows) else array.reshape(-1)[places]


def _other(value: Any) -> Any:
    """A second value for a tensor that has only one: half of it, or 1 where half is the same. An index gets
    no larger."""
    if value.dtype.kind in "iu":
        return value.dtype.type(0 if value else 1)
    return value.dtype.type(value / 2 if value else 1)


def _bits(array: np.ndarray) -> np.ndarray:
    """The bits as unsigned integers: compares NaN with NaN as equal, and 0.0 with -0.0 as different."""
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize]
    return np.ascontiguousarray(array).view(unsigned)


@dataclass(frozen=True)
class Witness:
    """The record of one timed pass. number: its inputs are `stirring.inputs_of(number)`; outputs: by name,
    flat places (int64) and the values that the pass left there. rough: a pass of the warm-up, whose time is
    not kept."""

    number: int
    outputs: Mapping[str, tuple[np.ndarray, np.ndarray]]
    rough: bool = False


@runtime_checkable
class Witnessed(Protocol):
    """A session whose inputs change from one timed pass to the next.

    stirring: the changes of the bound inputs; None before the first timed pass. stirring_ns: nanoseconds a
    pass that changing the inputs, or waking the process, takes; subtracted from the times."""

    @property
    def stirring(self) -> Stirring | None: ...

    @property
    def stirring_ns(self) -> float: ...

    def witnesses(self) -> tuple[Witness, ...]:
        """The recorded passes: those of the last train, or one of each train since the last call."""


NEW, SAME = 1, 0  # values of `alike`


@runtime_checkable
class Renewable(Protocol):
    """A session whose passes can be timed over inputs that are all new."""

    def renew(self, count: int, alike: int) -> None:
        """Make the inputs of the next train of `time_renewed`, of at most `count` passes. It may be called
        long before, so that what it takes tells a kernel nothing. alike: NEW: each pass has other inputs,
        none of which was there before; SAME: inputs differ in a few values, as in `time_runs`."""

    def time_renewed(self, count: int, cold: bool = False) -> float:
        """Nanoseconds of one pass, of a train as one of `time_runs(count, cold)`; the time for starting a
        pass is subtracted. A kernel cannot tell a train over SAME from one of `time_runs`. 0, and nothing is
        run, where its inputs are not made: `renew` was not called since such a train was run, or for fewer
        passes."""

    def renewed(self) -> Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        """Inputs and outputs of one pass of each such train since the last call. Of the last train over
        all-new inputs only, where no more can be had; of none, where this would take long."""
