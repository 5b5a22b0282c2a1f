"""Trilu: a choice between x and 0, by the diagonal that an element lies on."""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused, optional_input
from engine.ops._nodes import Nodes, written


@written("Trilu")
def _trilu(node: Node, nodes: Nodes) -> None:
    """x (…, rows, columns), the diagonal k (0 where it is absent) → y of the same shape."""
    scope, k = nodes.around, optional_input(node, 1)
    x, shape, dtype = scope.first(node)
    if len(shape) < 2:
        raise Refused(f"its input of shape {shape} is no matrix")
    upper = bool(node.attributes.get("upper", 1))
    diagonals = np.subtract.outer(-np.arange(shape[-2]), -np.arange(shape[-1]))
    if k and k not in scope.constants:
        known = nodes.constant(diagonals, np.int64)
        mask = nodes("GreaterOrEqual" if upper else "LessOrEqual", known, nodes.shaped(k, ()))
    else:
        first = int(scope.constants[k].reshape(-1)[0]) if k else 0
        mask = nodes.constant(diagonals >= first if upper else diagonals <= first)
    nodes("Where", mask, x, nodes.constant(0, dtype), output=node.outputs[0])
