"""Each operator of the ladder in ONNX's nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from kernels.ops import EXPONENTS, FLOATS8, GELUS, Params
from kernels.ops._quantized import EIGHT_BITS, Quantized
from kernels.ops.attention import Attention
from kernels.ops.binary import BINARY_KINDS, Binary
from kernels.ops.cast import Cast
from kernels.ops.compare import Compare
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.cumulate import Cumulate
from kernels.ops.gather import Gather
from kernels.ops.gemm import Gemm
from kernels.ops.grid_sample import GridSample
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.normalize import Normalize
from kernels.ops.pad import Pad
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.qadd import QAdd
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.ops.quantize import Quantize
from kernels.ops.recurrent import Recurrent
from kernels.ops.reduce import PLACES, Reduce
from kernels.ops.resize import Resize
from kernels.ops.scatter import Scatter
from kernels.ops.softmax import Softmax
from kernels.ops.top_k import TopK
from kernels.ops.transpose import Transpose
from kernels.ops.unary import UNARY_KINDS, Unary
from kernels.ops.where import Where

ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}
Nodes = tuple[list[Any], dict[str, np.ndarray]]


@singledispatch
def nodes(p: Params, names: Sequence[str], output: str) -> Nodes:
    """The ONNX nodes from the inputs of these names to `output`, without the activation behind them, and the
    constants that they read. Raises TypeError for an operator that has none here."""
    raise TypeError(f"bench/measure/answers/nodes.py has no nodes of {p.op}, which every operator has there")


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    """An ONNX node, named after what it is and what it gives."""
    return helper.make_node(kind, list(inputs), [output], name=f"{kind.lower()}_{output}", **attributes)


def activate(nodes: list[Any], kind: str | None, linear: str, output: str) -> None:
    """An activation behind the last of the nodes, whose output becomes `linear`; none for None."""
    if kind:
        nodes[-1].output[0] = linear
        if kind == "relu6":
            bounds = {f"{output}:lower": 0.0, f"{output}:upper": 6.0}
            nodes += [node("Constant", (), name, value_float=value) for name, value in bounds.items()]
            nodes.append(node("Clip", [linear, *bounds], output))
        elif kind in GELUS:
            nodes += _gelu_behind(kind, linear, output)
        else:
            nodes.append(node(ACTIVATIONS[kind], [linear], output))


def _gelu_behind(kind: str, linear: str, output: str) -> list[Any]:
    """Its nodes and those of the constants that they read; what is between has names of its own."""
    made = _COMPOSED[kind](linear, output)
    read = dict.fromkeys(name for each in made for name in each.input)
    constants = [node("Constant", (), name, value_float=_FIXED[name]) for name in read if name in _FIXED]
    for each in [*constants, *made]:
        for names in (each.input, each.output):
            names[:] = [name if name in (linear, output) else f"{output}:{name}" for name in names]
        each.name = f"{each.name}_{output}"
    return [*constants, *made]


def window(p: Conv | Pool) -> dict[str, Any]:
    """The attributes of a window."""
    return {
        "kernel_shape": [p.kh, p.kw],
        "strides": [p.stride_h, p.stride_w],
        "pads": [p.pad_top, p.pad_left, p.pad_bottom, p.pad_right],
        "dilations": [p.dilation_h, p.dilation_w],
    }


_FUNCTIONS = {
    **{kind: kind.capitalize() for kind in UNARY_KINDS},
    **ACTIVATIONS,
    "leaky_relu": "LeakyRelu",
    "thresholded_relu": "ThresholdedRelu",
    "hard_sigmoid": "HardSigmoid",
    "hard_swish": "HardSwish",
}


# Numbers that the functions below are made with, whatever their parameters are.
_FIXED = {
    "half": 0.5,
    "one": 1.0,
    "cube": 0.044715,
    "root_half": math.sqrt(0.5),
    "root_of_pi": math.sqrt(2 / math.pi),
}

# What ONNX calls alpha and beta, where these are attributes.
_ATTRIBUTES = {
    **dict.fromkeys(("leaky_relu", "thresholded_relu", "elu", "celu"), ("alpha",)),
    "hard_sigmoid": ("alpha", "beta"),
    "selu": ("alpha", "gamma"),
    "shrink": ("lambd", "bias"),
}


# Those of an opset beyond that of a single operator, and those whose parameters are inputs, in other nodes.
_Made = Callable[[str, str], list[Any]]


@nodes.register
def _unary(p: Unary, names: Sequence[str], output: str) -> Nodes:
    if p.kind in _COMPOSED:
        constants = {"alpha": p.alpha, "beta": p.beta, **_FIXED}
        made = _COMPOSED[p.kind](names[0], output)
        read = {name for each in made for name in each.input}
        return made, {name: np.array(value, p.dtype) for name, value in constants.items() if name in read}
    attributes = dict(zip(_ATTRIBUTES.get(p.kind, ()), (p.alpha, p.beta), strict=False))
    return [node(_FUNCTIONS[p.kind], names, output, **attributes)], {}


def _swish(x: str, y: str) -> list[Any]:
    return [
        node("Mul", [x, "alpha"], "scaled"),
        node("Sigmoid", ["scaled"], "gate"),
        node("Mul", [x, "gate"], y),
    ]


def _halved(inside: list[Any], x: str, y: str) -> list[Any]:
    """x · (1 + gate) / 2."""
    behind = [node("Add", ["gate", "one"], "sum"), node("Mul", [x, "sum"], "twice")]
    return [*inside, *behind, node("Mul", ["twice", "half"], y)]


def _gelu(x: str, y: str) -> list[Any]:
    return _halved([node("Mul", [x, "root_half"], "scaled"), node("Erf", ["scaled"], "gate")], x, y)


def _gelu_tanh(x: str, y: str) -> list[Any]:
    inside = [
        node("Mul", [x, x], "square"),
        node("Mul", ["square", x], "third"),
        node("Mul", ["third", "cube"], "small"),
        node("Add", [x, "small"], "whole"),
        node("Mul", ["whole", "root_of_pi"], "scaled"),
        node("Tanh", ["scaled"], "gate"),
    ]
    return _halved(inside, x, y)


_COMPOSED: dict[str, _Made] = {
    "clip": lambda x, y: [node("Clip", [x, "alpha", "beta"], y)],
    "pow": lambda x, y: [node("Pow", [x, "alpha"], y)],
    "swish": _swish,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}


_ARITHMETIC = {kind: kind.capitalize() for kind in BINARY_KINDS} | {"fmod": "Mod", "prelu": "PRelu"}


@nodes.register
def _binary(p: Binary, names: Sequence[str], output: str) -> Nodes:
    attributes: dict[str, Any] = {"fmod": 1} if p.kind == "fmod" else {}
    whole = helper.make_node("Expand", ["whole", "shape"], [output], name="expand")
    shape = {"shape": np.array(p.shape, np.int64)}
    if p.kind != "prelu":
        made = node(_ARITHMETIC[p.kind], names, "whole", **attributes)
        return [made, whole], shape
    # Slopes are broadcast to x, and x is not to them.
    whole = helper.make_node("Expand", [names[0], "shape"], ["whole"], name="expand")
    return [whole, node("PRelu", ["whole", names[1]], output)], shape


@nodes.register
def _where(p: Where, names: Sequence[str], output: str) -> Nodes:
    whole = helper.make_node("Expand", ["part", "shape"], [output], name="expand")
    return [node("Where", names, "part"), whole], {"shape": np.array(p.shape, np.int64)}


@nodes.register
def _multiply_add(p: MultiplyAdd, names: Sequence[str], output: str) -> Nodes:
    made = [node("Mul", names[:2], "product"), node("Add", ["product", names[2]], "part")]
    whole = helper.make_node("Expand", ["part", "shape"], [output], name="expand")
    return [*made, whole], {"shape": np.array(p.shape, np.int64)}


_COMPARISONS = {
    "equal": "Equal",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
}


@nodes.register
def _compare(p: Compare, names: Sequence[str], output: str) -> Nodes:
    whole = helper.make_node("Expand", ["part", "shape"], [output], name="expand")
    return [node(_COMPARISONS[p.kind], names, "part"), whole], {"shape": np.array(p.shape, np.int64)}


@nodes.register
def _cast(p: Cast, names: Sequence[str], output: str) -> Nodes:
    how: dict[str, int | str] = {"saturate": int(p.saturate)} if p.to in (*FLOATS8, EXPONENTS) else {}
    if p.to == EXPONENTS:
        how["round_mode"] = p.towards
    return [node("Cast", names, output, to=helper.np_dtype_to_tensor_dtype(np.dtype(p.to)), **how)], {}


@nodes.register
def _quantize(p: Quantize, names: Sequence[str], output: str) -> Nodes:
    x, scale, zero = names
    to = helper.np_dtype_to_tensor_dtype(np.dtype(p.through))
    made, given = [node("Cast", [zero], "zero", to=to)], [scale, "zero"]
    if p.dtype == "float32":
        whole = output if p.to == p.through else "whole"
        made.append(node("QuantizeLinear", [x, *given], whole, axis=1))
        x = whole
    if p.to == "float32":
        made.append(node("DequantizeLinear", [x, *given], output, axis=1))
    return made, {}


@nodes.register
def _qadd(p: QAdd, names: Sequence[str], output: str) -> Nodes:
    made: list[object] = []
    held: dict[str, np.ndarray] = {}
    for name, side, scale, zero, dtype in (
        (names[0], "a", p.a_scale, p.a_zero, p.dtype),
        (names[1], "b", p.b_scale, p.b_zero, p.other),
    ):
        held |= {f"{side}_scale": np.array(scale, np.float32), f"{side}_zero": np.array(zero, dtype)}
        made.append(node("DequantizeLinear", [name, f"{side}_scale", f"{side}_zero"], f"real_{side}"))
    held |= {"out_scale": np.array(p.out_scale, np.float32), "out_zero": np.array(p.out_zero, p.to)}
    held |= {"low": np.array(p.low, p.to), "high": np.array(p.high, p.to)}
    made.append(node("Add", ["real_a", "real_b"], "real"))
    made.append(node("QuantizeLinear", ["real", "out_scale", "out_zero"], "within"))
    return [*made, node("Clip", ["within", "low", "high"], output)], held


@nodes.register
def _transpose(p: Transpose, names: Sequence[str], output: str) -> Nodes:
    return [node("Transpose", names, output, perm=p.perm)], {}


@nodes.register
def _concat(p: Concat, names: Sequence[str], output: str) -> Nodes:
    return [node("Concat", names, output, axis=1)], {}


@nodes.register
def _pad(p: Pad, names: Sequence[str], output: str) -> Nodes:
    constants = {"pads": np.array([*p.begin, *p.end], np.int64), "value": np.array(p.value, p.dtype)}
    return [node("Pad", [*names, *constants], output, mode=p.mode)], constants


@nodes.register
def _gather(p: Gather, names: Sequence[str], output: str) -> Nodes:
    return [node("Gather", names, output, axis=1)], {}


@nodes.register
def _scatter(p: Scatter, names: Sequence[str], output: str) -> Nodes:
    x, places, updates = names
    reduction = "none" if p.kind == "put" else p.kind
    return [
        node("Reshape", [places, "column"], "rows"),
        node("ScatterND", [x, "rows", updates], output, reduction=reduction),
    ], {"column": np.array([-1, 1], np.int64)}


@nodes.register
def _softmax(p: Softmax, names: Sequence[str], output: str) -> Nodes:
    return [node("LogSoftmax" if p.log else "Softmax", names, output, axis=1)], {}


@nodes.register
def _normalize(p: Normalize, names: Sequence[str], output: str) -> Nodes:
    """LayerNormalization where that says it all; else its parts, as exporters of older opsets write them."""
    if p.gives == "all" and p.centred and p.inner == p.groups == 1:
        extra = {} if p.affine else {"ones": np.ones(p.length, p.dtype)}
        return [node("LayerNormalization", [*names, *extra], output, axis=1, epsilon=p.epsilon)], extra
    return _normalized_by_parts(p, names, output)


def _normalized_by_parts(p: Normalize, names: Sequence[str], output: str) -> Nodes:
    x, extra = names[0], {"axes": np.array([1], np.int64)}
    made = []
    if p.centred:
        made.append(node("ReduceMean", [x, "axes"], output if p.gives == "mean" else "mean"))
        if p.gives == "mean":
            return made, extra
        made.append(node("Sub", [x, "mean"], "moved"))
        x = "moved"
    extra["epsilon"] = np.array(p.epsilon, p.dtype)
    made += [
        node("Mul", [x, x], "squares"),
        node("ReduceMean", ["squares", "axes"], "variance"),
        node("Add", ["variance", "epsilon"], "above_zero"),
        node("Sqrt", ["above_zero"], "deviation"),
    ]
    if p.gives == "factor":
        return [*made, node("Reciprocal", ["deviation"], output)], extra
    made.append(node("Div", [x, "deviation"], "normal" if p.affine else output))
    if p.affine:
        parts = (p.groups, p.length // p.inner)
        extra |= {
            "parts": np.array([-1, *parts, p.inner], np.int64),
            "column": np.array([1, *parts, 1], np.int64),
            "whole": np.array([p.count, p.length], np.int64),
        }
        made += [
            node("Reshape", ["normal", "parts"], "apart"),
            node("Reshape", [names[1], "column"], "scales"),
            node("Reshape", [names[2], "column"], "shifts"),
            node("Mul", ["apart", "scales"], "scaled"),
            node("Add", ["scaled", "shifts"], "shifted"),
            node("Reshape", ["shifted", "whole"], output),
        ]
    return made, extra


_REDUCTIONS = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "l1": "ReduceL1",
    "l2": "ReduceL2",
    "sumsquare": "ReduceSumSquare",
    "logsum": "ReduceLogSum",
    "logsumexp": "ReduceLogSumExp",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
}


@nodes.register
def _reduce(p: Reduce, names: Sequence[str], output: str) -> Nodes:
    if p.kind in PLACES:
        how = {"axis": 1, "keepdims": 0, "select_last_index": int(p.last)}
        return [node(_REDUCTIONS[p.kind], names, output, **how)], {}
    axes = {"axes": np.array([1], np.int64)}
    return [node(_REDUCTIONS[p.kind], [*names, *axes], output, keepdims=0)], axes


@nodes.register
def _top_k(p: TopK, names: Sequence[str], output: str) -> Nodes:
    """The second output of TopK."""
    made = node("TopK", [*names, "k"], f"{output}_values", axis=1, largest=int(p.largest), sorted=1)
    made.output.append(output)
    return [made], {"k": np.array([p.k], np.int64)}


@nodes.register
def _cumulate(p: Cumulate, names: Sequence[str], output: str) -> Nodes:
    """CumSum; of products, which have no operator before opset 26, a ReduceProd of what is chosen for each
    place."""
    if p.kind == "sum":
        made = node("CumSum", [*names, "axis"], output, exclusive=int(p.exclusive), reverse=int(p.reverse))
        return [made], {"axis": np.array(1, np.int64)}
    places = np.arange(p.axis)
    before = places[:, None] > places if p.exclusive else places[:, None] >= places
    chosen = before.T if p.reverse else before
    return [
        node("Unsqueeze", [*names, "second"], "rows"),
        node("Where", ["chosen", "rows", "one"], "kept"),
        node("ReduceProd", ["kept", "third"], output, keepdims=0),
    ], {
        "second": np.array([1], np.int64),
        "third": np.array([2], np.int64),
        "chosen": chosen[None, :, :, None],
        "one": np.array(1, p.dtype),
    }


@nodes.register
def _lrn(p: Lrn, names: Sequence[str], output: str) -> Nodes:
    return [node("LRN", names, output, size=p.size, alpha=p.alpha, beta=p.beta, bias=p.bias)], {}


@nodes.register
def _pool(p: Pool, names: Sequence[str], output: str) -> Nodes:
    floors = [
        (size + before + after - (kernel - 1) * dilation - 1) // stride + 1
        for size, before, after, kernel, dilation, stride in (
            (p.h, p.pad_top, p.pad_bottom, p.kh, p.dilation_h, p.stride_h),
            (p.w, p.pad_left, p.pad_right, p.kw, p.dilation_w, p.stride_w),
        )
    ]
    attributes = window(p) | {"ceil_mode": int(floors != [p.out_h, p.out_w])}
    if p.kind == "max":
        return [node("MaxPool", names, output, **attributes)], {}
    counted = int(p.count_include_pad)
    return [node("AveragePool", names, output, count_include_pad=counted, **attributes)], {}


@nodes.register
def _pool_index(p: PoolIndex, names: Sequence[str], output: str) -> Nodes:
    """The second output of a max pool."""
    (made,), constants = nodes(p.pool, names, f"{output}_largest")
    made.output.append(output)
    if p.by_columns:
        made.attribute.add(name="storage_order", i=1, type=2)  # AttributeProto.INT
    return [made], constants


@nodes.register
def _lrn_pool(p: LrnPool, names: Sequence[str], output: str) -> Nodes:
    whole = p.dtype == "float32"
    (first, _) = nodes(p.lrn, names if whole else ["real"], "normal")
    (second, _) = nodes(p.pool, ["normal"], output if whole else "pooled")
    if whole:
        return [*first, *second], {}
    constants = {
        "x_scale": np.array(p.x_scale, np.float32),
        "x_zero": np.array(p.x_zero, p.dtype),
        "y_scale": np.array(p.out_scale, np.float32),
        "y_zero": np.array(p.out_zero, p.to),
    }
    real = node("DequantizeLinear", [names[0], "x_scale", "x_zero"], "real")
    rounded = node("QuantizeLinear", ["pooled", "y_scale", "y_zero"], output)
    return [real, *first, *second, rounded], constants


@nodes.register
def _conv(p: Conv, names: Sequence[str], output: str) -> Nodes:
    return [node("Conv", names, output, group=p.group, **window(p))], {}


@nodes.register
def _conv_pool(p: ConvPool, names: Sequence[str], output: str) -> Nodes:
    made, _ = nodes(p.conv, names, "maps")
    activate(made, p.conv.activation, "sums", "maps")
    made += nodes(p.pool, ["maps"], output)[0]
    activate(made, p.pool.activation, "linear", output)
    return made, {}


@nodes.register
def _conv3d(p: Conv3d, names: Sequence[str], output: str) -> Nodes:
    """Behind x as many zeros as the last windows read."""
    behind = [
        (out - 1) * step + (k - 1) * d + 1 - size - before
        for out, step, k, d, size, before in zip(
            p.out, p.stride, p.kernel, p.dilation, p.size, p.pad, strict=True
        )
    ]
    made = node(
        "Conv",
        names,
        output,
        kernel_shape=p.kernel,
        strides=p.stride,
        dilations=p.dilation,
        pads=[*p.pad, *(max(0, more) for more in behind)],
        group=p.group,
    )
    return [made], {}


@nodes.register
def _conv_transpose(p: ConvTranspose, names: Sequence[str], output: str) -> Nodes:
    """What y lacks of all that is added up is padding at the end, what it has beyond is output padding."""
    less = [whole - out for whole, out in zip(p.whole, (p.out_h, p.out_w), strict=True)]
    made = node(
        "ConvTranspose",
        names,
        output,
        kernel_shape=[p.kh, p.kw],
        strides=[p.stride_h, p.stride_w],
        dilations=[p.dilation_h, p.dilation_w],
        pads=[p.pad_top, p.pad_left, *(max(0, missing) for missing in less)],
        output_padding=[max(0, -missing) for missing in less],
        group=p.group,
    )
    return [made], {}


@nodes.register
def _resize(p: Resize, names: Sequence[str], output: str) -> Nodes:
    """By sizes where the scales follow from them, else by the scales."""
    attributes: dict[str, Any] = {
        "mode": p.mode,
        "coordinate_transformation_mode": p.coordinates,
        "nearest_mode": p.rounding,
        "cubic_coeff_a": p.cubic_a,
        "exclude_outside": int(p.exclude_outside),
        "extrapolation_value": p.value,
        "axes": [1, 2],
    }
    region = np.array([p.start_h, p.start_w, p.end_h, p.end_w], np.float32)
    constants, given = {"roi": region}, ["roi", "", "sizes"]
    scales = (p.out_h / p.h, p.out_w / p.w)
    if (p.scale_h, p.scale_w) == scales:
        constants["sizes"] = np.array([p.out_h, p.out_w], np.int64)
    elif p.scale_h == p.scale_w and p.scale_h in scales:  # one axis kept the other's aspect ratio
        constants["sizes"] = np.array([p.out_h, p.out_w], np.int64)
        smallest = p.scale_h == min(scales)
        attributes["keep_aspect_ratio_policy"] = "not_larger" if smallest else "not_smaller"
    else:
        constants["scales"], given = np.array([p.scale_h, p.scale_w], np.float32), ["roi", "scales"]
    return [node("Resize", [*names, *given], output, **attributes)], constants


@nodes.register
def _grid_sample(p: GridSample, names: Sequence[str], output: str) -> Nodes:
    """GridSample; of images of two axes without the first."""
    attributes = {"mode": p.mode, "padding_mode": p.padding, "align_corners": int(p.corners)}
    if p.dims == 3:
        return [node("GridSample", names, output, **attributes)], {}
    shapes = {
        "images": (p.n, p.c, *p.size[1:]),
        "places": (p.n, *p.out[1:], 2),
        "whole": (p.n, p.c, *p.out),
    }
    return [
        node("Reshape", [names[0], "images"], "flat_images"),
        node("Reshape", [names[1], "places"], "flat_places"),
        node("GridSample", ["flat_images", "flat_places"], "read", **attributes),
        node("Reshape", ["read", "whole"], output),
    ], {name: np.array(shape, np.int64) for name, shape in shapes.items()}


@nodes.register
def _gemm(p: Gemm, names: Sequence[str], output: str) -> Nodes:
    """One Gemm node where that says it all; else Transpose, MatMul, Mul and Add."""
    return _one_product(p, names, output) if p.batch == 1 else _products(p, names, output)


def _one_product(p: Gemm, names: Sequence[str], output: str) -> Nodes:
    flat = [f"{name}_flat" for name in names[:2]]
    made = [
        helper.make_node("Reshape", [name, f"{to}_shape"], [to], name=to)
        for name, to in zip(names, flat, strict=False)
    ]
    shapes = p.input_shapes
    extra = {f"{to}_shape": np.array(shapes[i][1:], np.int64) for i, to in enumerate(flat)}
    product = helper.make_node(
        "Gemm",
        [*flat, *names[2:]],
        ["product"],
        name="gemm",
        transA=int(p.trans_a),
        transB=int(p.trans_b),
        alpha=p.alpha,
        beta=p.beta,
    )
    back = helper.make_node("Reshape", ["product", "y_shape"], [output], name="whole")
    return [*made, product, back], extra | {"y_shape": np.array(p.output_shape, np.int64)}


def _products(p: Gemm, names: Sequence[str], output: str) -> Nodes:
    dtype = np.dtype(p.dtype)
    made, sides = [], []
    for name, transposed in zip(names, (p.trans_a, p.trans_b), strict=False):
        if transposed:
            made.append(node("Transpose", [name], f"{name}_t", perm=[0, 2, 1]))
        sides.append(f"{name}_t" if transposed else name)
    made.append(node("MatMul", sides, "product"))
    made.append(node("Mul", ["product", "alpha"], "scaled"))
    if p.bias:
        made.append(node("Mul", [names[2], "beta"], "shift"))
        made.append(node("Add", ["scaled", "shift"], "sum"))
    made.append(node("Expand", ["sum" if p.bias else "scaled", "shape"], output))
    shape = np.array(p.output_shape, np.int64)
    return made, {"alpha": np.array(p.alpha, dtype), "beta": np.array(p.beta, dtype), "shape": shape}


_SWAPPED = [0, 2, 1, 3]


@nodes.register
def _attention(p: Attention, names: Sequence[str], output: str) -> Nodes:
    """MatMul, Mul, Add, Softmax and MatMul, with Transpose, Gather, Tanh and Where around them where they are
    needed."""
    dtype = np.dtype(p.dtype)
    extra: dict[str, np.ndarray] = {"scale": np.array(p.scale, dtype)}
    made: list[Any] = []
    if p.packed:
        names = [*_unpacked(p, made, extra, names[0]), *names[1:]]
    q, k, v = names[:3]
    if p.swapped[0]:
        made.append(node("Transpose", [q], "q_heads", perm=_SWAPPED))
        q = "q_heads"
    k, v = (_heads(p, made, extra, name, to) for name, to in ((k, 1), (v, 2)))
    made.append(node("Transpose", [k], "k_columns", perm=[0, 1, 3, 2]))
    steps: list[tuple[str, str]] = [("Mul", "scale")]
    if p.softcap:
        extra["cap"] = np.array(p.softcap, dtype)
        steps += [("Div", "cap"), ("Tanh", ""), ("Mul", "cap")]
    if p.mask:
        steps.append(("Add", names[3]))
    away = np.arange(p.keys) - np.arange(p.queries)[:, None]
    hidden = (away < p.earliest) | (away > p.latest)
    if hidden.any():
        extra["hidden"] = np.where(hidden, -np.inf, 0).astype(dtype)
        steps.append(("Add", "hidden"))
    made.append(node("MatMul", [q, "k_columns"], "product"))
    before = "product"
    for number, (kind, other) in enumerate(steps):
        made.append(node(kind, [before, other] if other else [before], f"score{number}"))
        before = f"score{number}"
    made.append(node("Softmax", [before], "weights", axis=-1))
    weights = "weights"
    if p.guarded:
        extra["zero"] = np.zeros((), dtype)
        made.append(node("IsNaN", ["weights"], "nothing"))
        made.append(node("Where", ["nothing", "zero", "weights"], "guarded"))
        weights = "guarded"
    made.append(node("MatMul", [weights, v], "heads" if p.swapped[3] else output))
    if p.swapped[3]:
        made.append(node("Transpose", ["heads"], output, perm=_SWAPPED))
    return made, extra


def _unpacked(p: Attention, made: list[Any], extra: dict[str, np.ndarray], name: str) -> tuple[str, ...]:
    """q, k and v out of the rows of one tensor."""
    parts = (("q", p.heads, p.depth), ("k", p.kv_heads, p.depth), ("v", p.kv_heads, p.depth_v))
    rows = [f"{part}_rows" for part, _, _ in parts]
    extra["widths"] = np.array([heads * elements for _, heads, elements in parts], np.int64)
    made.append(helper.make_node("Split", [name, "widths"], rows, name="apart", axis=2))
    for row, (part, heads, elements) in zip(rows, parts, strict=True):
        extra[f"{part}_shape"] = np.array((p.batch, p.queries, heads, elements), np.int64)
        made.append(node("Reshape", [row, f"{part}_shape"], part))
    return tuple(part for part, _, _ in parts)


def _heads(p: Attention, made: list[Any], extra: dict[str, np.ndarray], name: str, place: int) -> str:
    """Keys or values by head, each of the queries' heads with its own."""
    if p.swapped[place]:
        made.append(node("Transpose", [name], f"{name}_heads", perm=_SWAPPED))
        name = f"{name}_heads"
    if p.heads != p.kv_heads:
        extra["sharing"] = np.repeat(np.arange(p.kv_heads), p.heads // p.kv_heads)
        made.append(node("Gather", [name, "sharing"], f"{name}_each", axis=1))
        name = f"{name}_each"
    return name


_GATES = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "hard_sigmoid": "HardSigmoid"}


