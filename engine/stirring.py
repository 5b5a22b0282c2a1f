"""What changes before each timed pass: a few values of every input and some of every output, at places that
nobody who computes the pass can foresee.

A kernel whose input never changes can answer from memory. So before pass `number` each input is as it was
bound but for a few values, at least one a row (of the first axis, up to MOST rows), and some of each output
is poison. Places and values follow from `number` and a secret seed by a counter-based hash (splitmix64), so
that the pass can be rebuilt later from its number alone, on the host as on a device. Values are the input's
own: what is drawn stays within what the net is given (an index stays an index).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.rung_rows import Given, Rows

FEWEST, MOST = 512, 4096  # places a tensor and pass
VALUES = 1024  # that are drawn from, at most
# What all new inputs are drawn from: as many stretches between neighbouring quantiles of the bound values, of
# which so many are looked at; a draw is a stretch and a place in it of so many bits.
CELL_BITS, PLACE_BITS = 12, 20
SAMPLED = 4 << CELL_BITS
LEAST = 0.05  # of what was measured is left to the passes, whatever is taken off for what goes with them
POISON = 0xFF  # each byte of a poisoned value: a NaN in every float, -1 in every signed integer

# What a hash is for, so that no two draws go together.
CHANGED, VALUE, POISONED, LOOKED_AT = range(4)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


Number = int | np.ndarray
"""Of a pass; or of several, (passes,) uint64: then every draw has them as its first axis."""


def hashed(seed: int, number: Number, tensor: int, purpose: int, count: int) -> np.ndarray:
    """uint64 (count,): the j-th is splitmix64's output at the state that seed, pass, tensor, purpose and j
    make; see stirring.cuh for the same in CUDA."""
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
    """A tensor that is stirred. index: its own among those of the session (inputs first, then outputs);
    count: how many places a pass; values: what an input's are drawn from (empty for an output)."""

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
        """uint64 (count,) each: where the stretches begin that have a place each, and how long they are."""
        edges = np.arange(self.count + 1, dtype=np.uint64) * np.uint64(self.size)
        edges //= np.uint64(max(self.count, 1))
        return edges[:-1], np.maximum(np.diff(edges), np.uint64(1))


@dataclass(frozen=True)
class Cells:
    """Where new values of an input lie: uint64 (1 << CELL_BITS,) each, the bits of the value of a stretch
    that is least in magnitude, and how many there are behind it. As likely as among the bound values, within
    their range, and of floats hardly any twice; whole numbers, Booleans and what lies on both sides of 0 are
    the bound values themselves."""

    base: np.ndarray
    span: np.ndarray

    def drawn(self, hashes: np.ndarray) -> np.ndarray:
        """uint64, the bits of a value for each uint64."""
        cell = hashes >> np.uint64(64 - CELL_BITS)
        place = (hashes >> np.uint64(PLACE_BITS)) & np.uint64((1 << PLACE_BITS) - 1)
        span, bits = self.span[cell], np.uint64(PLACE_BITS)
        low = span & np.uint64((1 << PLACE_BITS) - 1)
        return np.asarray(self.base[cell] + (span >> bits) * place + ((low * place) >> bits))


def cells(sample: np.ndarray) -> Cells:
    """Of some values of an input, two different ones at least."""
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
    """How many places of such a tensor a pass changes: as many in each row, at least FEWEST in all."""
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
    """The changes of a session's passes. inputs: as bound; outputs: shape and dtype by name, as they lie
    where the pass writes them. seed: 64 bits; drawn where none is given."""

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
        """int64 (tensor.count,), flat and distinct: one in each of as many stretches of equal length."""
        return places(self.seed, tensor, number, purpose)

    def changes(self, name: str, number: Number) -> tuple[np.ndarray, np.ndarray]:
        """Where input `name` differs in this pass from what was bound, and what lies there."""
        tensor = self.inputs[name]
        at = self.places(tensor, number, CHANGED)
        picked = hashed(self.seed, number, tensor.index, VALUE, tensor.count) % np.uint64(len(tensor.values))
        # The one behind it where it would be no change.
        same = _bits(tensor.values[picked.astype(np.int64)]) == _bits(_elements(self._bound[name], at))
        picked = (picked + same.astype(np.uint64)) % np.uint64(len(tensor.values))
        return at, tensor.values[picked.astype(np.int64)]

    def inputs_of(self, number: int) -> dict[str, np.ndarray]:
        """All inputs as this pass is given them."""
        inputs = {}
        for name, bound in self._bound.items():
            inputs[name] = np.asarray(bound) if isinstance(bound, Rows) else bound.copy()
            at, values = self.changes(name, number)
            inputs[name].reshape(-1)[at] = values
        return inputs

    def cells(self, name: str) -> Cells:
        """What all new values of this input are drawn from."""
        tensor = self.inputs[name]
        if tensor.dtype == np.bool_:
            return cells(tensor.values)
        sampled = replace(tensor, count=min(SAMPLED, tensor.size))
        some = _elements(self._bound[name], places(self.seed, sampled, 0, LOOKED_AT))
        some = some[np.isfinite(some)] if some.dtype.kind == "f" else some
        return cells(some if len(some) and (some != some[0]).any() else tensor.values)

    def _values(self, index: int, array: Given) -> np.ndarray:
        """Distinct values of the input, two at least."""
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
    """Those at flat places. A batch that repeats a few rows is not made whole for it: it may be gigabytes."""
    return array.at(places) if isinstance(array, Rows) else array.reshape(-1)[places]


def _other(value: Any) -> Any:
    """Of a tensor that holds one value alone: half of it, or one where that is no other; an index is no
    higher than it was."""
    if value.dtype.kind in "iu":
        return value.dtype.type(0 if value else 1)
    return value.dtype.type(value / 2 if value else 1)


def _bits(array: np.ndarray) -> np.ndarray:
    """Equal where every bit is: a NaN is what it is, and 0.0 is not -0.0."""
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize]
    return np.ascontiguousarray(array).view(unsigned)


@dataclass(frozen=True)
class Witness:
    """Of one timed pass. number: its inputs are `stirring.inputs_of(number)`; outputs: by name, flat places
    (int64) and the values that were found there."""

    number: int
    outputs: Mapping[str, tuple[np.ndarray, np.ndarray]]


@runtime_checkable
class Witnessed(Protocol):
    """A session whose timed passes are given inputs that change from pass to pass.

    stirring: of what is bound; None before the first timed pass. stirring_ns: what changing inputs, or
    triggering, takes a pass, taken off the times.
    """

    @property
    def stirring(self) -> Stirring | None: ...

    @property
    def stirring_ns(self) -> float: ...

    def witnesses(self) -> tuple[Witness, ...]:
        """Timed passes that were kept: of the last train, or some drawn among all since this was asked."""


NEW, SAME = 1, 0  # of `alike`


@runtime_checkable
class Renewable(Protocol):
    """A session whose passes can be timed over inputs that are wholly new."""

    def time_renewed(self, count: int, alike: int) -> float:
        """Nanoseconds a pass of about so many in a row, before each of which every value of each input was
        written, without what starting them takes.
        alike: NEW: others in each, of which none lay there before; SAME: as timed passes have them, a few of
        them changed. Nobody who computes the pass can tell a train over SAME from one of `time_runs`."""

    def renewed(self) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]] | None:
        """Inputs and outputs of one of the passes of the last train over inputs that were all new; None where
        none was, or that would take long."""
