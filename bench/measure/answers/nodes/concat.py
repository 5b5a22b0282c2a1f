"""Rows side by side, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.concat import Concat

drawn = as_drawn


def nodes(p: Concat, names: Sequence[str], output: str) -> Nodes:
    return [node("Concat", names, output, axis=1)], {}