@nodes.register
def _recurrent(p: Recurrent, names: Sequence[str], output: str) -> Nodes:
    """The layer, whose inputs are the sums of both directions side by side, and whose weights give each
    direction its own; then its states one behind the other."""
    d, wide = p.directions, p.gates * p.hidden
    weights = np.stack([np.eye(wide, d * wide, k * wide) for k in range(d)]).astype(p.dtype)
    functions = {"rnn": (p.candidate,), "gru": (p.gate, p.candidate), "lstm": (p.gate, p.candidate, p.last)}
    attributes = {
        "hidden_size": p.hidden,
        "direction": p.direction,
        "activations": [_GATES[name] for name in functions[p.kind]] * d,
    }
    attributes |= {"clip": p.clip} if p.clip else {}
    attributes |= {"linear_before_reset": 1} if p.linear_before_reset else {}
    attributes |= {"input_forget": 1} if p.coupled else {}
    sums, recurrence, bias, lengths, first, *more = names
    layer = node(p.kind.upper(), ["x", "w", recurrence, bias, lengths, first, *more], "all", **attributes)
    parts = ["hidden", "cell"][: 2 if p.kind == "lstm" else 1]
    layer.output.extend(parts)
    return [
        node("Transpose", [sums], "apart", perm=[1, 2, 0, 3]),
        node("Reshape", ["apart", "shape"], "x"),
        layer,
        *(node("Unsqueeze", [part, "axis"], f"last_{part}") for part in parts),
        node("Concat", ["all", *(f"last_{part}" for part in parts)], output, axis=0),
    ], {
        "w": weights,
        "shape": np.array([p.steps, p.n, d * wide], np.int64),
        "axis": np.array([0], np.int64),
    }


