"""Functions that exporters write as several nodes become one step, and only where they are what they seem."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning.groups import groups
from tests.engine.harness import agree, bare, make_model, random

SHAPE = (2, 3, 5, 4)
NUMBERS = {
    "half": 0.5,
    "one": 1.0,
    "two": 2.0,
    "three": 3.0,
    "six": 6.0,
    "zero": 0.0,
    "root": 1.4142135,
    "root_half": 0.70710677,
    "root_of_pi": 0.7978845608,
    "cubic": 0.044715,
    "slope": 1.702,
}


def node(op_type: str, inputs: str, output: str, **attributes: float) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], output, **attributes)


def graph(nodes: list[NodeProto], outputs: tuple[str, ...] = ("y",)) -> Graph:
    read = {name for each in nodes for name in each.input}
    constants = {name: np.array(v, np.float32) for name, v in NUMBERS.items() if name in read}
    ranks = dict.fromkeys(outputs, 4)
    return from_proto(make_model(nodes, {"x": ("N", *SHAPE[1:])}, outputs, constants, 17, ranks), "gates")


ERF = [node("Div", "x root", "d"), node("Erf", "d", "e"), node("Add", "e one", "g")]
CUBIC = [
    *(node("Pow", "x three", "c"), node("Mul", "c cubic", "a"), node("Add", "x a", "b")),
    node("Mul", "root_of_pi b", "i"),
]
BY_TANH = [node("Tanh", "i", "t"), node("Add", "t one", "g")]
WRITTEN = {
    "swish": [node("Sigmoid", "x", "g"), node("Mul", "x g", "y")],
    "swish, the gate first": [node("Sigmoid", "x", "g"), node("Mul", "g x", "y")],
    "hard_swish": [node("HardSigmoid", "x", "g", alpha=1 / 6), node("Mul", "x g", "y")],
    "hard_swish by a clip": [
        node("Add", "x three", "a"),
        node("Clip", "a zero six", "g"),
        node("Mul", "x g", "m"),
        node("Div", "m six", "y"),
    ],
    "mish": [node("Softplus", "x", "s"), node("Tanh", "s", "g"), node("Mul", "x g", "y")],
    "gelu": [*ERF, node("Mul", "x g", "m"), node("Mul", "m half", "y")],
    "gelu, halved first": [*ERF, node("Mul", "x half", "h"), node("Mul", "h g", "y")],
    "gelu, otherwise": [
        node("Mul", "x root_half", "d"),
        node("Erf", "d", "e"),
        node("Add", "one e", "g"),
        node("Div", "x two", "h"),
        node("Mul", "g h", "y"),
    ],
    "gelu, its gate halved": [*ERF, node("Mul", "half g", "h"), node("Mul", "x h", "y")],
    "gelu_tanh": [*CUBIC, *BY_TANH, node("Mul", "x g", "m"), node("Mul", "m half", "y")],
    "gelu_tanh, halved first": [*CUBIC, *BY_TANH, node("Mul", "x half", "h"), node("Mul", "h g", "y")],
    "gelu_tanh of a product of three": [
        *(node("Mul", "x x", "s"), node("Mul", "x s", "c"), node("Mul", "cubic c", "a")),
        *(node("Add", "a x", "b"), node("Mul", "b root_of_pi", "i"), *BY_TANH),
        *(node("Mul", "g x", "m"), node("Mul", "half m", "y")),
    ],
    "gelu_tanh, x outside": [
        *(node("Mul", "x x", "s"), node("Mul", "s cubic", "a"), node("Add", "a one", "b")),
        *(node("Mul", "x root_of_pi", "r"), node("Mul", "r b", "i"), *BY_TANH),
        *(node("Mul", "x half", "h"), node("Mul", "h g", "y")),
    ],
    "swish, quick": [node("Mul", "x slope", "s"), node("Sigmoid", "s", "g"), node("Mul", "x g", "y")],
}
# What differs in one number, one tensor, or has another reader.
OTHER = {
    "another power": [
        *(node("Pow", "x two", "c"), node("Mul", "c cubic", "a"), node("Add", "x a", "b")),
        *(node("Mul", "root_of_pi b", "i"), *BY_TANH, node("Mul", "x half", "h"), node("Mul", "h g", "y")),
    ],
    "another cube": [
        *(
            node("Neg", "x", "n"),
            node("Pow", "n three", "c"),
            node("Mul", "c cubic", "a"),
            node("Add", "x a", "b"),
        ),
        *(node("Mul", "root_of_pi b", "i"), *BY_TANH, node("Mul", "x half", "h"), node("Mul", "h g", "y")),
    ],
    "the slope of another": [
        *(
            node("Neg", "x", "n"),
            node("Mul", "n slope", "s"),
            node("Sigmoid", "s", "g"),
            node("Mul", "x g", "y"),
        ),
    ],
    "another x": [node("Neg", "x", "n"), node("Sigmoid", "n", "g"), node("Mul", "x g", "y")],
    "another slope": [node("HardSigmoid", "x", "g"), node("Mul", "x g", "y")],
    "another bound": [
        node("Add", "x three", "a"),
        node("Clip", "a one six", "g"),
        node("Mul", "x g", "m"),
        node("Div", "m six", "y"),
    ],
    "divided by two": [*ERF, node("Mul", "x g", "m"), node("Div", "m half", "y")],
    "another root": [
        node("Div", "x two", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "g"),
        node("Mul", "x g", "m"),
        node("Mul", "m half", "y"),
    ],
    "added, not multiplied": [node("Sigmoid", "x", "g"), node("Add", "x g", "y")],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_several_nodes_are_one_function(name: str) -> None:
    made = graph(WRITTEN[name])
    (step,) = bare(made, 2).steps
    assert step.params.kind == name.split()[0].strip(",")
    assert set(step.nodes) == {each.output[0] for each in WRITTEN[name]}
    assert [group.nodes for group in groups(made, 2)] == [step.nodes]
    agree(made, {"x": random(SHAPE) * 4}, 2)


@pytest.mark.parametrize("name", OTHER)
def test_what_only_looks_like_it_stays(name: str) -> None:
    made = graph(OTHER[name])
    assert len(bare(made, 2).steps) > 1
    agree(made, {"x": random(SHAPE) * 4}, 2)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_tensor_within_that_is_given_out_stays(name: str) -> None:
    for within in [each.output[0] for each in WRITTEN[name][:-1]]:
        made = graph(WRITTEN[name], ("y", within))
        assert len(bare(made, 2).steps) > 1
        agree(made, {"x": random(SHAPE) * 4}, 2)


def test_a_gate_a_channel_is_no_function_of_one_element() -> None:
    """Squeeze and excitation: the gate is broadcast."""
    nodes = [node("GlobalAveragePool", "x", "p"), node("Sigmoid", "p", "g"), node("Mul", "x g", "y")]
    made = graph(nodes)
    assert [step.op for step in bare(made, 2).steps] == ["pool", "binary"]
    agree(made, {"x": random(SHAPE)}, 2)


@pytest.mark.parametrize(("upper", "ops"), [("six", ["conv"]), ("three", ["conv", "unary"])])
def test_a_clip_from_0_to_6_is_done_on_the_way_out_of_a_convolution(upper: str, ops: list[str]) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "c"), node("Clip", f"c zero {upper}", "y")]
    constants = {"w": random((4, 3, 2, 2), 1) * 4, **{n: np.float32(NUMBERS[n]) for n in ("zero", upper)}}
    model = make_model(nodes, {"x": ("N", *SHAPE[1:])}, ["y"], constants, 17, {"y": 4})
    made = from_proto(model, "clipped")
    assert [step.op for step in bare(made, 2).steps] == ops
    agree(made, {"x": random(SHAPE) * 4}, 2)


def test_a_normalisation_that_stands_alone_is_one_step() -> None:
    statistics = [random((3,), 1), random((3,), 2), random((3,), 3), np.abs(random((3,), 4))]
    named = {f"s{i}": value for i, value in enumerate(statistics)}
    nodes = [helper.make_node("BatchNormalization", ["x", *named], ["n"], "n"), node("Relu", "n", "y")]
    made = from_proto(make_model(nodes, {"x": ("N", *SHAPE[1:])}, ["y"], named, 17, {"y": 4}), "normal")
    (step,) = bare(made, 2).steps
    assert (step.op, step.params.activation, step.nodes) == ("multiply_add", "relu", ("n", "y"))
    agree(made, {"x": random(SHAPE)}, 2)


def test_a_sum_of_two_tensors_that_are_computed_is_a_step_of_its_own() -> None:
    nodes = [node("Mul", "x half", "m"), node("Neg", "x", "o"), node("Add", "m o", "y")]
    made = graph(nodes)
    assert [step.op for step in bare(made, 2).steps] == ["binary", "unary", "binary"]
    agree(made, {"x": random(SHAPE)}, 2)
