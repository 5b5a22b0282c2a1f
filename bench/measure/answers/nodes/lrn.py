"""Local response normalisation in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.lrn import Lrn

drawn = as_drawn


def nodes(p: Lrn, names: Sequence[str], output: str) -> Nodes:
    return [node("LRN", names, output, size=p.size, alpha=p.alpha, beta=p.beta, bias=p.bias)], {}
