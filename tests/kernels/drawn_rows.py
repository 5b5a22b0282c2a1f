"""As tests.kernels.drawn, of operators that walk rows or move elements along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import assume
from hypothesis import strategies as st
from onnx import helper

from bench.measure.answers.nodes import nodes as nodes_of
from kernels.ops import Params
from kernels.ops.attention import FAR, Attention
from kernels.ops.gather import INDEX_TYPES, Gather
from kernels.ops.normalize import Normalize
from kernels.ops.qadd import QAdd
from kernels.ops.quantize import Quantize
from kernels.ops.reduce import PLACES, REDUCE_KINDS, Reduce
from tests.kernels import drawn_sequences

small = st.integers(1, 7)


@st.composite
def reduce(draw) -> Reduce:
    kind = draw(st.sampled_from(REDUCE_KINDS))
    last = kind in PLACES and draw(st.booleans())
    return Reduce(kind, draw(small), draw(st.integers(1, 40)), draw(st.sampled_from([1, 1, 2, 9])), last)


@st.composite
def normalize(draw) -> Normalize:
    rows, inner, groups, channels = draw(small), draw(small), draw(small), draw(small)
    gives = draw(st.sampled_from(["all", "all", "mean", "factor"]))
    return Normalize(
        count=rows * groups,
        length=channels * inner,
        inner=inner,
        groups=groups,
        affine=gives == "all" and draw(st.booleans()),
        centred=gives == "mean" or draw(st.booleans()),
        epsilon=draw(st.sampled_from([1e-5, 0.5])),
        gives=gives,
    )


@st.composite
def gather(draw) -> Gather:
    index = draw(st.sampled_from(INDEX_TYPES))
    return Gather(draw(small), draw(small), draw(small), draw(st.integers(1, 12)), index)


@st.composite
def qadd(draw) -> QAdd:
    """Scales that are powers of two, so that there are ties, or not."""
    types = [draw(st.sampled_from(["uint8", "int8"])) for _ in range(3)]
    zeros = [draw(st.integers(*map(int, (np.iinfo(name).min, np.iinfo(name).max)))) for name in types]
    scale = st.sampled_from([0.25, 0.5, float(np.float32(0.11)), float(np.float32(0.3))])
    ends = np.iinfo(types[2])
    low = draw(st.sampled_from([int(ends.min), zeros[2]]))
    return QAdd(
        draw(st.integers(1, 60)), draw(scale), zeros[0], draw(st.sampled_from([0.0, -0.25, 0.25, 0.7])),
        zeros[1], draw(scale), zeros[2], low, int(ends.max), *types,
    )  # fmt: skip


@st.composite
def quantize(draw) -> Quantize:
    through = draw(st.sampled_from(["uint8", "int8"]))
    source, target = draw(
        st.sampled_from([("float32", "float32"), ("float32", through), (through, "float32")])
    )
    return Quantize(draw(small), draw(small), draw(small), through, target, source)


@st.composite
def attention(draw) -> Attention:
    """Queries that see no key at all where such are guarded alone."""
    kv_heads, queries, keys = draw(st.integers(1, 2)), draw(st.integers(1, 70)), draw(st.integers(1, 140))
    batch, heads = draw(st.integers(1, 2)), kv_heads * draw(st.integers(1, 2))
    earliest, latest = draw(st.sampled_from([(-FAR, FAR), (-FAR, 0), (-FAR, keys - queries), (-3, 2)]))
    guarded = draw(st.booleans())
    assume(guarded or all(max(0, i + earliest) <= min(keys - 1, i + latest) for i in range(queries)))
    whole = (batch, heads, queries, keys)
    return Attention(
        *(batch, heads, queries, keys, draw(st.sampled_from([1, 8, 33])), draw(st.sampled_from([1, 8, 20]))),
        kv_heads,
        scale=draw(st.sampled_from([0.125, 1.0])),
        softcap=draw(st.sampled_from([0.0, 0.0, 2.0])),
        earliest=earliest,
        latest=latest,
        guarded=guarded,
        mask=tuple(size if draw(st.booleans()) else 1 for size in whole) if draw(st.booleans()) else (),
        swapped=tuple(draw(st.booleans()) for _ in range(4)),
    )


DRAWN: dict[str, Any] = {
    strategy.__name__: strategy() for strategy in (reduce, normalize, gather, quantize, qadd, attention)
}
DRAWN |= drawn_sequences.DRAWN

_REDUCE = {
    "l1": "ReduceL1",
    "l2": "ReduceL2",
    "sumsquare": "ReduceSumSquare",
    "logsum": "ReduceLogSum",
    "logsumexp": "ReduceLogSumExp",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
}


def fitting(p: Params, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Inputs out of values between −2 and 2: positive where a logarithm is taken, ties where places are asked
    for, and the sum well away from 0, whose relative error says nothing."""
    if p.op in drawn_sequences.DRAWN:
        return drawn_sequences.fitting(p, arrays)
    (x, *others) = arrays
    if isinstance(p, Reduce):
        if p.kind in PLACES:
            x = np.rint(x)
        elif p.kind not in ("max", "min", "logsumexp"):
            x = np.abs(x) + np.float32(0.5)
    if isinstance(p, Gather):
        random = np.random.default_rng(p.count)
        others = [random.integers(-p.axis, p.axis, p.count).astype(p.index)]
    if isinstance(p, Quantize):
        random, (low, high) = np.random.default_rng(p.channels), p.limits
        others = [np.exp2(random.integers(-7, -4, p.channels)).astype(np.float32)]
        others.append(random.integers(low, high + 1, p.channels).astype(np.float32))
        x = np.rint(128 * x) / np.float32(128) if p.dtype == "float32" else x * 50 - x
    if isinstance(p, QAdd):
        random, held = np.random.default_rng(p.size), [np.iinfo(name) for name in p.input_dtypes]
        return [random.integers(each.min, each.max + 1, p.size, each.dtype) for each in held]
    if isinstance(p, Attention) and p.mask and p.mask[3] > 1:
        others[-1][..., ::3] = -np.inf if p.guarded else -1e4  # where that leaves nothing there is an answer
    return [x.astype(p.dtype), *others]


