"""Convolution of eight-bit numbers in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes import _quantized, conv
from bench.measure.answers.nodes._common import Nodes, window
from bench.measure.answers.nodes._quantized import drawn, finished
from kernels.ops.qconv import QConv

__all__ = ["drawn", "elements", "nodes"]


def nodes(p: QConv, names: Sequence[str], output: str) -> Nodes:
    how = {"group": p.product.group, **window(p.product)}
    return _quantized.nodes(p, names, output, "Conv", 0, how)


def elements(p: QConv, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements."""
    at = np.unravel_index(places, p.output_shape)
    weights = inputs[1].reshape(p.product.m, -1).astype(np.int64) - inputs[3].reshape(-1, 1).astype(np.int64)
    less = [inputs[0].astype(np.int64) - inputs[2].astype(np.int64), weights]
    return finished(p, conv.at(p.product, less, *at), at[1], inputs[4:])
