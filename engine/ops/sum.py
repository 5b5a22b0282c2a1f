"""Mean of any number of tensors with NumPy broadcasting."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._nodes import Nodes, written


@written("Mean")
def _mean(node: Node, nodes: Nodes) -> None:
    """x0, x1, … → y of their broadcast shape."""
    count, output = len(node.inputs), node.outputs[0]
    total = nodes("Sum", *node.inputs, output=output if count == 1 else "")
    if count > 1:
        nodes("Div", total, nodes.constant(count, nodes.dtype(total)), output=output)
