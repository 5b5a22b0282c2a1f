"""OneHot and Hardmax: a comparison with the numbers of the places along an axis."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from engine.graph.graph import Node
from engine.ops._base import Refused, normal_axis
from engine.ops._nodes import Nodes, written


@written("OneHot")
def _one_hot(node: Node, nodes: Nodes) -> None:
    """places, depth, (off, on) → one axis more."""
    scope = nodes.around
    places, _, values = node.inputs
    depth_constant = scope.constant(node, 1, "depth")
    if depth_constant is None or depth_constant.size != 1 or int(depth_constant.reshape(-1)[0]) < 1:
        raise Refused(f"its depth is {depth_constant}, and one number above 0 is wanted")
    if scope.shape(values) != (2,):
        raise Refused(f"its values have the shape {scope.shape(values)}, and two are wanted")
    depth, shape = int(depth_constant.reshape(-1)[0]), scope.shape(places)
    axis = normal_axis(int(node.attributes.get("axis", -1)), len(shape) + 1)
    if scope.spec(places).dtype != "int64":
        places = nodes("Cast", places, to=TensorProto.INT64)
    places = nodes.shaped(places, (*shape[:axis], 1, *shape[axis:]))
    along = np.arange(depth, dtype=np.int64).reshape(-1, *(1,) * (len(shape) - axis))
    # A place below 0 counts from the end.
    ends = [nodes("Equal", places, nodes.constant(numbers)) for numbers in (along, along - depth)]
    off, on = (nodes("Gather", values, nodes.constant(np.array(i)), axis=0) for i in range(2))
    nodes("Where", nodes("Or", *ends), on, off, output=node.outputs[0])


@written("Hardmax")
def _hardmax(node: Node, nodes: Nodes) -> None:
    """x → 1 at the first largest along an axis, 0 elsewhere. Before opset 13 everything from the axis on is
    one row."""
    scope = nodes.around
    x, shape, dtype = scope.first(node)
    axis = normal_axis(int(node.attributes.get("axis", -1 if scope.opset >= 13 else 1)), len(shape))
    inner = shape[axis + 1 :] if scope.opset >= 13 else ()
    rows = (math.prod(shape[:axis]), math.prod(shape[axis:]) // math.prod(inner), math.prod(inner))
    place = nodes("ArgMax", nodes.shaped(x, rows), axis=1)
    hit = nodes("Equal", place, nodes.constant(np.arange(rows[1], dtype=np.int64)[:, None]))
    nodes.shaped(nodes("CastLike", hit, nodes.constant(0, dtype)), shape, output=node.outputs[0])
