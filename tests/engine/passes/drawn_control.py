"""Models of If, Loop and functions within each other, drawn. Their nodes and tensors are called by few names,
so that what lies in two graphs is often called alike, as ONNX allows it.

    python -m tests.engine.passes.drawn_control [--seconds 60] [--seed 0]

Each is answered by the engine's plan and by ONNX Runtime. Exit code 1 where one answer differs, or the engine
refuses what ONNX Runtime runs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from engine.graph.importer import from_proto
from engine.planning.groups import groups
from tests.engine.harness import run_ort, run_plan

SHAPE = (2, 4)  # of every tensor but for numbers and conditions
NAMES = ("a", "b", "c", "number", "goes_on", "0", "1", "then", "x#0")
OWN = "own"  # the domain of the model's functions


class _Drawing:
    """One model. `taken`: tensor names that a graph may not use; `known`: what it may read."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.functions: list[onnx.FunctionProto] = []
        self.count = 0

    def name(self, taken: set[str]) -> str:
        self.count += 1
        free = [name for name in NAMES if name not in taken] + [f"v{self.count}"]
        taken.add(name := self.random.choice(free))
        return name

    def block(self, known: list[str], taken: set[str], depth: int) -> list[onnx.NodeProto]:
        """A few nodes; what they make is added to `known`."""
        nodes: list[onnx.NodeProto] = []
        kinds: list[Callable[..., str]] = [self._plain, self._second, self._last_state, self._whole_numbers]
        kinds += [self._if, self._loop, self._call] if depth else []
        for _ in range(self.random.randint(1, 4)):

            def put(op_type: str, *inputs: str, more: int = 0, **attributes: Any) -> str:
                """A node; the name of its last output."""
                outputs = [self.name(taken) for _ in range(1 + more)]
                called = self.random.choice(["", f"n{len(nodes)}"])
                nodes.append(helper.make_node(op_type, inputs, outputs, called, **attributes))
                return outputs[-1]

            known.append(self.random.choice(kinds)(put, self.random.choice(known), known, taken, depth))
        return nodes

    def _constant(self, put: Callable[..., str], value: Any, dtype: Any = np.float32) -> str:
        return put("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def _plain(self, put: Callable[..., str], x: str, known: list[str], *_: Any) -> str:
        kind = self.random.choice(["Tanh", "Neg", "Add", "Mul"])
        other = self.random.choice([*known, ""]) or self._constant(put, self.values.normal(size=4))
        return put(kind, x) if kind in ("Tanh", "Neg") else put(kind, x, other)

    def _second(self, put: Callable[..., str], x: str, *_: Any) -> str:
        places = put("TopK", x, self._constant(put, [4], np.int64), more=1)
        return put("Cast", places, to=TensorProto.FLOAT)

    def _last_state(self, put: Callable[..., str], x: str, *_: Any) -> str:
        axes = self._constant(put, [0], np.int64)
        weights = (self._constant(put, self.values.normal(size=(1, 12, 4)) / 2) for _ in range(2))
        last = put("GRU", put("Unsqueeze", x, axes), *weights, more=1, hidden_size=4)
        return put("Squeeze", last, axes)

    def _whole_numbers(self, put: Callable[..., str], _x: str, known: list[str], *_: Any) -> str:
        """Of the first tensor, whose numbers are exact in eight bits."""
        scale, zero = self._constant(put, 0.125), self._constant(put, 3, np.int8)
        weights = self._constant(put, self.values.integers(-9, 9, (4, 4)), np.int8)
        x = put("DequantizeLinear", put("QuantizeLinear", known[0], scale, zero), scale, zero)
        return put("MatMul", x, put("DequantizeLinear", weights, scale, zero))

    def _if(self, put: Callable[..., str], x: str, known: list[str], taken: set[str], depth: int) -> str:
        if self.random.random() < 0.3:
            condition = self._constant(put, self.random.random() < 0.5, np.bool_)
        else:
            size = put("ReduceSum", put("Abs", x), keepdims=0)
            condition = put("Greater", size, self._constant(put, self.random.uniform(0, 12)))
        # What is called alike in both is no other's: the graph around them uses neither's names afterwards.
        within = [set(taken), set(taken)]
        made = [self._graph(known, names, depth - 1) for names in within]
        taken.update(*within)
        return put("If", condition, then_branch=made[0], else_branch=made[1])

    def _loop(self, put: Callable[..., str], x: str, known: list[str], taken: set[str], depth: int) -> str:
        turns, axes = (
            self._constant(put, self.random.randint(1, 3), np.int64),
            self._constant(put, [0], np.int64),
        )
        within = set(taken)
        body = self._graph(known, within, depth - 1, loop=True)
        taken |= within
        return put("ReduceSum", put("Loop", turns, "", x, more=1, body=body), axes, keepdims=0)

    def _call(self, put: Callable[..., str], x: str, _known: list[str], _taken: set[str], depth: int) -> str:
        inside, names = ["p"], {"p"}
        nodes = self.block(inside, names, depth - 1)
        versions = [helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)]
        function = f"F{len(self.functions)}"
        self.functions.append(helper.make_function(OWN, function, ["p"], [inside[-1]], nodes, versions))
        return put(function, x, domain=OWN)

    def _graph(self, known: list[str], taken: set[str], depth: int, loop: bool = False) -> onnx.GraphProto:
        """A branch, or a body that carries one tensor and gives one in each turn."""
        given = [self.name(taken) for _ in range(3 if loop else 0)]
        inside = [*known, *given[2:]]
        initializers = []
        if self.random.random() < 0.5:
            initializers.append(numpy_helper.from_array(self.values.normal(size=SHAPE).astype(np.float32),
                                                        self.name(taken)))  # fmt: skip
            inside.append(initializers[0].name)
        before = len(inside)
        nodes = self.block(inside, taken, depth)
        ends = [self.random.choice(inside[before:])]
        if loop:
            more = [self.name(taken) for _ in range(2)]
            nodes += [
                helper.make_node("Identity", given[1:2], more[:1]),
                helper.make_node("Neg", ends, more[1:]),
            ]
            ends = [more[0], ends[0], more[1]]
        kinds = (TensorProto.INT64, TensorProto.BOOL)
        inputs, outputs = _infos(given, *kinds), _infos(ends, *kinds[1:] if loop else ())
        return helper.make_graph(nodes, "within", inputs, outputs, initializers)


