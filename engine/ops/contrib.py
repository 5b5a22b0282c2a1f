"""Operators of ONNX Runtime's own (com.microsoft) that models optimised by it are made of: they are others of
ONNX's, or some of these one behind the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


# ---------------------------------------------------------------------------------------------------- fused

# What ONNX Runtime's optimisers make of several nodes of ONNX's (com.microsoft), as these nodes again:
# products with what follows them, and the attention and the embeddings of BERT-like encoders.
#
# ONNX Runtime's docs/ContribOperators.md says what each computes.


_UNMASKED = -10000.0  # added to the scores of what is not seen, where mask_filter_value does not say
INT64, BOOL = 7, 9  # of ONNX's TensorProto


def _refuse_given(node: Node, places: Mapping[int, str]) -> None:
    for place, what in places.items():
        if optional_input(node, place):
            raise Refused(f"it is given {what}, which is not supported")


# -------------------------------------------------------------------------------------------------- products


def _activated(node: Node, nodes: Nodes, x: str, parameters: Sequence[float]) -> None:
    """The node's activation of x as its output."""
    kind, output = str(node.attributes.get("activation", "")), node.outputs[0]
    like = np.dtype(nodes.dtype(x))
    if kind == "Clip":
        low, high = (nodes.constant(np.asarray(bound, like)) for bound in (*parameters, 0.0, 1.0)[:2])
        nodes("Clip", x, low, high, output=output)
    elif kind in ("LeakyRelu", "HardSigmoid"):
        named = dict(zip(("alpha", "beta"), parameters, strict=False))
        nodes(kind, x, output=output, **named)
    elif kind in ("", "Relu", "Sigmoid", "Tanh"):
        nodes(kind or "Identity", x, output=output)
    else:
        raise Refused(f"its activation {kind!r} is not known")


@written("FusedConv", domain=DOMAIN)
def _conv(node: Node, nodes: Nodes) -> None:
    """x, weights, optional bias, and what is added before the activation."""
    own = ("activation", "activation_params")
    attributes = {name: value for name, value in node.attributes.items() if name not in own}
    inputs = [name for name in node.inputs[:3] if name]
    y = nodes("Conv", *inputs, **attributes)
    if more := optional_input(node, 3):
        y = nodes("Add", y, more)
    _activated(node, nodes, y, node.attributes.get("activation_params") or ())


@written("FusedGemm", domain=DOMAIN)
def _gemm(node: Node, nodes: Nodes) -> None:
    attributes = {k: v for k, v in node.attributes.items() if not k.startswith("activation")}
    settings = [node.attributes.get(f"activation_{name}") for name in ("alpha", "beta")]
    y = nodes("Gemm", *(name for name in node.inputs if name), **attributes)
    _activated(node, nodes, y, [float(value) for value in settings if value is not None])


