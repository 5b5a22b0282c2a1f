"""Identity; Dropout, which is one outside training; OptionalGetElement of what is a tensor."""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Lowered, Refused, Scope, operator, view


@operator("Dropout", "Identity", "OptionalGetElement")
def lower(node: Node, scope: Scope) -> Lowered:
    """x → the same bytes."""
    if node.op_type == "Dropout":
        training = scope.constant(node, 2, "training_mode")
        if training is not None and training.any():
            raise Refused("it is in training mode (training_mode is true), and only inference is supported")
    lowered = view(node, scope, scope.shape(node.inputs[0]))
    mask = node.outputs[1] if len(node.outputs) > 1 else ""
    if not mask or mask not in scope.consumed:
        return lowered
    # Nothing is dropped.
    source = scope.spec(node.inputs[0])
    kept = np.ones(source.shape, np.bool_ if scope.opset >= 10 else source.dtype)
    specs = {**lowered.specs, mask: TensorSpec(kept.shape, kept.dtype.name)}
    return Lowered(lowered.items, specs, {mask: kept})
