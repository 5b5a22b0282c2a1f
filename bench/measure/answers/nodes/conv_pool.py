"""Convolution and pooling in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.measure.answers.nodes import conv, pool
from bench.measure.answers.nodes._common import Nodes, activate, activated, reached
from kernels.ops.conv_pool import ConvPool


def nodes(p: ConvPool, names: Sequence[str], output: str) -> Nodes:
    made, _ = conv.nodes(p.conv, names, "maps")
    activate(made, p.conv.activation, "sums", "maps")
    made += pool.nodes(p.pool, ["maps"], output)[0]
    activate(made, p.pool.activation, "linear", output)
    return made, {}


def drawn(p: ConvPool, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return conv.drawn(p.conv, place, values, random)


def elements(p: ConvPool, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """See bench.measure.answers.elements. All of the convolution under a window, and what the pool makes of
    it: an average counts padding where it is asked to, and never what lies beyond that."""
    pool = p.pool
    n, m, row, column = np.unravel_index(places, p.output_shape)
    high, above = reached(row, pool.h, pool.kh, pool.stride_h, pool.pad_top, pool.dilation_h)
    wide, beside = reached(column, pool.w, pool.kw, pool.stride_w, pool.pad_left, pool.dilation_w)
    shape = (len(places), pool.kh, pool.kw)
    window = (n[:, None, None], m[:, None, None], high[:, :, None], wide[:, None])
    flat = (np.broadcast_to(index, shape).reshape(-1) for index in window)
    values = conv.at(p.conv, inputs, *flat).reshape(shape)
    inside = above[:, :, None] & beside[:, None]
    if pool.kind == "max":
        return activated(np.where(inside, values, -np.inf).max(axis=(1, 2)), pool.activation)
    counted = inside
    if pool.count_include_pad:
        rows = row[:, None] * pool.stride_h + np.arange(pool.kh) * pool.dilation_h
        columns = column[:, None] * pool.stride_w + np.arange(pool.kw) * pool.dilation_w
        counted = (rows < pool.h + pool.pad_top + pool.pad_bottom)[:, :, None] & (
            columns < pool.w + pool.pad_left + pool.pad_right
        )[:, None]
    sums = np.where(inside, values, 0).sum(axis=(1, 2))
    return activated(sums / np.maximum(counted.sum(axis=(1, 2)), 1), pool.activation)
