"""What a `.caffemodel` holds: the weights ("blobs") of each layer, read off the bytes of its protocol buffer.

The few fields that matter are numbered in Caffe's caffe.proto: of the net its layers (100, before 2014 2), of
a layer its name and blobs, of a blob its shape and floats. Views of the file are handed on, not copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.errors import ModelError

_VARINT, _WIDE, _BYTES, _NARROW = 0, 1, 2, 5
LAYER, OLD_LAYER = 100, 2
_FIELDS = {LAYER: (1, 7), OLD_LAYER: (4, 6)}  # of a layer: its name, its blobs
_SHAPE, _DATA, _DOUBLES, _OLD_SIZES = 7, 5, 8, (1, 2, 3, 4)
MOST_FIELDS = 100_000
DAMAGED = "its protocol buffer is cut off or damaged"


def blobs(data: memoryview) -> dict[str, list[np.ndarray]]:
    """The blobs of each layer that has some. Raises ModelError, in words that fit behind the file's name."""
    found: dict[str, list[np.ndarray]] = {}
    for number, value in _fields(data):
        if number not in _FIELDS:
            continue
        name_at, blobs_at = _FIELDS[number]
        name, held = "", []
        for inner, part in _fields(_message(value)):
            if inner == name_at:
                name = bytes(_message(part)[:200]).decode("utf-8", "replace")
            elif inner == blobs_at:
                held.append(_blob(_message(part)))
            elif number == OLD_LAYER and inner == 1:
                raise ModelError(
                    "it is of Caffe's first format; upgrade it with Caffe's upgrade_net_proto_binary"
                )
        if held:
            if name in found:
                raise ModelError(f"it has two layers {name}")
            found[name] = held
    return found


def _blob(data: memoryview) -> np.ndarray:
    sizes: list[int] = []
    old = dict.fromkeys(_OLD_SIZES, 0)
    values: list[np.ndarray] = []
    for number, value in _fields(data):
        if number == _SHAPE:
            for inner, part in _fields(_message(value)):
                if inner == 1:
                    sizes += [part] if isinstance(part, int) else _varints(part)
        elif number in old and isinstance(value, int):
            old[number] = value
        elif number in (_DATA, _DOUBLES):
            dtype = np.dtype("<f4" if number == _DATA else "<f8")
            packed = _message(value)
            if len(packed) % dtype.itemsize:
                raise ModelError(DAMAGED)
            values.append(np.frombuffer(packed, dtype))
    sizes = sizes or list(old.values())
    held = sum(part.size for part in values)
    if len(sizes) > 32 or math.prod(sizes) != held:
        told = "×".join(map(str, sizes[:6]))
        raise ModelError(f"it is damaged: it has weights of the shape {told} with {held:,} values")
    flat = values[0] if len(values) == 1 else np.concatenate([np.zeros(0, "<f4"), *values])
    return flat.reshape(sizes)


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ModelError(DAMAGED)
    return value


def _varints(data: memoryview) -> list[int]:
    found: list[int] = []
    place = 0
    while place < len(data) and len(found) <= 32:
        value, place = _varint(data, place)
        found.append(value)
    return found


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ModelError(DAMAGED)


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field: an int, or a view of its bytes (also of numbers of fixed size)."""
    place = 0
    for _ in range(MOST_FIELDS):
        if place >= len(data):
            return
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        length = {_WIDE: 8, _NARROW: 4}.get(kind)
        if kind == _BYTES:
            length, place = _varint(data, place)
        if length is None or length > len(data) - place:
            raise ModelError(DAMAGED)
        yield key >> 3, data[place : place + length]
        place += length
    raise ModelError(f"it has more than {MOST_FIELDS:,} fields in one message, which no weights need")
