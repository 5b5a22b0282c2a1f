"""Objects on their way to a child, their large arrays in shared memory: weights are laid there once, for all
sessions and all children, and nobody can change them.

From parent to child alone: what comes back is msgspec's (engine.isolated.client), for a child may be hostile.
"""

from __future__ import annotations

import functools
import io
import itertools
import pickle
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.isolated.memory import Block, Spec, placed

LARGE_NBYTES = 1 << 16


@dataclass(frozen=True)
class ArrayPlace:
    """Where an array lies: in which block, from which byte."""

    block: int
    offset: int
    spec: Spec


class _Shelf:
    """The arrays of this process that lie in shared memory, as long as they live."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._places: dict[int, ArrayPlace] = {}
        self._lives: dict[int, set[int]] = {}  # by block: the arrays that still need it
        self.blocks: dict[int, Block] = {}

    def place(self, array: np.ndarray) -> ArrayPlace | None:
        return self._places.get(id(array))

    def lay(self, arrays: Mapping[int, np.ndarray]) -> None:
        """All of these into one new block."""
        listed = list(arrays.values())
        offsets, nbytes = placed([array.nbytes for array in listed])
        block, number = Block(nbytes, sealed_later=True), next(self._numbers)
        for offset, array in zip(offsets, listed, strict=True):
            to = block.bytes[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
            np.copyto(to, array)
        del to
        block.seal()
        with self._lock:
            self.blocks[number] = block
            self._lives[number] = {id(array) for array in listed}
            for offset, array in zip(offsets, listed, strict=True):
                self._places[id(array)] = ArrayPlace(number, offset, Spec(array.shape, array.dtype.name))
                weakref.finalize(array, self._forget, id(array), number).atexit = False

    def _forget(self, identity: int, number: int) -> None:
        with self._lock:
            self._places.pop(identity, None)
            self._lives[number].discard(identity)
            if not self._lives[number]:
                del self._lives[number]
                self.blocks.pop(number).close()


SHELF = _Shelf()


# Both by inheritance: in Python 3.13.0 the methods cannot be set on a pickler or unpickler (in 3.13.1 again).
class _Pickler(pickle.Pickler):
    """Leaves large arrays out; they are in `arrays`, by the number that stands for each."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=5)
        self.dispatch_table = {MappingProxyType: lambda held: (_proxy, (dict(held),))}
        self.arrays: dict[int, np.ndarray] = {}

    def persistent_id(self, item: Any) -> int | None:
        if type(item) is np.ndarray and item.nbytes >= LARGE_NBYTES and item.dtype.kind in "fiub":
            self.arrays[id(item)] = item
            return id(item)
        return None


class _Unpickler(pickle.Unpickler):
    """find: the array that a number stands for."""

    def __init__(self, data: bytes, find: Callable[[int], np.ndarray]) -> None:
        super().__init__(io.BytesIO(data))
        self._find = find

    def persistent_load(self, key: int) -> np.ndarray:
        return self._find(key)


def dumped(value: Any) -> tuple[bytes, set[int]]:
    """The object in bytes, and the numbers of the blocks that its arrays lie in."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(value)
    missing = {key: array for key, array in pickler.arrays.items() if SHELF.place(array) is None}
    if missing:
        SHELF.lay(missing)
    places = {key: SHELF.place(array) for key, array in pickler.arrays.items()}
    return pickle.dumps((places, stream.getvalue())), {p.block for p in places.values() if p is not None}


def _proxy(held: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(held)


def loaded(data: bytes, blocks: Mapping[int, np.ndarray]) -> Any:
    """What `dumped` made of it, in the child."""
    places, inner = pickle.loads(data)

    @functools.cache  # an array that is there twice is one
    def lying(key: int) -> np.ndarray:
        place = places[key]
        contents = blocks[place.block][place.offset : place.offset + place.spec.nbytes]
        return contents.view(place.spec.dtype).reshape(place.spec.shape)

    return _Unpickler(inner, lying).load()


def listed(numbers: list[int]) -> tuple[tuple[int, str, int], ...]:
    """Blocks of the shelf, as a child is told of them: number, path and bytes."""
    return tuple((n, SHELF.blocks[n].path, SHELF.blocks[n].nbytes) for n in numbers)
