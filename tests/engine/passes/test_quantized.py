"""Products between DequantizeLinear and QuantizeLinear become one step of whole numbers, whose answer is that
of exact arithmetic, ties included; what does not fit stays as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from onnx import TensorProto, helper

from bench.measure.answers import oracle
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning.groups import groups
from engine.planning.submodel import extract
from tests.engine.harness import bare, make_model, run_ort, run_plan
from tests.engine.quantized_nets import BATCH, Net, nets, whole


def ops(graph: Graph) -> list[str]:
    return [step.op for step in bare(graph, BATCH).steps]


@settings(max_examples=24, deadline=None)
@given(nets())
def test_a_product_between_quantized_tensors_is_one_step_and_exact(net: Net) -> None:
    graph = net.graph()
    product = "qconv" if net.kind == "Conv" else "qgemm"
    assert ops(graph) == ["quantize", product, "quantize"]
    fed = {"x": net.fed()}
    expected = oracle.run(graph, fed, ["y"])["y"]
    np.testing.assert_array_equal(run_plan(graph, BATCH, fed)["y"], expected.astype(np.float32))


@settings(max_examples=10, deadline=None)
@given(nets().map(lambda net: replace(net, last=False)))
def test_without_a_last_quantization_the_step_gives_the_nearest_float32(net: Net) -> None:
    graph = net.graph()
    product = "qconv" if net.kind == "Conv" else "qgemm"
    assert ops(graph)[:2] == ["quantize", product]
    fed = {"x": net.fed()}
    expected = oracle.run(graph, fed, ["y"])["y"]
    np.testing.assert_allclose(run_plan(graph, BATCH, fed)["y"], expected, rtol=1e-7)


def test_every_node_is_in_the_step_that_it_became_part_of() -> None:
    """So a layer taken out of its model is multiplied in whole numbers, too."""
    graph = Net(after="Relu").graph()
    (_, product, _) = groups(graph, BATCH)
    assert product.nodes == ("d", "wd", "bd", "p", "held", "r")
    assert (product.op_type, product.inputs, product.output) == ("Conv", ("q",), "r")
    alone = extract(graph, product.nodes, BATCH)
    assert ops(alone) == ["qconv"]
    q = whole(np.random.default_rng(0), (BATCH, 3, 6, 5), "uint8")
    np.testing.assert_array_equal(
        run_plan(alone, BATCH, {"q": q})["r"], oracle.run(alone, {"q": q}, ["r"])["r"]
    )
    np.testing.assert_array_equal(run_plan(alone, BATCH, {"q": q})["r"], run_ort(alone, {"q": q})["r"])


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        # What the graph gives out is there as it says.
        (Net(outputs=("p",)), ["quantize", "qconv", "quantize"]),
        (Net(outputs=("d",)), ["quantize", "quantize", "qconv", "quantize"]),
        (Net(outputs=("r",)), ["quantize", "qconv", "quantize"]),
        (Net(after="Relu", outputs=("p",)), ["quantize", "qconv", "unary", "quantize"]),
        (Net(after="Tanh"), ["quantize", "qconv", "unary", "quantize"]),
    ],
)
def test_what_is_read_elsewhere_stays(net: Net, expected: list[str]) -> None:
    graph = net.graph()
    assert ops(graph) == expected
    fed = {"x": net.fed()}
    for name, value in oracle.run(graph, fed, ["y", *net.outputs]).items():
        np.testing.assert_allclose(run_plan(graph, BATCH, fed)[name], value, rtol=1e-6, err_msg=name)


def _two_readers(by: str) -> Graph:
    """One dequantized tensor that two products read, or a product and a sum."""
    random = np.random.default_rng(0)
    constants = {"s": np.float32(0.25), "z": np.uint8(100), "w": whole(random, (3, 3, 1, 1), "int8"),
                 "v": whole(random, (3, 3, 1, 1), "int8"), "wz": np.int8(0), "t": np.float32(16)}  # fmt: skip
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], "q"),
        node("DequantizeLinear", ["q", "s", "z"], ["d"], "d"),
        node("DequantizeLinear", ["w", "s", "wz"], ["wd"], "wd"),
        node("Conv", ["d", "wd"], ["a"], "a"),
        node("QuantizeLinear", ["a", "t", "z"], ["aq"], "aq"),
        node("DequantizeLinear", ["aq", "t", "z"], ["ad"], "ad"),
    ]
    other = "d"
    if by == "Conv":
        nodes += [node("DequantizeLinear", ["v", "s", "wz"], ["vd"], "vd"),
                  node("Conv", ["d", "vd"], ["b"], "b"),
                  node("QuantizeLinear", ["b", "t", "z"], ["bq"], "bq"),
                  node("DequantizeLinear", ["bq", "t", "z"], ["bd"], "bd")]  # fmt: skip
        other = "bd"
    nodes.append(node("Add", ["ad", other], ["y"], "y"))
    return from_proto(make_model(nodes, {"x": ("N", 3, 4, 4)}, ["y"], constants, 17, {"y": 4}), "two")


@pytest.mark.parametrize(("by", "count"), [("Conv", 2), ("Add", 1)])
def test_a_tensor_that_several_read(by: str, count: int) -> None:
    graph = _two_readers(by)
    assert ops(graph).count("qconv") == count
    nodes = [name for group in groups(graph, BATCH) for name in group.nodes]
    assert sorted(nodes) == sorted({node.name for node in graph.nodes}), "each is in one group"
    fed = {"x": np.random.default_rng(2).normal(0, 9, (BATCH, 3, 4, 4)).astype(np.float32)}
    np.testing.assert_array_equal(
        run_plan(graph, BATCH, fed)["y"], oracle.run(graph, fed, ["y"])["y"].astype(np.float32)
    )


def test_what_does_not_fit_stays_in_floating_point() -> None:
    gemm = Net(kind="MatMul", several=True, bias="none", w="int8")
    wrong = gemm.graph().whole_proto()
    for node in wrong.graph.node:
        if node.name == "wd":  # a scale for each row of the weights, which no sum has in common
            node.attribute[0].i = 0
    for held in wrong.graph.initializer:
        if held.name in ("ws", "wz"):
            values = [0.25] * 9 if held.name == "ws" else [0] * 9
            held.CopyFrom(helper.make_tensor(held.name, held.data_type, [9], values))
    graph = from_proto(wrong, "rows")
    assert ops(graph) == ["quantize", "gemm", "quantize"]
    zero = Net().graph().whole_proto()
    for held in zero.graph.initializer:
        if held.name == "ys":
            held.CopyFrom(helper.make_tensor("ys", held.data_type, [], [0.0]))
    assert "qconv" in ops(from_proto(zero, "no scale")), "of which the sums are still whole"
    assert ops(from_proto(zero, "no scale"))[-1] == "quantize"


@pytest.mark.parametrize("dtype", ["INT4", "UINT4"])
def test_weights_of_four_bits_are_multiplied_as_eight(dtype: str) -> None:
    random, low = np.random.default_rng(0), -8 if dtype == "INT4" else 0
    values = random.integers(low, low + 16, (9, 4))
    of_type = getattr(TensorProto, dtype)
    proto = Net(kind="MatMul", bias="none").graph().whole_proto()
    proto.opset_import[0].version = 21
    proto.ir_version = 10
    for held in proto.graph.initializer:
        if held.name == "w":
            held.CopyFrom(helper.make_tensor("w", of_type, [9, 4], values.reshape(-1)))
        elif held.name == "wz":
            held.CopyFrom(helper.make_tensor("wz", of_type, [], [low + 5]))
    graph = from_proto(proto, "four")
    assert ops(graph) == ["quantize", "qgemm", "quantize"]
    fed = {"x": Net(kind="MatMul").fed()}
    expected = oracle.run(graph, fed, ["y"])["y"]
    np.testing.assert_array_equal(run_plan(graph, BATCH, fed)["y"], expected.astype(np.float32))


def _between(op: str, after: str = "", alike: bool = False) -> Graph:
    """x in bytes by two scales, of which both are powers of two, what is done with them, and bytes again."""
    node = helper.make_node
    scale, zero = ("as", "az") if alike else ("ys", "yz")
    constants = {
        "as": np.float32(0.25), "az": np.uint8(100), "bs": np.float32(0.5), "bz": np.int8(-3),
        "ys": np.float32(1.0), "yz": np.uint8(77), "low": np.float32(-9.5), "high": np.float32(20.25),
        "shape": np.array([0, -1]),
    }  # fmt: skip
    nodes = [
        node(f"{kind}Linear", [source if kind == "Quantize" else f"q{name}", f"{name}s", f"{name}z"],
             [f"q{name}" if kind == "Quantize" else name], f"{kind} {name}")
        for name, source in (("a", "x"), ("b", "x")) for kind in ("Quantize", "Dequantize")
    ]  # fmt: skip
    given = ["a", "b"] if op in ("Add", "Sub", "Concat") else ["a"]
    how = {
        "MaxPool": {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]},
        "Concat": {"axis": 1},
    }
    nodes.append(node(op, [*given, *["shape"] * (op == "Reshape")], ["m"], "m", **how.get(op, {})))
    if after:
        nodes.append(node(after, ["m", *["low", "high"] * (after == "Clip")], ["h"], "h"))
    nodes.append(node("QuantizeLinear", ["h" if after else "m", scale, zero], ["r"], "r"))
    nodes.append(node("DequantizeLinear", ["r", scale, zero], ["y"], "y"))
    rank = 2 if op == "Reshape" else 4
    return from_proto(make_model(nodes, {"x": ("N", 3, 8, 7)}, ["y"], constants, 17, {"y": rank}), op)


@pytest.mark.parametrize(
    ("op", "after", "alike", "expected"),
    [
        ("Add", "", False, ["qadd"]),
        ("Sub", "Relu", False, ["qadd"]),
        ("Add", "Clip", True, ["qadd"]),
        ("Concat", "", False, ["qadd", "qadd", "concat"]),
        ("Concat", "", True, ["qadd", "concat"]),
        ("MaxPool", "", True, ["pool"]),
        ("MaxPool", "Relu", False, ["pool", "qadd"]),
        ("Reshape", "", True, []),
        ("Relu", "", False, ["qadd"]),
        ("Identity", "Clip", True, ["qadd"]),
    ],
)
def test_what_picks_moves_or_adds_stays_in_bytes(
    op: str, after: str, alike: bool, expected: list[str]
) -> None:
    graph = _between(op, after, alike)
    first = ["quantize"] * (2 if op in ("Add", "Sub", "Concat") else 1)
    assert ops(graph) == [*first, *expected, "quantize"]
    fed = {"x": np.rint(40 * np.random.default_rng(1).normal(size=(BATCH, 3, 8, 7))).astype(np.float32) / 8}
    right = oracle.run(graph, fed, ["y"])["y"]
    np.testing.assert_array_equal(run_plan(graph, BATCH, fed)["y"], right.astype(np.float32))
    named = [name for group in groups(graph, BATCH) for name in group.nodes]
    assert len(named) == len(set(named)), "each is in one group"


def test_what_is_read_elsewhere_as_well_is_not_taken_into_bytes() -> None:
    proto = _between("Add", "Relu").whole_proto()
    proto.graph.output.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [None] * 4))
    graph = from_proto(proto, "given out")
    assert ops(graph) == ["quantize", "quantize", "binary", "unary", "quantize"]
    fed = {"x": np.random.default_rng(1).normal(size=(BATCH, 3, 8, 7)).astype(np.float32)}
    found = run_plan(graph, BATCH, fed)
    for name, right in oracle.run(graph, fed, ["y", "m"]).items():
        np.testing.assert_allclose(found[name], right, rtol=1e-6)


@pytest.mark.parametrize("name", ["q2:ones", "q2:rows"])
def test_a_tensor_of_the_model_may_be_called_as_what_an_average_is_made_of(name: str) -> None:
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("GlobalAveragePool", ["d"], ["g"]),
        node("QuantizeLinear", ["g", "scale", "zero"], ["q2"]),
        node("DequantizeLinear", ["q2", "scale", "zero"], ["d2"]),
        node("Mul", ["d2", name], ["y"]),
    ]
    constants = {"scale": np.float32(0.05), "zero": np.uint8(128), name: np.float32([[[[3]], [[-5]]]])}
    graph = from_proto(make_model(nodes, {"x": ("N", 2, 6, 5)}, ["y"], constants, ranks={"y": 4}), "net")
    x = np.random.default_rng(1).standard_normal((3, 2, 6, 5)).astype(np.float32)
    np.testing.assert_allclose(run_plan(graph, 3, {"x": x})["y"], run_ort(graph, {"x": x})["y"], atol=1e-5)
