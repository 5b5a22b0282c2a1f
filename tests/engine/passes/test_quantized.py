"""Products between DequantizeLinear and QuantizeLinear become one step of whole numbers, whose answer is that
of exact arithmetic, ties included; what does not fit stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from bench.measure.answers import oracle
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning.groups import groups
from engine.planning.submodel import extract
from tests.engine.harness import bare, make_model, run_ort, run_plan

EIGHT = ("uint8", "int8")
BATCH = 2


@dataclass(frozen=True)
class Net:
    """x → Q → DQ → a product by dequantized weights → what follows → Q → DQ → y.

    kind: "Conv", "Gemm" or "MatMul". bias: "none", "whole" (int32, dequantized), "real" or "added". after: an
    op type or "". powers: scales that are powers of two, so that many answers are ties. last: whether the
    product is quantized again. outputs: tensors that the graph gives out beside y."""

    kind: str = "Conv"
    x: str = "uint8"
    w: str = "int8"
    y: str = "uint8"
    several: bool = False
    bias: str = "whole"
    after: str = ""
    powers: bool = True
    last: bool = True
    seed: int = 0
    outputs: tuple[str, ...] = ()

    def graph(self) -> Graph:
        random, conv = np.random.default_rng(self.seed), self.kind == "Conv"
        shape = (BATCH, 3, 6, 5) if conv else (BATCH, 9)
        m, axis = 4, 0 if conv else 1
        w = whole(random, (m, 3, 3, 2) if conv else (9, m), self.w)
        channels = (m,) if self.several else ()
        scales = {
            "xs": self._scale(random, ()),
            "ws": self._scale(random, channels),
            "ys": self._scale(random, ()),
        }
        scales["ys"] = np.float32(scales["ys"] * 64)
        zeros = {
            "xz": whole(random, (), self.x),
            "wz": whole(random, channels, self.w),
            "yz": whole(random, (), self.y),
        }
        constants: dict[str, Any] = {**scales, **zeros, "w": w}
        node = helper.make_node
        along = {"axis": axis} if self.several else {}
        nodes = [
            node("QuantizeLinear", ["x", "xs", "xz"], ["q"], "q"),
            node("DequantizeLinear", ["q", "xs", "xz"], ["d"], "d"),
            node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "wd", **along),
        ]
        factors = ["d", "wd"]
        if self.bias == "whole":
            constants["b"] = random.integers(-3000, 3000, m).astype(np.int32)
            constants["bs"] = np.float32(scales["xs"] * scales["ws"])
            nodes.append(
                node("DequantizeLinear", ["b", "bs"], ["bd"], "bd", **({"axis": 0} if channels else {}))
            )
        elif self.bias in ("real", "added"):
            constants["bd"] = (random.integers(-99, 99, m) / 8).astype(np.float32)
        with_bias = self.bias in ("whole", "real") and self.kind != "MatMul"
        how = {"pads": [1, 0, 1, 1]} if conv else {}
        nodes.append(node(self.kind, [*factors, *["bd"] * with_bias], ["p"], "p", **how))
        name = "p"
        if self.bias != "none" and not with_bias:
            if conv:
                constants["shape"] = np.array([m, 1, 1])
                nodes.append(node("Reshape", ["bd", "shape"], ["column"], "column"))
            nodes.append(node("Add", ["column" if conv else "bd", name], ["added"], "added"))
            name = "added"
        if self.after:
            further = []
            if self.after == "Clip":
                constants |= {"least": np.float32(-1.5), "most": np.float32(2.25)}
                further = ["least", "most"]
            nodes.append(node(self.after, [name, *further], ["held"], "held"))
            name = "held"
        if self.last:
            nodes.append(node("QuantizeLinear", [name, "ys", "yz"], ["r"], "r"))
            nodes.append(node("DequantizeLinear", ["r", "ys", "yz"], ["y"], "y"))
        else:
            nodes.append(node("Identity", [name], ["y"], "y"))
        types = {"r": TensorProto.UINT8 if self.y == "uint8" else TensorProto.INT8,
                 "q": TensorProto.UINT8 if self.x == "uint8" else TensorProto.INT8}  # fmt: skip
        outputs = ["y", *self.outputs]
        ranks = dict.fromkeys(outputs, len(shape))
        return from_proto(
            make_model(nodes, {"x": ("N", *shape[1:])}, outputs, constants, 17, ranks, types), "net"
        )

    def _scale(self, random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        drawn = np.exp2(random.integers(-5, -2, shape)) if self.powers else random.uniform(0.02, 0.2, shape)
        return np.asarray(drawn, np.float32)

    def fed(self) -> np.ndarray:
        shape = (BATCH, 3, 6, 5) if self.kind == "Conv" else (BATCH, 9)
        return np.random.default_rng(self.seed + 1).normal(0, 4, shape).astype(np.float32)


def whole(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    held = np.iinfo(dtype)
    return np.asarray(random.integers(held.min, held.max + 1, shape), dtype)


@st.composite
def nets(draw: Any) -> Net:
    kind = draw(st.sampled_from(["Conv", "Gemm", "MatMul"]))
    return Net(
        kind=kind,
        **{name: draw(st.sampled_from(EIGHT)) for name in "xwy"},
        several=draw(st.booleans()),
        bias=draw(st.sampled_from(["none", "whole", "real", "added"])),
        after=draw(st.sampled_from(["", "Relu", "Clip"])),
        powers=draw(st.booleans()),
        seed=draw(st.integers(0, 1 << 16)),
    )


def ops(graph: Graph) -> list[str]:
    return [step.op for step in bare(graph, BATCH).steps]


@settings(max_examples=60, deadline=None)
@given(nets())
def test_a_product_between_quantized_tensors_is_one_step_and_exact(net: Net) -> None:
    graph = net.graph()
    product = "qconv" if net.kind == "Conv" else "qgemm"
    assert ops(graph) == ["quantize", product, "quantize"]
    fed = {"x": net.fed()}
    expected = oracle.run(graph, fed, ["y"])["y"]
    np.testing.assert_array_equal(run_plan(graph, BATCH, fed)["y"], expected.astype(np.float32))


@settings(max_examples=20, deadline=None)
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
