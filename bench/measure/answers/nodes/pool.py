"""Pooling in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure.answers.nodes._common import Nodes, as_drawn, node, window
from kernels.ops.pool import Pool

drawn = as_drawn


def nodes(p: Pool, names: Sequence[str], output: str) -> Nodes:
    floors = [
        (size + before + after - (kernel - 1) * dilation - 1) // stride + 1
        for size, before, after, kernel, dilation, stride in (
            (p.h, p.pad_top, p.pad_bottom, p.kh, p.dilation_h, p.stride_h),
            (p.w, p.pad_left, p.pad_right, p.kw, p.dilation_w, p.stride_w),
        )
    ]
    attributes = window(p) | {"ceil_mode": int(floors != [p.out_h, p.out_w])}
    if p.kind == "max":
        return [node("MaxPool", names, output, **attributes)], {}
    counted = int(p.count_include_pad)
    return [node("AveragePool", names, output, count_include_pad=counted, **attributes)], {}
