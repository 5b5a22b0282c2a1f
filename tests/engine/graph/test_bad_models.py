"""One bad model costs no more than a sentence: never a hang, another exception or the end of the process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engine.graph import inference, proto_checks
from engine.graph.graph import Graph, Node
from engine.graph.importer import from_proto
from engine.graph.memory import Life, place
from engine.graph.plan import TensorSpec
from engine.ops import Scope, lower
from engine.passes.pools import _sees
from engine.planning.groups import groups
from engine.planning.submodel import with_outputs
from kernels.errors import ModelError, UnsupportedError
from tests.engine.harness import bare, make_model, run_plan


def refused(model: onnx.ModelProto, match: str) -> None:
    with pytest.raises(ModelError, match=match) as caught:
        from_proto(model)
    assert "\n" not in str(caught.value)


def with_functions(bodies: list[list[onnx.NodeProto]], called: int) -> onnx.ModelProto:
    """y = f<called>(x) in a model whose function f<i> has the nodes bodies[i], from x to y."""
    node = helper.make_node(f"f{called}", ["x"], ["y"], "call", domain="local")
    model = make_model([node], {"x": ("N", 2)}, ["y"])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    model.opset_import.append(opsets[1])
    model.functions.extend(
        helper.make_function("local", f"f{i}", ["x"], ["y"], body, opsets) for i, body in enumerate(bodies)
    )
    return model


def twice(before: int) -> list[onnx.NodeProto]:
    return [
        helper.make_node(f"f{before}", ["x"], ["t"], domain="local"),
        helper.make_node(f"f{before}", ["t"], ["y"], domain="local"),
    ]


RELU = [helper.make_node("Relu", ["x"], ["y"])]


def test_functions_that_call_the_one_before_twice() -> None:
    depth = 30
    refused(with_functions([RELU, *(twice(i) for i in range(depth))], depth), "more than 100,000 nodes")


def test_functions_that_only_double_a_few_times_are_taken() -> None:
    assert len(from_proto(with_functions([RELU, *(twice(i) for i in range(5))], 5)).nodes) == 1


def test_functions_that_call_each_other() -> None:
    refused(with_functions([twice(1), twice(0)], 0), "calls itself")


def test_a_chain_of_functions_that_is_too_deep() -> None:
    bodies = [RELU, *([helper.make_node(f"f{i}", ["x"], ["y"], domain="local")] for i in range(3000))]
    refused(with_functions(bodies, 3000), "more than 32 deep")
    refused(with_functions(bodies[::-1], 0), r"more than 32 deep|calls itself")


def nested(levels: int) -> onnx.ModelProto:
    cond = helper.make_tensor("cond", TensorProto.BOOL, [], [True])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["o"])],
        "g",
        [],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)],
    )
    for _ in range(levels):
        node = helper.make_node("If", ["cond"], ["o"], then_branch=graph, else_branch=graph)
        graph = helper.make_graph(
            [node], "g", [], [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)]
        )
    node = helper.make_node("If", ["cond"], ["y"], "if", then_branch=graph, else_branch=graph)
    model = make_model([node], {"x": ("N", 2)}, ["y"])
    model.graph.initializer.append(cond)
    return model


def test_subgraphs_within_subgraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert from_proto(nested(4)).nodes[0].op_type == "If"
    monkeypatch.setattr(proto_checks, "DEEPEST", 4)  # protobuf writes none that are as deep as the real limit
    refused(nested(4), "more than 4 deep")


def test_a_function_that_is_given_a_graph() -> None:
    node = helper.make_node("If", ["x"], ["y"])
    node.attribute.add(name="then_branch", ref_attr_name="g", type=onnx.AttributeProto.GRAPH)
    refused(with_functions([[node]], 0), "takes a graph as its attribute")


def planned(graph: Graph, match: str) -> None:
    """A graph that is refused with a sentence when it is planned, and still falls into groups."""
    with pytest.raises(UnsupportedError, match=match) as caught:
        bare(graph, 2)
    assert "\n" not in str(caught.value)
    assert groups(graph, 2)


HOSTILE = {
    "scalar": np.array(1),
    "matrix": np.ones((1, 1), np.int64),
    "negative": np.array([-(2**40)]),
    "huge": np.array([2**62]),
    "twice": np.array([1, 1]),
    "empty": np.zeros(0, np.int64),
    "none": np.zeros((0, 3), np.int64),
    "fraction": np.array([np.nan], np.float32),
    "word": np.array([b"x"], object),
    "long": np.ones(5000, np.int64),
}
ONES = np.ones(3, np.float32)
PAD = [np.zeros(8, np.int64), np.zeros((), np.float32), np.arange(4)]
TAKES = {
    "Squeeze": 1,
    "Unsqueeze": 1,
    "Reshape": 1,
    "Pad": 3,
    "Dropout": 2,
    "Gemm": 2,
    "BatchNormalization": 4,
    "Conv": 2,
    "Clip": 2,
    "Expand": 1,
    "ReduceMax": 1,
    "ReduceMean": 1,
    "ReduceSum": 1,
    "Slice": 4,
    "Split": 1,
    "Sum": 1,
    "Concat": 1,
    "Gather": 1,
    "GatherElements": 1,
    "GatherND": 1,
    "Tile": 1,
    "LayerNormalization": 2,
    "InstanceNormalization": 2,
    "GroupNormalization": 2,
    "ReduceL2": 1,
    "QuantizeLinear": 2,
    "DequantizeLinear": 2,
}


@pytest.mark.parametrize("op_type", TAKES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_constants(op_type: str, kind: str) -> None:
    """Past ONNX's own checks too, which see no value of what is computed or large."""
    first = {"Conv": np.ones((3, 3, 1, 1), np.float32), "Gemm": np.ones((3, 3), np.float32)}
    for index in range(TAKES[op_type]):
        inputs = PAD if op_type == "Pad" else [first.get(op_type, ONES), *[ONES] * 3][: TAKES[op_type]]
        inputs = [*inputs[:index], HOSTILE[kind], *inputs[index + 1 :]]
        names = [f"c{i}" for i in range(len(inputs))]
        node = Node("it", op_type, ("x", *names), ("y",), {"axis": 0} if op_type == "Concat" else {})
        constants = dict(zip(names, inputs, strict=True))
        shape = (2, 3) if op_type == "Gemm" else (2, 3, 4, 4)
        specs = {name: TensorSpec(a.shape, a.dtype.name) for name, a in constants.items()}
        scope = Scope(17, {"x": TensorSpec(shape, "float32"), **specs}, constants, frozenset({"y"}))
        said = f"node 'it' ({op_type}): "
        try:
            lower(node, scope)
        except UnsupportedError as error:
            said = str(error)
        assert said.startswith(f"node 'it' ({op_type}): ")
        assert "\n" not in said


