"""Where the maxima of a pool lie, in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measure.answers.nodes import pool as pools
from bench.measure.answers.nodes._common import Nodes, as_drawn
from kernels.ops.pool_index import PoolIndex

drawn = as_drawn


def nodes(p: PoolIndex, names: Sequence[str], output: str) -> Nodes:
    """The second output of a max pool."""
    (made,), constants = pools.nodes(p.pool, names, f"{output}_largest")
    made.output.append(output)
    if p.by_columns:
        made.attribute.add(name="storage_order", i=1, type=2)  # AttributeProto.INT
    return [made], constants
