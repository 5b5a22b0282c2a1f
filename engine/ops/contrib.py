"""Operators of ONNX Runtime's own (com.microsoft) that transformers optimised by it are made of: they are
others of ONNX's, or some of these one behind the other."""

from __future__ import annotations

import numpy as np

from engine.graph.graph import Node
from engine.ops import rotary_embedding
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, optional_input
from engine.ops._nodes import Nodes, written
from engine.ops.unary import unary
from kernels.ops import FLOATS

DOMAIN = "com.microsoft"


@operator("BiasGelu", "FastGelu", "Gelu", "QuickGelu", domain=DOMAIN)
def _function(node: Node, scope: Scope) -> Lowered:
    """Gelu, FastGelu and BiasGelu of x, or of x + bias; QuickGelu, x · sigmoid(alpha · x)."""
    x, output = node.inputs[0], node.outputs[0]
    kind, alpha = {
        "FastGelu": ("gelu_tanh", 0.0),
        "QuickGelu": ("swish", float(node.attributes.get("alpha", 1.702))),
    }.get(node.op_type, ("gelu", 0.0))
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    if dtype not in FLOATS:
        raise Refused(f"it computes in {dtype}, and floating point is supported")
    bias = optional_input(node, 1) if node.op_type in ("BiasGelu", "FastGelu") else ""
    if not bias:
        return kernel(node, unary(kind, shape, dtype, alpha), (x,), shape, dtype)
    nodes = Nodes(node, scope)
    nodes.kernel(unary(kind, shape, dtype, alpha), (nodes("Add", x, bias),), shape, output)
    return nodes.lowered()


@written("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=DOMAIN)
def _skip(node: Node, nodes: Nodes) -> None:
    """x, skip, scale, bias, bias of the sum → their sum normalised, and behind it the sum: of the layer, or
    (SkipSimplified…, which has no bias of its own) by its root mean square."""
    simplified = node.op_type.startswith("SkipSimplified")
    x, skip, scale = node.inputs[:3]
    bias = "" if simplified else optional_input(node, 3)
    more = optional_input(node, 3 if simplified else 4)
    wanted = [name if name in nodes.around.consumed else "" for name in node.outputs] + [""] * 4
    if wanted[1] or wanted[2]:
        raise Refused("its mean or deviation is read, and they are not given")
    total = nodes("Add", x, skip, output="" if more else wanted[3])
    if more:
        total = nodes("Add", total, more, output=wanted[3])
    inputs = (total, scale, *((bias,) if bias else ()))
    kind = "RMSNormalization" if simplified else "LayerNormalization"
    epsilon = float(node.attributes.get("epsilon", 1e-5 if simplified else 1e-12))
    nodes(kind, *inputs, output=node.outputs[0], axis=-1, epsilon=epsilon)


@written("RotaryEmbedding", domain=DOMAIN)
def _rotated(node: Node, nodes: Nodes) -> None:
    """As RotaryEmbedding of ONNX, its inputs in another order; one place alone is that of the first."""
    x, places, cosines, sines = node.inputs
    if int(node.attributes.get("is_packed_batching", 0)) or float(node.attributes.get("scale", 1.0)) != 1:
        raise Refused("its batch is packed or its places scaled, and neither is supported")
    if nodes.shape(places) == (1,):
        first = nodes.around.constants.get(places)
        if first is None:
            raise Refused(f"its first place {places!r} must be constant, and depends on the graph's inputs")
        shape = nodes.shape(x)
        along = shape[1] if len(shape) == 3 else shape[2]
        places = nodes.constant(np.broadcast_to(int(first[0]) + np.arange(along), (shape[0], along)))
    rotary_embedding.rotated(nodes, x, cosines, sines, places)
