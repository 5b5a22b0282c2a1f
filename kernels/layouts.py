"""How the elements of a tensor between two steps lie: the order of the axes, and the element type.

A rung's header lists those that it reads and writes (`reads`, `writes`); its defines READS and WRITES say for
which of them it is compiled, by the place in these lists. Models have tensors as ONNX has them, PLAIN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from kernels import packing

if TYPE_CHECKING:
    from kernels.registry import Rung

PLAIN = "nchw float32"
# The channels of a pixel side by side, filled up with zeros to whole chunks of 16 bytes.
HALVES = "nhwc float16"
ROUNDED = "nhwc tf32"  # float32 with TF32's 10 bits behind the point
LAYOUTS = (PLAIN, HALVES, ROUNDED)
_CHUNK_NBYTES = 16


def dtype(layout: str) -> np.dtype:
    """Of its elements."""
    return np.dtype(np.float16 if layout == HALVES else np.float32)


def chunk(layout: str) -> int:
    """Channels of a chunk."""
    return _CHUNK_NBYTES // dtype(layout).itemsize


def as_images(shape: Sequence[int]) -> tuple[int, ...]:
    """A tensor's shape with the axes of images. The matrix of a product, with its axis of 1 in front, is as
    many images of one pixel as it has rows."""
    return tuple(shape) if len(shape) == 4 else (*shape[1:], 1, 1)


def nbytes(layout: str, shape: Sequence[int]) -> int:
    """Of a tensor of this shape, as its step has it."""
    if layout == PLAIN:
        return 4 * math.prod(shape)
    images, channels, *pixels = as_images(shape)
    return _CHUNK_NBYTES * images * math.prod(pixels) * -(-channels // chunk(layout))


def laid_out(rung: Rung, reads: str = PLAIN, writes: str = PLAIN) -> Rung:
    """The rung as it is compiled to read and write these. Raises ValueError where it cannot."""
    chosen = {}
    if rung.reads != (PLAIN,) or reads != PLAIN:
        chosen["READS"] = rung.reads.index(reads)
    if rung.writes != (PLAIN,) or writes != PLAIN:
        chosen["WRITES"] = rung.writes.index(writes)
    if not any(chosen.values()):
        return rung
    return replace(rung, defines=MappingProxyType({**rung.defines, **chosen}))


def reads(rung: Rung) -> str:
    """How it is compiled to read its first input."""
    return rung.reads[int(rung.defines.get("READS", 0))]


def writes(rung: Rung) -> str:
    """How it is compiled to write its output."""
    return rung.writes[int(rung.defines.get("WRITES", 0))]


def brought_back(held: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """A tensor that lies as NHWC as ONNX has it, in float32."""
    images, channels, height, width = as_images(shape)
    found = held.reshape(images, height, width, -1)[..., :channels].transpose(0, 3, 1, 2)
    return found.astype(np.float32).reshape(shape)


def as_it_lies(layout: str, array: np.ndarray) -> np.ndarray:
    """The other way round."""
    array = array.reshape(as_images(array.shape))
    images, channels, height, width = array.shape
    filled = -(-channels // chunk(layout)) * chunk(layout)
    held = np.zeros((images, height, width, filled), dtype(layout))
    with np.errstate(over="ignore"):  # what float16 does not hold is infinite there, as on a GPU
        held[..., :channels] = (
            packing.tf32(array).transpose(0, 2, 3, 1) if layout == ROUNDED else array.transpose(0, 2, 3, 1)
        )
    return held
