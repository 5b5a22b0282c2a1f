"""DFT and STFT: products with a matrix of cosines and sines, which is made once.

Of n places that is n · n multiplications, where a fast transform would take n · log n. They are done in
double precision: what cancels in a transform is as small as a fast one leaves it.
"""

from __future__ import annotations

import math

import numpy as np
import onnx

from engine.graph.graph import Node
from engine.ops._base import Refused, normal_axis, optional_input
from engine.ops._nodes import Nodes, written

MOST_PLACES = 1 << 13  # of one transform: its matrix has four times their square, 2 GiB


@written("DFT")
def _dft(node: Node, nodes: Nodes) -> None:
    """x (…, places, …, 1 or 2) → y (…, bins, …, 2), real and imaginary part along the last axis; of the
    inverse of one side y (…, places, …, 1)."""
    scope, x = nodes.around, node.inputs[0]
    rank, attributes = len(scope.shape(x)), node.attributes
    length_constant = scope.constant(node, 1, "dft_length")
    chosen = scope.constant(node, 2, "axis")
    axis = int(attributes.get("axis", 1)) if scope.opset < 20 else -2
    axis = normal_axis(axis if chosen is None else int(chosen.reshape(-1)[0]), rank)
    if axis == rank - 1:
        raise Refused("its axis is the last, along which lie real and imaginary part")
    inverse, onesided = bool(attributes.get("inverse", 0)), bool(attributes.get("onesided", 0))
    length = 2 * (scope.shape(x)[axis] - 1) if inverse and onesided else scope.shape(x)[axis]
    length = length if length_constant is None else int(length_constant.reshape(-1)[0])
    _transformed(nodes, x, axis, length, inverse, onesided, node.outputs[0])


def _transformed(
    nodes: Nodes, x: str, axis: int, length: int, inverse: bool, onesided: bool, output: str
) -> None:
    shape = nodes.shape(x)
    places, parts = min(shape[axis], length), shape[-1]
    if parts not in (1, 2) or not 1 <= length <= MOST_PLACES:
        raise Refused(
            f"its input has {parts} parts and {length} places; 1 or 2 parts and up to {MOST_PLACES:,} places "
            "are supported"
        )
    if onesided and parts != (2 if inverse else 1):
        raise Refused(f"it is one-sided of numbers with {parts} parts, which does not go together")
    places = min(places, length // 2 + 1) if onesided and inverse else places
    last = len(shape) - 1
    if places < shape[axis]:
        x = nodes("Gather", x, nodes.constant(np.arange(places)), axis=axis)
    order = [a for a in range(last) if a != axis]
    rest = [shape[a] for a in order]
    moved = nodes("Transpose", x, perm=[*order, axis, last])
    rows = nodes.shaped(moved, (math.prod(rest), places * parts))
    matrix = _matrix(places, parts, length, inverse, onesided)
    wide = nodes("Cast", rows, to=onnx.TensorProto.DOUBLE)
    product = nodes("CastLike", nodes("MatMul", wide, nodes.constant(matrix)), x)
    split = nodes.shaped(product, (*rest, -1, 1 if onesided and inverse else 2))
    back = [*order, axis, last]
    nodes("Transpose", split, output=output, perm=[back.index(a) for a in range(len(shape))])


def _matrix(places: int, parts: int, length: int, inverse: bool, onesided: bool) -> np.ndarray:
    """(places · parts, bins · parts of a bin): what each part of each place adds to each part of each bin."""
    bins = length // 2 + 1 if onesided and not inverse else length
    turns = np.outer(np.arange(places), np.arange(bins)) % length * (2 * np.pi / length)
    real, imaginary = np.cos(turns), np.sin(turns) if inverse else -np.sin(turns)
    both = np.stack([np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)], 1)[:, :parts]
    if inverse:
        both /= length
    if onesided and inverse:
        # The other side is the same, conjugate: what it adds to the real part is the same again.
        twice = np.where((np.arange(places) == 0) | (2 * np.arange(places) == length), 1.0, 2.0)
        both = both[..., :1] * twice[:, None, None, None]
    return np.ascontiguousarray(both.reshape(places * parts, -1))


@written("STFT")
def _stft(node: Node, nodes: Nodes) -> None:
    """signal (n, places, 1 or 2), window (length,) → y (n, frames, bins, 2)."""
    scope, x, window = nodes.around, node.inputs[0], optional_input(node, 2)
    shape = scope.shape(x)
    step, frame_length = scope.constant(node, 1, "frame_step"), scope.constant(node, 3, "frame_length")
    if frame_length is None and not window:
        raise Refused("it has neither a window nor a frame_length")
    length = scope.shape(window)[0] if frame_length is None else int(frame_length.reshape(-1)[0])
    hop = 0 if step is None else int(step.reshape(-1)[0])
    if len(shape) == 2:
        x, shape = nodes.shaped(x, (*shape, 1)), (*shape, 1)
    if hop < 1 or not 1 <= length <= shape[1] or len(shape) != 3:
        raise Refused(f"frames of {length} every {hop} places do not fit a signal of shape {shape}")
    frames = (shape[1] - length) // hop + 1
    places = np.add.outer(np.arange(frames) * hop, np.arange(length))
    x = nodes("Gather", x, nodes.constant(places), axis=1)
    if window:
        x = nodes("Mul", x, nodes.shaped(window, (length, 1)))
    onesided = bool(node.attributes.get("onesided", 1))
    _transformed(nodes, x, 2, length, False, onesided, node.outputs[0])
