"""Tensors of ONNX as kernels with a layout of their own have them, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels import layouts, packing
from kernels.precision import narrow


def rounded(array: np.ndarray, precision: str) -> np.ndarray:
    """What a kernel of this precision multiplies by, in float32."""
    kept = packing.converted(array, precision)
    return kept.view(narrow(precision) or kept.dtype).astype(np.float32)


def of_case(layout: str, dtype: np.dtype) -> np.dtype:
    """The element type of a tensor of this type in a layout."""
    return dtype if layout == layouts.BYTES else layouts.dtype(layout)


def brought_back(held: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """A tensor that lies as NHWC as ONNX has it, in float32, or in eight bits as it is."""
    images, channels, height, width = layouts.as_images(shape)
    found = held.reshape(images, height, width, -1)[..., :channels].transpose(0, 3, 1, 2)
    return found.astype(held.dtype if held.dtype.kind in "iu" else np.float32).reshape(shape)


def as_it_lies(layout: str, array: np.ndarray) -> np.ndarray:
    """The other way round."""
    array = array.reshape(layouts.as_images(array.shape))
    images, channels, height, width = array.shape
    filled = -(-channels // layouts.chunk(layout)) * layouts.chunk(layout)
    held = np.zeros((images, height, width, filled), of_case(layout, array.dtype))
    with np.errstate(over="ignore", invalid="ignore"):  # infinite or NaN there, as on a GPU
        kept = packing.tf32(array) if layout == layouts.ROUNDED else array
        held[..., :channels] = kept.transpose(0, 2, 3, 1)
    return held