@nodes.register
def _quantized(
    p: Quantized, names: Sequence[str], output: str, op: str, axis: int, how: dict[str, object]
) -> Nodes:
    """op: "Conv" or "MatMul", with the attributes `how`; axis: of the channels, in the weights.

    What one node of whole numbers says is that node (ConvInteger, QLinearConv, …); else its parts in floating
    point, between DequantizeLinear and QuantizeLinear.
    """
    x, weight, x_zero, weight_zero, *behind = names
    extra: dict[str, np.ndarray] = {}
    if p.weight_zeros == 1:
        made = [node("Reshape", [weight_zero, "none"], "weight_zero")]
        extra["none"] = np.zeros(0, np.int64)
    else:
        made = [node("Identity", [weight_zero], "weight_zero")]
    made.append(node("Reshape", [x_zero, "scalar"], "x_zero"))
    extra["scalar"] = np.zeros(0, np.int64)
    if p.to == "int32":
        return [*made, node(f"{op}Integer", [x, weight, "x_zero", "weight_zero"], output, **how)], extra
    bias, scale, *shift = behind
    extra["one"] = np.array(1, np.float32)
    made.append(node("Cast", [scale], "scale", to=TensorProto.FLOAT))
    held = {"out_scale": np.array(p.out_scale, np.float32), "out_zero": np.array(p.out_zero, p.to)}
    if op == "Conv" and p.to in EIGHT_BITS and not shift:
        if p.weight_zeros == 1:
            made.append(node("Expand", ["weight_zero", "channels"], "zeros"))
            extra["channels"] = np.array([p.channels], np.int64)
        zeros = "zeros" if p.weight_zeros == 1 else "weight_zero"
        given = [x, "one", "x_zero", weight, "scale", zeros, "out_scale", "out_zero", bias]
        made.append(node("QLinearConv", given, "within", **how))
        return [*made, *_clipped(p, output)], extra | held | _limits(p)
    made.append(node("DequantizeLinear", [x, "one", "x_zero"], "real_x"))
    extra["ones"] = np.ones(p.weight_zeros, np.float32)
    lone = (
        node("Reshape", ["ones", "none"], "unit")
        if p.weight_zeros == 1
        else node("Identity", ["ones"], "unit")
    )
    made += [lone, node("DequantizeLinear", [weight, "unit", "weight_zero"], "real_weight", axis=axis)]
    made.append(node(op, ["real_x", "real_weight"], "sums", **how))
    shape = [-1, 1, 1] if op == "Conv" else [-1]
    extra |= {"along": np.array(shape, np.int64)}
    for name, source in (("bias", bias), ("scaling", "scale"), *(("shift", each) for each in shift)):
        made += [node("Cast", [source], f"{name}_real", to=TensorProto.FLOAT)]
        made += [node("Reshape", [f"{name}_real", "along"], name)]
    made += [node("Add", ["sums", "bias"], "biased"), node("Mul", ["biased", "scaling"], "scaled")]
    made += [node("Add", ["scaled", "shift"], "real")] if shift else [node("Identity", ["scaled"], "real")]
    if p.to == "float32":
        return [*made, node("Identity", ["real"], output)], extra
    made.append(node("QuantizeLinear", ["real", "out_scale", "out_zero"], "within"))
    return [*made, *_clipped(p, output)], extra | held | _limits(p)


