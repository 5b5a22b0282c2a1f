"""Arrays and their types as pickles of NumPy make them, step by step, and what its names stand for there.

Nothing of NumPy is called with what a file says: a shape, a type and bytes are checked, and seen as an array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.errors import ModelError

MOST_AXES = 32
_TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")


class RefusedPickle(ModelError):
    """A pickle that is damaged, or holds what is not data."""


class ArrayInMaking:
    """An array in the making: NumPy's pickles make an empty one and then give it its state."""

    value: np.ndarray | None = None


class TypeInMaking:
    """A dtype in the making: its byte order comes behind it."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "<"

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.code if self.code == "O" else self.order + self.code)


def finished(value: Any) -> Any:
    """An array in the making as the array that it became."""
    if not isinstance(value, ArrayInMaking):
        return value
    if value.value is None:
        raise RefusedPickle("its pickle holds an array without values")
    return value.value


def sizes(shape: Any, least: int = 0) -> tuple[int, ...]:
    """A shape as a file gives it. Raises Refused where it is none."""
    if not isinstance(shape, tuple | list) or len(shape) > MOST_AXES:
        raise RefusedPickle("it holds an array of a shape that is none")
    for size in shape:  # told only where it is a number: what is nested has no end of text
        if type(size) is not int:
            raise RefusedPickle("it holds an array with a size that is no whole number")
        if not least <= size < 1 << 40:
            raise RefusedPickle(f"it holds an array with a size of {str(size)[:20]}")
    return tuple(shape)


def array_of(shape: Any, kind: Any, by_columns: Any, data: Any) -> Any:
    shape = sizes(shape)
    if not isinstance(kind, TypeInMaking):
        raise RefusedPickle("it holds an array of no type")
    if kind.code == "O":
        if type(data) is not list or len(data) != math.prod(shape):
            raise RefusedPickle(
                f"it holds an array of {math.prod(shape):,} objects with another number of them"
            )
        # One object in an array of no axes is how NumPy saves a dict.
        return data[0] if shape == () else data
    dtype = kind.dtype()
    needed = math.prod(shape) * dtype.itemsize
    if not isinstance(data, bytes | bytearray) or len(data) != needed:
        raise RefusedPickle(f"it holds an array of shape {shape} whose values are not {needed:,} bytes")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")


def _type(code: Any, *_: Any) -> TypeInMaking:
    if isinstance(code, bytes):
        code = code.decode("latin-1")
    if type(code) is not str:
        raise RefusedPickle("it holds an array of a type that is none")
    plain = "O" if code in ("O8", "|O8") else code.lstrip("<|=>")
    if plain not in (*_TYPES, "O"):
        raise RefusedPickle(
            f"it holds an array of type {code[:20]!r}; floats and whole numbers are understood"
        )
    made = TypeInMaking(plain)
    if code.startswith(">"):
        made.order = ">"
    return made


def _scalar(kind: Any, data: Any) -> Any:
    if isinstance(data, str):
        data = data[:16].encode("latin-1")
    return array_of((), kind, False, data)[()]


NUMPY: dict[str, Any] = {
    f"{module} {name}": meaning
    for name, modules, meaning in (
        ("_reconstruct", ("numpy.core.multiarray", "numpy._core.multiarray"), lambda *_: ArrayInMaking()),
        ("scalar", ("numpy.core.multiarray", "numpy._core.multiarray"), _scalar),
        (
            "_frombuffer",
            ("numpy.core.numeric", "numpy._core.numeric"),
            lambda data, kind, shape, order: array_of(shape, kind, order == "F", data),
        ),
        ("ndarray", ("numpy",), "ndarray"),
        ("dtype", ("numpy",), _type),
        ("OrderedDict", ("collections",), lambda *_: {}),
        ("bytes", ("__builtin__",), lambda: b""),  # how protocol 2 has none
    )
    for module in modules
}
