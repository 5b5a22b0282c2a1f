"""Parameters drawn by hypothesis for every operator, inputs for them, and the ONNX models that they mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from hypothesis import assume
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bench.measure.answers.nodes import nodes as nodes_of
from kernels.ops import ACTIVATIONS, Params
from kernels.ops._quantized import EIGHT_BITS, Quantized
from kernels.ops.binary import BINARY_KINDS, Binary
from kernels.ops.cast import Cast
from kernels.ops.compare import COMPARE_KINDS, Compare
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.pad import Pad
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.resize import COORDINATES, RESIZE_MODES, ROUNDINGS, Resize
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import UNARY_KINDS, Unary
from kernels.ops.where import Where
from tests.kernels import drawn_rows, elementwise, quantized_cases

ONNX_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}

ELEMENTWISE = (Unary, Binary, Compare, Where, MultiplyAdd, Concat)

activations = st.sampled_from([None, *ACTIVATIONS])
small = st.integers(1, 7)


def _reach(kernel: int, dilation: int) -> int:
    return (kernel - 1) * dilation + 1


@st.composite
def _window(draw, reach_limit: int) -> dict[str, int]:
    """Image and kernel of one axis: size, k, stride, dilation, before, after, out."""
    k, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    stride = draw(st.integers(1, 4))
    most = min(reach_limit, k - 1)
    before, after = draw(st.integers(0, most)), draw(st.integers(0, most))
    least = max(1, _reach(k, dilation) - before - after)
    size = draw(st.integers(least, least + 9))
    out = (size + before + after - _reach(k, dilation)) // stride + 1
    return {
        "size": size,
        "k": k,
        "stride": stride,
        "dilation": dilation,
        "before": before,
        "after": after,
        "out": out,
    }


def _axes(rows: dict[str, int], columns: dict[str, int]) -> dict[str, int]:
    return {
        "h": rows["size"],
        "w": columns["size"],
        "kh": rows["k"],
        "kw": columns["k"],
        "out_h": rows["out"],
        "out_w": columns["out"],
        "stride_h": rows["stride"],
        "stride_w": columns["stride"],
        "pad_top": rows["before"],
        "pad_bottom": rows["after"],
        "pad_left": columns["before"],
        "pad_right": columns["after"],
        "dilation_h": rows["dilation"],
        "dilation_w": columns["dilation"],
    }


@st.composite
def conv(draw) -> Conv:
    group = draw(st.sampled_from([1, 1, 2, 3]))
    special = draw(st.sampled_from(["", "", "", "pointwise", "whole image"]))
    rows, columns = draw(_window(9)), draw(_window(9))
    axes = _axes(rows, columns)
    plain = dict.fromkeys(("stride_h", "stride_w", "dilation_h", "dilation_w"), 1)
    plain |= dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right"), 0)
    if special == "pointwise":
        axes |= plain | {"kh": 1, "kw": 1, "out_h": axes["h"], "out_w": axes["w"]}
    elif special == "whole image":
        axes |= plain | {"kh": axes["h"], "kw": axes["w"], "out_h": 1, "out_w": 1}
    return Conv(
        n=draw(st.integers(1, 4)),
        c=group * draw(st.integers(1, 3)),
        m=group * draw(st.integers(1, 4)),
        group=group,
        bias=draw(st.booleans()),
        activation=draw(activations),
        **axes,
    )


@st.composite
def gemm(draw) -> Gemm:
    m, n, k, batch = draw(small), draw(small), draw(st.integers(1, 40)), draw(st.integers(1, 3))
    row, column = draw(st.sampled_from([(0, 1), (1, 0), (n, 1), (0, 0)]))
    return Gemm(
        m=m,
        n=n,
        k=k,
        trans_a=draw(st.booleans()),
        trans_b=draw(st.booleans()),
        alpha=draw(st.sampled_from([1.0, 0.5, -2.0])),
        beta=draw(st.sampled_from([1.0, 0.25])),
        bias=draw(st.booleans()),
        bias_stride_m=row,
        bias_stride_n=column,
        batch=batch,
        stride_a=draw(st.sampled_from([0, m * k])),
        stride_b=draw(st.sampled_from([0, k * n])),
        activation=draw(activations),
    )


@st.composite
def pool(draw) -> Pool:
    kind = draw(st.sampled_from(["max", "average"]))
    axes = _axes(draw(_window(2)), draw(_window(2)))
    if draw(st.integers(0, 5)) == 0:  # the whole image, as GlobalAveragePool
        axes |= {"kh": axes["h"], "kw": axes["w"], "out_h": 1, "out_w": 1}
        axes |= dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right"), 0)
        axes |= dict.fromkeys(("dilation_h", "dilation_w"), 1)
    include = kind == "average" and draw(st.booleans())
    n, c = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    p = Pool(kind=kind, n=n, c=c, count_include_pad=include, activation=draw(activations), **axes)
    assume(_sees_the_image(p))
    return p


def _of_bytes(p: Pool) -> st.SearchStrategy[Pool]:
    return st.sampled_from(EIGHT_BITS).map(lambda dtype: replace(p, dtype=dtype, activation=None))


def _sees_the_image(p: Pool) -> bool:
    """Whether every window holds an element of the image: what one of padding alone gives is not defined."""
    rows = np.add.outer(np.arange(p.out_h) * p.stride_h - p.pad_top, np.arange(p.kh) * p.dilation_h)
    columns = np.add.outer(np.arange(p.out_w) * p.stride_w - p.pad_left, np.arange(p.kw) * p.dilation_w)
    return all(
        ((places >= 0) & (places < size)).any(axis=1).all() for places, size in ((rows, p.h), (columns, p.w))
    )


@st.composite
def lrn(draw) -> Lrn:
    return Lrn(
        n=draw(st.integers(1, 3)),
        c=draw(st.integers(1, 9)),
        inner=draw(st.sampled_from([1, 7, 33])),
        size=draw(st.integers(1, 9)),
        alpha=draw(st.sampled_from([1e-4, 0.5])),
        beta=draw(st.sampled_from([0.75, 0.5, 1.0, 0.6])),
        bias=draw(st.sampled_from([1.0, 2.0])),
    )


@st.composite
def lrn_pool(draw) -> LrnPool:
    return LrnPool.of(draw(lrn()), replace(draw(pool()), activation=None))


@st.composite
def conv_pool(draw) -> ConvPool:
    made = draw(conv())
    axes = dict(zip("hw", (_over(draw, made.out_h), _over(draw, made.out_w)), strict=True))
    kind = draw(st.sampled_from(["max", "average"]))
    include = kind == "average" and draw(st.booleans())
    p = Pool(
        kind=kind,
        n=made.n,
        c=made.m,
        count_include_pad=include,
        activation=draw(activations),
        **_axes(axes["h"], axes["w"]),
    )
    assume(_sees_the_image(p))
    return ConvPool(made, p)


def _over(draw, size: int) -> dict[str, int]:
    """A pool's window of one axis over an image that is given."""
    k, dilation = draw(st.integers(1, min(4, size))), 1
    if k > 1 and (k - 1) * 2 < size:
        dilation = draw(st.integers(1, 2))
    before, after = draw(st.integers(0, min(2, k - 1))), draw(st.integers(0, min(2, k - 1)))
    stride = draw(st.integers(1, 3))
    found = {"size": size, "k": k, "stride": stride, "dilation": dilation, "before": before, "after": after}
    return found | {"out": (size + before + after - _reach(k, dilation)) // stride + 1}


@st.composite
def softmax(draw) -> Softmax:
    return Softmax(
        outer=draw(st.integers(1, 5)),
        axis=draw(st.sampled_from([1, 2, 10, 1000])),
        inner=draw(st.sampled_from([1, 1, 3])),
        log=draw(st.booleans()),
    )


@st.composite
def unary(draw) -> Unary:
    return elementwise.unary(draw(st.sampled_from(UNARY_KINDS)), draw(st.integers(1, 2000)))


@st.composite
def binary(draw) -> Binary:
    shape, (a, b) = draw(_operands(2))
    return elementwise.binary(draw(st.sampled_from(BINARY_KINDS)), shape, a, b, activation=draw(activations))


@st.composite
def compare(draw) -> Compare:
    shape, operands = draw(_operands(2))
    kind, dtype = draw(st.sampled_from(COMPARE_KINDS)), draw(st.sampled_from(["float32", *elementwise.WHOLE]))
    return Compare(kind, shape, *(elementwise.strides(each, shape) for each in operands), dtype=dtype)


@st.composite
def where(draw) -> Where:
    shape, operands = draw(_operands(3))
    dtype = draw(st.sampled_from(["float32", "float16", "bool", *elementwise.WHOLE]))
    return Where(shape, *(elementwise.strides(each, shape) for each in operands), dtype=dtype)


@st.composite
def multiply_add(draw) -> MultiplyAdd:
    shape, operands = draw(_operands(3))
    return MultiplyAdd(shape, *(elementwise.strides(each, shape) for each in operands), draw(activations))


@st.composite
def _operands(draw, count: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """A shape, and as many that broadcast to it."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    return shape, [tuple(d if draw(st.booleans()) else 1 for d in shape) for _ in range(count)]


@st.composite
def concat(draw) -> Concat:
    widths = tuple(draw(st.lists(st.integers(1, 40), min_size=2, max_size=6)))
    return Concat(
        draw(st.integers(1, 5)), widths, draw(st.sampled_from(["float32", "float16", "bool", "int64"]))
    )


@st.composite
def transpose(draw) -> Transpose:
    shape = tuple(draw(st.lists(small, min_size=1, max_size=5)))
    return Transpose(shape=shape, perm=tuple(draw(st.permutations(range(len(shape))))))


@st.composite
def pad(draw) -> Pad:
    mode = draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    shape = tuple(draw(st.lists(st.integers(2, 6), min_size=1, max_size=4)))
    low = -1 if mode == "constant" else 0
    begin = tuple(draw(st.integers(low, d - 1)) for d in shape)
    end = tuple(
        draw(st.integers(low if b > 0 or d > 2 else 0, d - 1)) for d, b in zip(shape, begin, strict=True)
    )
    return Pad(shape=shape, begin=begin, end=end, mode=mode, value=1.5 if mode == "constant" else 0.0)


@st.composite
def cast(draw) -> Cast:
    kinds = st.sampled_from(["float32", "float64", "float16", "int32", "int64", "uint8", "bool"])
    return Cast(size=draw(st.integers(1, 100)), dtype=draw(kinds), to=draw(kinds))


@st.composite
def conv_transpose(draw) -> ConvTranspose:
    group = draw(st.integers(1, 3))
    stride_h, stride_w = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    p = ConvTranspose(
        n=draw(st.integers(1, 3)),
        c=group * draw(st.integers(1, 3)),
        h=draw(st.integers(1, 6)),
        w=draw(st.integers(1, 6)),
        m=group * draw(st.integers(1, 3)),
        kh=draw(st.integers(1, 4)),
        kw=draw(st.integers(1, 4)),
        out_h=0,
        out_w=0,
        stride_h=stride_h,
        stride_w=stride_w,
        dilation_h=draw(st.integers(1, 2)),
        dilation_w=draw(st.integers(1, 2)),
        group=group,
        bias=draw(st.booleans()),
    )
    p = replace(
        p, pad_top=draw(st.integers(0, p.whole[0] - 1)), pad_left=draw(st.integers(0, p.whole[1] - 1))
    )
    less_h = draw(st.integers(1 - stride_h, p.whole[0] - 1))
    return replace(p, out_h=p.whole[0] - less_h, out_w=p.whole[1] + draw(st.integers(0, stride_w - 1)))


@st.composite
def conv3d(draw) -> Conv3d:
    group = draw(st.integers(1, 2))
    axes = [draw(_window(9)) for _ in range(3)]
    size, kernel, out, stride, pad, dilation = (
        tuple(axis[name] for axis in axes) for name in ("size", "k", "out", "stride", "before", "dilation")
    )
    c, m = group * draw(st.integers(1, 3)), group * draw(st.integers(1, 3))
    bias = draw(st.booleans())
    return Conv3d(draw(st.integers(1, 2)), c, size, m, kernel, out, stride, pad, dilation, group, bias)


@st.composite
def pool_index(draw) -> PoolIndex:
    made = replace(draw(pool()), kind="max", activation=None, count_include_pad=False)
    return PoolIndex(made, draw(st.booleans()))


@st.composite
def resize(draw) -> Resize:
    h, w, out_h, out_w = (draw(st.integers(1, 9)) for _ in range(4))
    coordinates = draw(st.sampled_from(COORDINATES))
    if coordinates == "pytorch_half_pixel":  # onnx.reference has one output elsewhere than ONNX's text
        out_h, out_w = max(2, out_h), max(2, out_w)
    mode = draw(st.sampled_from(RESIZE_MODES))
    crop = {"start_h": -0.25, "end_w": 0.75} if coordinates == "tf_crop_and_resize" else {}
    return Resize(
        outer=draw(st.integers(1, 4)),
        h=h,
        w=w,
        out_h=out_h,
        out_w=out_w,
        scale_h=out_h / h,
        scale_w=out_w / w,
        inner=draw(st.integers(1, 3)),
        mode=mode,
        coordinates=coordinates,
        rounding=draw(st.sampled_from(ROUNDINGS)),
        exclude_outside=mode == "cubic" and draw(st.booleans()),
        cubic_a=draw(st.sampled_from([-0.75, -0.5])),
        value=draw(st.sampled_from([0.0, 1.5])),
        **crop,
    )


DRAWN = (
    {
        strategy.__name__: strategy()
        for strategy in (
            *(conv, gemm, pool, lrn, lrn_pool, conv_pool),
            *(softmax, unary, binary, compare, where, multiply_add, concat, transpose, pad, cast),
            *(resize, conv_transpose, conv3d, pool_index),
        )
    }
    | {"pool": pool() | pool().filter(lambda p: p.kind == "max").flatmap(_of_bytes)}
    | drawn_rows.DRAWN
    | quantized_cases.DRAWN
)


def input_shapes(p: Params) -> list[tuple[int, ...]]:
    """Shapes of the inputs, in the order of the params' docstring."""
    if isinstance(p, Conv):
        shapes = [(p.n, p.c, p.h, p.w), (p.m, p.c // p.group, p.kh, p.kw)]
        return [*shapes, (p.m,)] if p.bias else shapes
    if isinstance(p, ConvTranspose | Conv3d | PoolIndex | Quantized):
        return list(p.input_shapes)
    if isinstance(p, Gemm):
        a = (p.k, p.m) if p.trans_a else (p.m, p.k)
        b = (p.n, p.k) if p.trans_b else (p.k, p.n)
        bias = (p.m if p.bias_stride_m else 1, p.n if p.bias_stride_n else 1)
        shapes = [(p.batch if p.stride_a else 1, *a), (p.batch if p.stride_b else 1, *b)]
        return [*shapes, bias] if p.bias else shapes
    if isinstance(p, Pool | LrnPool):
        return [(p.n, p.c, p.h, p.w)]
    if isinstance(p, ConvPool):
        return input_shapes(p.conv)
    if isinstance(p, Lrn):
        return [(p.n, p.c, 1, p.inner)]
    if isinstance(p, Softmax):
        return [(p.outer, p.axis, p.inner)]
    if isinstance(p, ELEMENTWISE):
        return list(p.input_shapes)
    if isinstance(p, Transpose | Pad):
        return [p.shape]
    if isinstance(p, Resize):
        return [(p.outer, p.h, p.w, p.inner)]
    if p.op in drawn_rows.DRAWN:
        return [*p.input_shapes]
    return [(p.size,)]


def output_shape(p: Params) -> tuple[int, ...]:
    if isinstance(p, Conv | ConvTranspose):
        return (p.n, p.m, p.out_h, p.out_w)
    if isinstance(p, Gemm):
        return (p.batch, p.m, p.n)
    if isinstance(p, Pool | LrnPool):
        return (p.n, p.c, p.out_h, p.out_w)
    if isinstance(p, ConvPool):
        return (p.n, p.m, p.pool.out_h, p.pool.out_w)
    if isinstance(p, (*ELEMENTWISE, Quantized)):
        return p.output_shape
    if isinstance(p, Conv3d):
        return (p.n, p.m, *p.out)
    if isinstance(p, PoolIndex):
        return p.pool.output_shape
    if isinstance(p, Transpose):
        return tuple(p.shape[axis] for axis in p.perm)
    if isinstance(p, Pad):
        return p.out_shape
    if isinstance(p, Resize):
        return (p.outer, p.out_h, p.out_w, p.inner)
    if p.op in drawn_rows.DRAWN:
        return p.output_shape
    return input_shapes(p)[0]


def inputs_for(p: Params, seed: int = 0) -> list[np.ndarray]:
    """Values between −2 and 2 (whole numbers where the type is); those that the judge draws where not every
    number will do."""
    if isinstance(p, ELEMENTWISE):
        return list(elementwise.inputs(p, seed))
    if isinstance(p, Quantized):
        return quantized_cases.inputs(p, seed)
    random = np.random.default_rng(seed)
    if isinstance(p, Pool) and p.dtype in EIGHT_BITS:
        held = np.iinfo(p.dtype)
        return [random.integers(held.min, held.max + 1, shape, p.dtype) for shape in input_shapes(p)]
    arrays = [random.uniform(-2, 2, shape).astype(p.dtype) for shape in input_shapes(p)]
    if p.op in drawn_rows.DRAWN:
        return drawn_rows.fitting(p, arrays)
    if isinstance(p, Cast) and p.to == "uint8":  # negative to unsigned is not defined
        arrays = [np.abs(array) if array.dtype != bool else array for array in arrays]
    return arrays


def model(p: Params, element: int = TensorProto.DOUBLE, ceil_mode: bool = False) -> onnx.ModelProto:
    """The params, none of ELEMENTWISE, as an ONNX model of floating-point `element`: in0, in1, … → y."""
    if p.op in drawn_rows.DRAWN:
        return drawn_rows.model(p, element)
    shapes = input_shapes(p)
    nodes, extra = _nodes(p, ceil_mode, [f"in{i}" for i in range(len(shapes))])
    if getattr(p, "activation", None):
        nodes[-1].output[0] = "linear"
        nodes += _activation(p.activation, "linear", "y")
    to = element if p.out_dtype == p.dtype else helper.np_dtype_to_tensor_dtype(np.dtype(p.out_dtype))
    if isinstance(p, Cast):
        element, to = (helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (p.dtype, p.to))
    graph = helper.make_graph(
        nodes,
        p.op,
        [helper.make_tensor_value_info(f"in{i}", element, shape) for i, shape in enumerate(shapes)],
        [helper.make_tensor_value_info("y", to, None)],
        [
            onnx.numpy_helper.from_array(array.astype(_numpy(element, array)), name)
            for name, array in extra.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _activation(kind: str, x: str, y: str) -> list[Any]:
    if kind != "relu6":
        return [helper.make_node(ONNX_ACTIVATIONS[kind], [x], [y])]
    nodes = []
    for value in (0, 6):
        nodes.append(helper.make_node("Constant", [], [f"{x}:float{value}"], value_float=float(value)))
        nodes.append(helper.make_node("CastLike", [f"{x}:float{value}", x], [f"{x}:{value}"]))
    return [*nodes, helper.make_node("Clip", [x, f"{x}:0", f"{x}:6"], [y])]


def _numpy(element: int, array: np.ndarray) -> Any:
    return array.dtype if array.dtype.kind == "i" else helper.tensor_dtype_to_np_dtype(element)


def _nodes(p: Params, ceil_mode: bool, names: list[str]) -> tuple[list[Any], dict[str, np.ndarray]]:
    node = helper.make_node
    if isinstance(p, Conv | Pool):
        window: dict[str, Any] = {
            "kernel_shape": [p.kh, p.kw],
            "strides": [p.stride_h, p.stride_w],
            "pads": [p.pad_top, p.pad_left, p.pad_bottom, p.pad_right],
            "dilations": [p.dilation_h, p.dilation_w],
        }
        if isinstance(p, Conv):
            return [node("Conv", names, ["y"], group=p.group, **window)], {}
        window["ceil_mode"] = int(ceil_mode)
        if p.kind == "max":
            return [node("MaxPool", names, ["y"], **window)], {}
        return [node("AveragePool", names, ["y"], count_include_pad=int(p.count_include_pad), **window)], {}
    if isinstance(p, Gemm):
        nodes = []
        sides = []
        for name, transposed in zip(names, (p.trans_a, p.trans_b), strict=False):
            if transposed:
                nodes.append(node("Transpose", [name], [f"{name}_t"], perm=[0, 2, 1]))
            sides.append(f"{name}_t" if transposed else name)
        nodes.append(node("MatMul", sides, ["product"]))
        nodes.append(node("Mul", ["product", "alpha"], ["scaled"]))
        nodes.append(node("Expand", ["scaled", "shape"], ["whole"]))
        if p.bias:
            nodes.append(node("Mul", [names[2], "beta"], ["shift"]))
            nodes.append(node("Add", ["whole", "shift"], ["y"]))
        else:
            nodes.append(node("Identity", ["whole"], ["y"]))
        shape = np.array(output_shape(p), np.int64)
        return nodes, {"alpha": np.array(p.alpha), "beta": np.array(p.beta), "shape": shape}
    if isinstance(p, LrnPool):
        (first,), _ = _nodes(p.lrn, ceil_mode, names)
        first.output[0] = "normal"
        (second,), _ = _nodes(p.pool, ceil_mode, ["normal"])
        return [first, second], {}
    if isinstance(p, ConvPool):
        nodes, _ = _nodes(p.conv, False, names)
        if p.conv.activation:
            nodes += _activation(p.conv.activation, "sums", "y")
            nodes[0].output[0] = "sums"
        nodes[-1].output[0] = "maps"
        pooled, _ = _nodes(p.pool, ceil_mode, ["maps"])
        if p.pool.activation:
            pooled[0].output[0] = "linear"
            pooled += _activation(p.pool.activation, "linear", "y")
        return [*nodes, *pooled], {}
    if isinstance(p, Lrn):
        return [node("LRN", names, ["y"], size=p.size, alpha=p.alpha, beta=p.beta, bias=p.bias)], {}
    if isinstance(p, Softmax):
        return [node("LogSoftmax" if p.log else "Softmax", names, ["y"], axis=1)], {}
    if isinstance(p, Transpose):
        return [node("Transpose", names, ["y"], perm=p.perm)], {}
    if isinstance(p, Pad):
        made = node("Pad", [*names, "pads", "value"], ["y"], mode=p.mode)
        return [made], {"pads": np.array([*p.begin, *p.end], np.int64), "value": np.array(p.value)}
    if isinstance(p, PoolIndex | Conv3d | ConvTranspose | Resize):
        return nodes_of(p, names, "y")
    assert isinstance(p, Cast)
    return [node("Cast", names, ["y"], to=helper.np_dtype_to_tensor_dtype(np.dtype(p.to)))], {}