def _clipped(p: Quantized, output: str) -> list[object]:
    """Between its limits, where these are closer than the type's."""
    return [node("Clip", ["within", "low", "high"], output)]


def _limits(p: Quantized) -> dict[str, np.ndarray]:
    return {"low": np.array(p.low, p.to), "high": np.array(p.high, p.to)}


@nodes.register
def _qconv(p: QConv, names: Sequence[str], output: str) -> Nodes:
    how = {"group": p.product.group, **window(p.product)}
    return _quantized(p, names, output, "Conv", 0, how)


@nodes.register
def _qgemm(p: QGemm, names: Sequence[str], output: str) -> Nodes:
    """One b for all is a matrix, which zero points a column need."""
    a, b, *others = names
    first = []
    if p.product.trans_b:
        first.append(node("Transpose", [b], "b_turned", perm=[0, 2, 1]))
        b = "b_turned"
    if p.input_shapes[1][0] == 1:
        first.append(node("Squeeze", [b, "front"], "b_alone"))
        b = "b_alone"
    made, extra = _quantized(p, [a, b, *others], "product", "MatMul", -1, {})
    # Of one a for several b's too, and the other way round.
    made.append(node("Expand", ["product", "whole"], output))
    extra |= {"front": np.array([0], np.int64), "whole": np.array(p.output_shape, np.int64)}
    return [*first, *made], extra
