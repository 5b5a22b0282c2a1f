"""ArrayFeatureExtractor: places along the last axis, which classifiers of scikit-learn name their classes by.

Of the domain ai.onnx.ml. It is a Gather whose output has the places as one axis, whatever shape they came in.
"""

from __future__ import annotations

import math
from dataclasses import replace

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops import gather
from engine.ops._base import Lowered, Scope, operator


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def lower(node: Node, scope: Scope) -> Lowered:
    """x, places → y (…, places); of a vector one row."""
    x, places = node.inputs
    made = gather.gather(replace(node, op_type="Gather", domain="", attributes={"axis": -1}), scope)
    shape = (*(scope.shape(x)[:-1] or (1,)), math.prod(scope.shape(places)))
    return replace(made, specs={**made.specs, node.outputs[0]: TensorSpec(shape, scope.spec(x).dtype)})
