"""Axes permuted, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.transpose import Transpose

drawn = as_drawn


def nodes(p: Transpose, names: Sequence[str], output: str) -> Nodes:
    return [node("Transpose", names, output, perm=p.perm)], {}