@pytest.mark.parametrize(("op_type", "shape"), [("Squeeze", (1,)), ("Unsqueeze", (1, 1, 1))])
def test_axes_without_an_axis(op_type: str, shape: tuple[int, ...]) -> None:
    """Computed by a node, so that ONNX's shape inference lets them through: a single number is one axis, as
    ONNX's own functions write it."""
    nodes = [
        helper.make_node("Squeeze", ["one", "zero"], ["axes"], "axes"),
        helper.make_node(op_type, ["x", "axes"], ["y"], "it"),
    ]
    constants = {"one": np.array([0]), "zero": np.array([0])}
    graph = from_proto(make_model(nodes, {"x": (1, 1)}, ["y"], constants, ranks={"y": len(shape)}))
    assert run_plan(graph, 1, {"x": np.ones((1, 1), np.float32)})["y"].shape == shape


def test_a_constant_that_would_fill_the_memory() -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["sizes"], ["c"], "fill"),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    constants = {"sizes": np.array([2**20, 2**16])}
    model = make_model(nodes, {"x": ("N", 1)}, ["y"], constants)
    planned(from_proto(model), r"node 'fill' \(ConstantOfShape\): .* elements that are computed beforehand")
    nodes = [helper.make_node("EyeLike", ["x"], ["c"], "fill"), helper.make_node("Add", ["x", "c"], ["y"])]
    model = make_model(nodes, {"x": ("N", 2**30)}, ["y"])
    planned(from_proto(model), r"node 'fill' \(EyeLike\): .* elements that are computed beforehand")


def test_sizes_that_no_memory_holds() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], "it", pads=[2**40] * 4)
    model = make_model(
        [node], {"x": ("N", 1, 2, 2)}, ["y"], {"w": np.ones((1, 1, 2, 2), np.float32)}, ranks={"y": 4}
    )
    planned(from_proto(model), "node 'it' .* more elements than any memory holds")
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 2**31, 2**31)}, ["y"])
    graph = from_proto(model)
    with pytest.raises(UnsupportedError, match=r"input 'x' .* more elements than any memory holds"):
        bare(graph, 2)