def model(p: Params, element: int) -> onnx.ModelProto:
    """The params as an ONNX model of floating-point `element`: inputs in0, in1, …, output y."""
    names = [f"in{i}" for i in range(len(p.input_shapes))]
    nodes, extra = _nodes(p, names)
    graph = helper.make_graph(
        nodes,
        p.op,
        [
            helper.make_tensor_value_info(name, _element(dtype, element), shape)
            for name, shape, dtype in zip(names, p.input_shapes, p.input_dtypes, strict=True)
        ],
        [helper.make_tensor_value_info("y", _element(p.out_dtype, element), None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in extra.items()],
    )
    opset = 23 if isinstance(p, Attention) else 21
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _wide(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if dtype.kind == "f" else dtype


def _element(dtype: str, element: int) -> int:
    if np.dtype(dtype).kind == "f":
        return element
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _nodes(p: Params, names: list[str]) -> tuple[list[Any], dict[str, np.ndarray]]:
    node = helper.make_node
    if p.op in drawn_sequences.DRAWN:
        return drawn_sequences.written(p, names)
    if isinstance(p, Normalize):
        return _normal(p, names)
    if isinstance(p, Attention):
        return _attended(p, names)
    if isinstance(p, Gather):
        return [node("Gather", names, ["y"], axis=1)], {}
    if isinstance(p, QAdd):
        made, held = nodes_of(p, names, "y")
        return made, {name: np.asarray(array, _wide(array.dtype)) for name, array in held.items()}
    if isinstance(p, Quantize):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(p.through))
        nodes = [node("Cast", ["in2"], ["zero"], to=to)]
        if p.dtype == "float32":
            nodes.append(node("QuantizeLinear", ["in0", "in1", "zero"], ["q"], axis=1))
        if p.to == "float32":
            q = "q" if p.dtype == "float32" else "in0"
            return [*nodes, node("DequantizeLinear", [q, "in1", "zero"], ["y"], axis=1)], {}
        return [*nodes, node("Identity", ["q"], ["y"])], {}
    assert isinstance(p, Reduce)
    if p.kind in PLACES:
        return [node(_REDUCE[p.kind], names, ["y"], axis=1, keepdims=0, select_last_index=int(p.last))], {}
    kind = _REDUCE.get(p.kind) or f"Reduce{p.kind.capitalize()}"
    return [node(kind, [*names, "axes"], ["y"], keepdims=0)], {"axes": np.array([1])}


def _normal(p: Normalize, names: list[str]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Each row divided by its deviation; then the scale and bias of each place."""
    node = helper.make_node
    constants: dict[str, np.ndarray] = {"axes": np.array([1]), "epsilon": np.array(p.epsilon)}
    nodes = [node("ReduceMean", ["in0", "axes"], ["mean"]), node("Sub", ["in0", "mean"], ["difference"])]
    x = "difference" if p.centred else "in0"
    nodes += [
        node("ReduceSumSquare", [x, "axes"], ["squares"]),
        node("Div", ["squares", "length"], ["variance"]),
        node("Add", ["variance", "epsilon"], ["more"]),
        node("Sqrt", ["more"], ["deviation"]),
        node("Div", [x, "deviation"], ["normal"]),
    ]
    constants["length"] = np.array(float(p.length))
    if p.gives != "all":
        of = (
            node("Identity", ["mean"], ["y"])
            if p.gives == "mean"
            else node("Reciprocal", ["deviation"], ["y"])
        )
        return [*nodes, of], constants
    if not p.affine:
        return [*nodes, node("Identity", ["normal"], ["y"])], constants
    row, column = np.indices((p.count, p.length))
    constants["places"] = row % p.groups * (p.length // p.inner) + column // p.inner
    nodes += [node("Gather", [name, "places"], [f"{name}_all"]) for name in names[1:]]
    nodes += [node("Mul", ["normal", "in1_all"], ["scaled"]), node("Add", ["scaled", "in2_all"], ["y"])]
    return nodes, constants


def _attended(p: Attention, names: list[str]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """ONNX's own operator, told by a mask what a query sees; a query that sees nothing it gives 0."""
    node = helper.make_node
    away = np.arange(p.keys) - np.arange(p.queries)[:, None]
    seen = (p.earliest <= away) & (away <= p.latest)
    constants = {"seen": np.where(seen, 0.0, -np.inf)}
    nodes = [
        node("Transpose", [name], [f"{name}_turned"], perm=[0, 2, 1, 3] if way else [0, 1, 2, 3])
        for name, way in zip(names[:3], p.swapped, strict=False)
    ]
    nodes.append(
        node("Add", ["seen", names[3]], ["mask"]) if p.mask else node("Identity", ["seen"], ["mask"])
    )
    told = {"scale": p.scale, **({"softcap": p.softcap} if p.softcap else {})}
    nodes.append(node("Attention", [*(f"{name}_turned" for name in names[:3]), "mask"], ["plain"], **told))
    return [
        *nodes,
        node("Transpose", ["plain"], ["y"], perm=[0, 2, 1, 3] if p.swapped[3] else [0, 1, 2, 3]),
    ], constants