def _infos(names: Sequence[str], *first: int) -> list[onnx.ValueInfoProto]:
    """first: the types of numbers and conditions; the others are tensors."""
    info = helper.make_tensor_value_info
    numbers = [info(name, kind, []) for name, kind in zip(names, first, strict=False)]
    return numbers + [info(name, TensorProto.FLOAT, SHAPE) for name in names[len(first) :]]


def model(seed: int) -> onnx.ModelProto:
    drawing = _Drawing(seed)
    known = ["x"]
    nodes = drawing.block(known, {"x"}, 2)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)]
    graph = helper.make_graph(nodes, "drawn", _infos(["x"]), _infos(known[-1:]))
    return helper.make_model(graph, opset_imports=versions, functions=drawing.functions, ir_version=8)


def wrong(seed: int) -> str:
    """What is wrong with the answer to a model; "" where nothing is."""
    x = np.random.default_rng(seed).integers(-60, 60, SHAPE).astype(np.float32) / 8
    graph = from_proto(model(seed), f"drawn {seed}")
    (right,) = run_ort(graph, {"x": x}).values()
    nodes = [name for group in groups(graph, SHAPE[0]) for name in group.nodes]
    (found,) = run_plan(graph, SHAPE[0], {"x": x}).values()
    if len(set(nodes)) != len(nodes) or not set(nodes) <= graph.by_name.keys():
        return f"its groups have the nodes {nodes}"
    return "" if np.allclose(found, right, rtol=1e-3, atol=1e-3) else f"{found} instead of {right}"


def _seeds(first: int, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield first
        first += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    told = count = 0
    for seed in _seeds(asked.seed, asked.seconds):
        count += 1
        try:
            what = wrong(seed)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
        if what:
            told += 1
            print(f"seed {seed}: {what}", flush=True)
    print(f"{count} models, {told} wrong")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