@written("FusedMatMul", domain=DOMAIN)
def _matmul(node: Node, nodes: Nodes) -> None:
    """alpha · op(a) · op(b), each with its last two axes exchanged where transA or transB says so."""
    if any(int(node.attributes.get(f"transBatch{of}", 0)) for of in "AB"):
        raise Refused("its batch is transposed (transBatchA or B), which is not supported")
    sides = []
    for name, of in zip(node.inputs, "AB", strict=True):
        rank = len(nodes.shape(name))
        if int(node.attributes.get(f"trans{of}", 0)) and rank > 1:
            name = nodes("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])
        sides.append(name)
    alpha = float(node.attributes.get("alpha", 1.0))
    if alpha == 1:
        nodes("MatMul", *sides, output=node.outputs[0])
        return
    factor = nodes.constant(np.asarray(alpha, nodes.dtype(node.inputs[0])))
    nodes("Mul", nodes("MatMul", *sides), factor, output=node.outputs[0])


@written("MatMulNBits", domain=DOMAIN)
def _of_few_bits(node: Node, nodes: Nodes) -> None:
    """x · wᵀ, where w (columns, inner) has 4 or 8 bits a weight, a scale and a zero point for each block of
    the inner axis: made float32 beforehand."""
    _refuse_given(node, {4: "an order of its groups (g_idx)"})
    bits, block = (int(node.attributes.get(name, 0)) for name in ("bits", "block_size"))
    inner, columns = (int(node.attributes.get(name, 0)) for name in ("K", "N"))
    if bits not in (4, 8) or block < 1 or nodes.shape(node.inputs[0])[-1:] != (inner,):
        raise Refused(
            f"it has {bits} bits a weight in blocks of {block} for {inner} of x; 4 and 8 are supported"
        )
    packed, scales, zeros = (
        nodes.around.constant(node, place, what)
        for place, what in ((1, "weights"), (2, "scales"), (3, "zero points"))
    )
    blocks = -(-inner // block)
    if packed is None or scales is None or packed.size * 8 != columns * blocks * block * bits:
        raise Refused(f"its weights are not {columns} × {blocks} blocks of {block} at {bits} bits")
    whole = _unpacked(packed.reshape(columns, blocks, -1), bits)
    if zeros is None:
        shift = np.full((columns, blocks), 1 << (bits - 1), np.float32)
    elif zeros.dtype == np.uint8:
        shift = _unpacked(zeros.reshape(columns, -1), bits)[:, :blocks]
    else:
        shift = zeros.reshape(columns, blocks).astype(np.float32)
    scale = scales.astype(np.float32).reshape(columns, blocks, 1)
    weights = ((whole - shift[..., None]) * scale).reshape(columns, -1)[:, :inner]
    dtype = nodes.dtype(node.inputs[0])
    bias = optional_input(node, 5)
    output = node.outputs[0]
    factor = nodes.constant(np.ascontiguousarray(weights.T).astype(dtype))
    y = nodes("MatMul", node.inputs[0], factor, output="" if bias else output)
    if bias:
        nodes("Add", y, bias, output=output)


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Of two in a byte the lower half comes first."""
    if bits == 8:
        return packed.astype(np.float32)
    halves = np.stack([packed & 15, packed >> 4], axis=-1)
    return halves.reshape(*packed.shape[:-1], -1).astype(np.float32)


# ------------------------------------------------------------------------------------------------- attention


def _parts(nodes: Nodes, x: str, count: int) -> list[str]:
    """x, cut along its last axis."""
    axis = len(nodes.shape(x)) - 1
    size = nodes.shape(x)[axis] // count
    return [
        nodes("Slice", x, *(nodes.constant([n], np.int64) for n in (i * size, (i + 1) * size, axis)))
        for i in range(count)
    ]


@written("Attention", domain=DOMAIN)
def _attention(node: Node, nodes: Nodes) -> None:
    """x (batch, places, elements), weights and bias of queries, keys and values beside each other, mask."""
    _refuse_given(node, {4: "keys and values of before", 6: "a length of before"})
    for name in ("do_rotary", "past_present_share_buffer", "qkv_hidden_sizes"):
        if node.attributes.get(name):
            raise Refused(f"its {name} is set, which is not supported")
    product = nodes("MatMul", *node.inputs[:2])
    if bias := optional_input(node, 2):
        product = nodes("Add", product, bias)
    if nodes.shape(product)[-1] % 3:
        raise Refused(
            f"its weights give {nodes.shape(product)[-1]} elements, and three times as many are wanted"
        )
    _attended(node, nodes, _parts(nodes, product, 3), optional_input(node, 3), optional_input(node, 5))


@written("MultiHeadAttention", domain=DOMAIN)
def _multi_head(node: Node, nodes: Nodes) -> None:
    """Queries, keys and values (batch, places, elements), their biases side by side, the keys' mask."""
    _refuse_given(node, {6: "keys of before", 7: "values of before", 8: "a length of before"})
    sides = [optional_input(node, place) for place in range(3)]
    if not all(sides) or any(len(nodes.shape(name)) != 3 for name in sides):
        raise Refused("its queries, keys and values are packed, and each of three axes are wanted")
    if bias := optional_input(node, 3):
        biases = _parts(nodes, bias, 3)
        sides = [nodes("Add", side, of) for side, of in zip(sides, biases, strict=True)]
    _attended(node, nodes, sides, optional_input(node, 4), optional_input(node, 5))


def _attended(node: Node, nodes: Nodes, sides: Sequence[str], mask: str, bias: str) -> None:
    for name in node.outputs[1:]:
        if name and name in nodes.around.consumed:
            raise Refused(f"its output {name!r} is read, and only the first one is supported")
    heads = int(node.attributes.get("num_heads", 0))
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": heads}
    if scale := float(node.attributes.get("scale", 0.0)):
        attributes["scale"] = scale
    if int(node.attributes.get("unidirectional", 0)):
        attributes["is_causal"] = 1
    added = [*([_hidden(node, nodes, mask, sides)] if mask else ()), *([bias] if bias else ())]
    if len(added) == 2:
        added = [nodes("Add", *added)]
    nodes("Attention", *sides, *added, output=node.outputs[0], **attributes)


def _hidden(node: Node, nodes: Nodes, mask: str, sides: Sequence[str]) -> str:
    """What is added to scores, (batch, 1, 1, keys): mask says of each key whether it is seen, or of each
    image how many are."""
    batch, keys = nodes.shape(sides[1])[:2]
    dtype, shape = nodes.dtype(sides[0]), nodes.shape(mask)
    if shape == (batch, keys):
        seen = nodes.shaped(nodes("Cast", mask, to=BOOL), (batch, 1, 1, keys))
    elif shape == (batch,):
        count = nodes.shaped(nodes("Cast", mask, to=INT64), (batch, 1, 1, 1))
        seen = nodes("Less", nodes.constant(np.arange(keys, dtype=np.int64)), count)
    else:
        raise Refused(f"its mask has the shape {shape}; ({batch}, {keys}) and ({batch},) are supported")
    away = float(node.attributes.get("mask_filter_value", _UNMASKED))
    zero, hidden = (nodes.constant(np.asarray(value, dtype)) for value in (0.0, away))
    return nodes("Where", seen, zero, hidden)


# ------------------------------------------------------------------------------------------------ embeddings


@written("EmbedLayerNormalization", domain=DOMAIN)
def _embedded(node: Node, nodes: Nodes) -> None:
    """Words, places and (where they are given) segments of numbers (batch, places), added up and normalised;
    and how many places of each image its mask says are seen."""
    words, segments, of_words, of_places, of_segments, scale, bias, mask, places = (
        optional_input(node, place) for place in range(9)
    )
    y, counts, total = (*node.outputs, "", "")[:3]
    length = nodes.shape(words)[1]
    rows = nodes("Gather", of_words, words, axis=0)
    first = places or nodes.constant(np.arange(length, dtype=np.int64)[None])
    rows = nodes("Add", rows, nodes("Gather", of_places, first, axis=0))
    if segments and of_segments:
        rows = nodes("Add", rows, nodes("Gather", of_segments, segments, axis=0))
    if total and total in nodes.around.consumed:
        nodes("Identity", rows, output=total)
    epsilon = float(node.attributes.get("epsilon", 1e-12))
    nodes("LayerNormalization", rows, scale, bias, axis=-1, epsilon=epsilon, output=y)
    if counts and counts in nodes.around.consumed:
        if not mask:
            raise Refused(f"its output {counts!r} is read, and it is given no mask to count")
        nodes("ReduceSum", mask, nodes.constant([1], np.int64), keepdims=0, output=counts)
