"""Small models drawn by a seed, of every kind of output that a file may have: those whose images have answers
of their own, wherever these lie, and those whose images change each other's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto

OPSET = 17


@dataclass
class Made:
    """A model on its way. width: values of an image."""

    random: np.random.Generator
    width: int = 6
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: list[tuple[str, int, int]] = field(default_factory=list)  # name, element type, rank

    def node(self, op_type: str, inputs: Sequence[str], **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op_type, list(inputs), [name], f"n{len(self.nodes)}", **attributes)
        )
        return name

    def weight(self, value: object, dtype: type = np.float32) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value, dtype)
        return name

    def layer(self, x: str) -> str:
        """A product and an activation of (rows, width)."""
        weight = self.weight(self.random.standard_normal((self.width, self.width)) / 2)
        return self.node(str(self.random.choice(["Relu", "Tanh"])), [self.node("MatMul", [x, weight])])

    def answers(self, name: str, rank: int = 2, element: int = TensorProto.FLOAT) -> None:
        self.outputs.append((name, element, rank))


def own(made: Made, x: str) -> None:
    made.answers(made.layer(x))


def several_rows(made: Made, x: str) -> None:
    """Several rows an image, one image behind the other, as detectors write them."""
    shape = made.weight([-1, int(made.random.choice([1, 2, 3]))], np.int64)
    made.answers(made.node("Reshape", [made.layer(x), shape]))


def batch_second(made: Made, x: str) -> None:
    made.answers(made.node("Transpose", [made.layer(x)], perm=[1, 0]))


def classes(made: Made, x: str) -> None:
    made.answers(made.node("ArgMax", [made.layer(x)], axis=1, keepdims=0), 1, TensorProto.INT64)


def the_input(made: Made, x: str) -> None:
    made.answers(x)
    made.answers(made.layer(x))


def mean_of_all(made: Made, x: str) -> None:
    made.answers(made.layer(x))
    made.answers(made.node("ReduceMean", [x], axes=[0], keepdims=1))


def one_number(made: Made, x: str) -> None:
    made.answers(made.node("ReduceSum", [made.layer(x)], keepdims=0), 0)


def attention(made: Made, x: str) -> None:
    scores = made.node("MatMul", [x, made.node("Transpose", [x], perm=[1, 0])])
    made.answers(made.node("MatMul", [made.node("Softmax", [scores], axis=-1), made.layer(x)]))


def normalised(made: Made, x: str) -> None:
    """By the batch's own mean."""
    hidden = made.layer(x)
    made.answers(made.node("Sub", [hidden, made.node("ReduceMean", [hidden], axes=[0], keepdims=1)]))


def running_sum(made: Made, x: str) -> None:
    """As a state that is handed on from row to row; the first row has none."""
    made.answers(made.node("CumSum", [made.layer(x), made.weight(0, np.int64)]))


def dynamic_range(made: Made, x: str) -> None:
    quantised, scale, zero = (f"q{i}" for i in range(3))
    made.nodes.append(
        helper.make_node("DynamicQuantizeLinear", [made.layer(x)], [quantised, scale, zero], "dq")
    )
    made.answers(made.node("DequantizeLinear", [quantised, scale, zero]))


def places(made: Made, x: str) -> None:
    """As many as there are: the shape hangs on the values."""
    made.answers(made.node("NonZero", [made.node("Relu", [x])]), 2, TensorProto.INT64)


Kind = Callable[[Made, str], None]
BY_IMAGE: tuple[Kind, ...] = (own, several_rows, batch_second, classes, the_input)
TOGETHER: tuple[Kind, ...] = (
    mean_of_all, one_number, attention, normalised, running_sum, dynamic_range, places,
)  # fmt: skip


def model(kind: Kind, seed: int, batch: int | str = "N") -> Graph:
    made = Made(np.random.default_rng([seed, *kind.__name__.encode()]))
    kind(made, made.layer("x") if kind is not the_input and made.random.random() < 0.5 else "x")
    return built(made, batch, f"{kind.__name__}{seed}")


def built(made: Made, batch: int | str, name: str) -> Graph:
    held = [numpy_helper.from_array(array, weight) for weight, array in made.weights.items()]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, made.width])]
    outputs = [
        helper.make_tensor_value_info(output, element, [None] * rank)
        for output, element, rank in made.outputs
    ]
    graph = helper.make_graph(made.nodes, name, ends, outputs, held)
    opsets = [helper.make_opsetid("", OPSET)]
    return from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=8), name)


def rows(graph: Graph, count: int, seed: int) -> dict[str, np.ndarray]:
    width = graph.inputs[0].shape[1]
    assert isinstance(width, int)
    return {"x": np.random.default_rng(seed).uniform(-1, 1, (count, width)).astype(np.float32)}
