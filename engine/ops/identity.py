"""Identity, and Dropout, which is one outside training."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, view

OP_TYPES = ("Dropout", "Identity")


def lower(node: Node, scope: Scope) -> Lowered:
    """x → the same bytes."""
    if node.op_type == "Dropout":
        training = scope.constant(node, 2, "training_mode")
        if training is not None and training.any():
            raise Refused("it is in training mode (training_mode is true), and only inference is supported")
        scope.refuse_outputs(node, "the mask")
    return view(node, scope, scope.shape(node.inputs[0]))