@pytest.mark.parametrize("seed", range(5))
def test_windows_that_see_a_pixel_are_counted_right(seed: int) -> None:
    """As by looking at every one."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        out, stride, kernel, dilation, size = (int(n) for n in rng.integers(1, 7, 5))
        pad = int(rng.integers(0, 9))
        firsts = (place * stride - pad for place in range(out))
        seen = all(any(0 <= first + k * dilation < size for k in range(kernel)) for first in firsts)
        assert _sees(out, stride, pad, kernel, dilation, size) == seen
    assert not _sees(2**40, 1, 2**40, 2**40, 2**40, 1)


def test_shapes_that_inference_cannot_tell() -> None:
    """A model in memory, not yet looked at by the importer."""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])]
    graph = from_proto(make_model(nodes, {"x": ("N", 2)}, ["y"]))
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    del proto.opset_import[:]
    with pytest.raises(UnsupportedError, match="ONNX cannot tell the shapes in model 'made'"):
        with_outputs(replace(graph, proto=proto), ["a"])


@pytest.mark.parametrize("seed", range(4))
def test_tensors_lie_where_looking_at_every_pair_puts_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lives = {}
    for i in range(150):
        first = int(rng.integers(-1, 60))
        size = int(rng.choice([4, 256, 300, 5000]))
        lives[f"t{i}"] = Life(size, first, first + int(rng.integers(0, 12)))
    placements, arena = place(lives)
    found: dict[str, tuple[int, int]] = {}
    for name, life in sorted(lives.items(), key=lambda item: (-item[1].nbytes, item[1].first, item[0])):
        offset = 0
        for other in sorted(found, key=lambda other: found[other]):
            if lives[other].first > life.last or lives[other].last < life.first:
                continue
            if offset + -(-life.nbytes // 256) * 256 <= found[other][0]:
                break
            offset = max(offset, sum(found[other]))
        found[name] = (offset, -(-life.nbytes // 256) * 256)
    assert {name: p.offset for name, p in placements.items()} == {n: o for n, (o, _) in found.items()}
    assert arena == max(sum(p) for p in found.values())


def small(edit: Callable[[onnx.ModelProto], None] | None = None) -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["aa"], "mm"),
        helper.make_node("Relu", ["aa"], ["y"], "r"),
    ]
    model = make_model(nodes, {"x": ("N", 4)}, ["y"], {"w": np.ones((4, 4), np.float32)})
    if edit is not None:
        edit(model)
    return model


@pytest.mark.parametrize("old", [b"\x02mm", b"\x02aa", b"\x04Relu", b"\x01x", b"\x01w", b"\x01N"])
def test_names_that_are_no_text(old: bytes) -> None:
    for byte, match in ((b"\xff", "is not UTF-8"), (b"\n", "holds control characters")):
        model = onnx.ModelProto()
        model.ParseFromString(small().SerializeToString().replace(old, old[:-1] + byte))
        refused(model, match)


def test_an_output_given_out_twice() -> None:
    refused(small(lambda m: m.graph.output.append(m.graph.output[0])), "output 'y' twice")


@pytest.mark.parametrize("size", [0, -1, -(2**40)])
@pytest.mark.parametrize("axis", [0, 1])
def test_sizes_below_one_are_refused_or_open(size: int, axis: int) -> None:
    def declare(values: str) -> onnx.ModelProto:
        model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 4)}, ["y"])
        getattr(model.graph, values)[0].type.tensor_type.shape.dim[axis].dim_value = size
        return model

    if size:  # as some exporters write an axis of any size
        assert from_proto(declare("input")).inputs[0].shape[axis] is None
    else:
        refused(declare("input"), rf"input 'x' of {size} along axis {axis}")
    assert all(
        n is None or isinstance(n, str) or n >= 0 for n in from_proto(declare("output")).outputs[0].shape
    )


@pytest.mark.parametrize("dims", [(2**20, 2**20), (2**32, 2**32), (-1, 4), (0, 4)])
def test_an_initializer_of_another_size_than_its_values(dims: tuple[int, ...]) -> None:
    refused(small(lambda m: m.graph.initializer[0].dims.__setitem__(slice(None), dims)), "initializer 'w'|w")


@pytest.mark.parametrize("of", ["the model", "its graph"])
def test_a_description_that_is_no_text(of: str) -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 2)}, ["y"])
    (model if of == "the model" else model.graph).doc_string = "described"
    broken = onnx.ModelProto.FromString(model.SerializeToString().replace(b"described", b"descr\xff\xfeed"))
    refused(broken, "description that is not UTF-8")


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1])
@pytest.mark.parametrize("dims", [[1 << 20, 1 << 20], [-(1 << 40), 1 << 40, 2, -1], [-1], [0, 1 << 62]])
def test_a_weight_of_half_bytes_that_says_it_is_large(kind: int, dims: list[int]) -> None:
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        {"x": ("N", 4)},
        ["y"],
        {"w": np.ones((1, 4), np.float32)},
    )
    weight = model.graph.initializer[0]
    weight.data_type, weight.dims[:], weight.raw_data = kind, dims, b"1234"
    refused(model, "broken initializer 'w': its shape is")


@pytest.mark.parametrize("length", [inference.MOST_FOLLOWED + 1, 1 << 62])
def test_what_is_too_long_to_be_a_shape_is_not_followed(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX would lay out every element of it."""
    asked: list[bool] = []
    infer = onnx.shape_inference.infer_shapes

    def watched(model: onnx.ModelProto, **options: bool) -> onnx.ModelProto:
        asked.append(options["data_prop"])
        return infer(model, **options)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", watched)
    for size in (8, length):
        made = make_model(
            [helper.make_node("Add", ["x", "w"], ["y"])],
            {"x": (size,)},
            ["y"],
            {"w": np.ones((1, 1), np.float32)},
        )
        assert from_proto(made).inputs[0].shape == (size,)
    assert asked == [True, False]
