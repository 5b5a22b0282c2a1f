"""Local response normalisation and pooling in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure.answers.nodes import lrn, pool
from bench.measure.answers.nodes._common import Nodes, as_drawn
from kernels.ops.lrn_pool import LrnPool

drawn = as_drawn


def nodes(p: LrnPool, names: Sequence[str], output: str) -> Nodes:
    (first, _), (second, _) = lrn.nodes(p.lrn, names, "normal"), pool.nodes(p.pool, ["normal"], output)
    return [*first, *second], {}
