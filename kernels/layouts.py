"""The layout of a tensor between two steps: the order of its axes, and the element type.

A rung's header lists the layouts that it reads and writes (`reads`, `writes`); its defines READS and WRITES
say for which of them it is compiled, as an index into these lists. Models have tensors in the layout PLAIN,
whose element type is the tensor's own: float32, or one of eight bits, whose other layout is BYTES.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes  # noqa: F401 - NumPy learns of bfloat16
import numpy as np

PLAIN = "nchw float32"
# The channels of a pixel side by side, filled up with zeros to whole chunks of 16 bytes.
HALVES = "nhwc float16"
SHORT = "nhwc bfloat16"
ROUNDED = "nhwc tf32"  # float32 with TF32's 10 bits behind the point
BYTES = "nhwc bytes"  # of uint8 or int8, as the tensor is
LAYOUTS = (PLAIN, HALVES, SHORT, ROUNDED, BYTES)
_TYPES = {HALVES: np.dtype(np.float16), SHORT: np.dtype("bfloat16"), BYTES: np.dtype(np.uint8)}
_CHUNK_NBYTES = 16


def dtype(layout: str) -> np.dtype:
    """The element type of a layout; of BYTES uint8 stands for both."""
    return _TYPES.get(layout, np.dtype(np.float32))


def chunk(layout: str) -> int:
    """Channels of a chunk."""
    return _CHUNK_NBYTES // dtype(layout).itemsize


def as_images(shape: Sequence[int]) -> tuple[int, ...]:
    """A tensor's shape as (images, channels, rows, columns). The rows of a matrix, which has an axis of 1 in
    front, count as images of one pixel."""
    return tuple(shape) if len(shape) == 4 else (*shape[1:], 1, 1)


def nbytes(layout: str, shape: Sequence[int], itemsize: int = 4) -> int:
    """Bytes of a tensor of this shape in this layout. itemsize: of its element type, which PLAIN does not
    say."""
    if layout == PLAIN:
        return itemsize * math.prod(shape)
    images, channels, *pixels = as_images(shape)
    return _CHUNK_NBYTES * images * math.prod(pixels) * -(-channels // chunk(layout))
