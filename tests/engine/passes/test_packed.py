"""The products that give an attention its queries, keys and values become one, and only where they may."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import NodeProto, helper

from engine import backends
from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.options import Options
from engine.planning.planner import plan
from kernels import numba_support, nvrtc
from kernels.ops.attention import Attention
from tests.engine.harness import make_model, random, run_ort

BATCH, TOKENS, HEADS, DEPTH, WIDE = 2, 5, 2, 4, 24
OUT = {"q": HEADS * DEPTH, "k": HEADS * DEPTH, "v": HEADS * DEPTH}


def node(op_type: str, inputs: str, output: str, **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], output, **attributes)


def block(bias: bool = True, of: str = "x", weights: str = "", outputs: tuple[str, ...] = ("y",)) -> Graph:
    """of: what the values are made of. weights: what of w and b is no constant."""
    constants = {"apart": np.array([0, TOKENS, HEADS, DEPTH]), "scale": np.array(0.5, np.float32)}
    inputs = {"x": ("N", TOKENS, WIDE), "z": ("N", TOKENS, WIDE)}
    nodes = []
    for number, (name, wide) in enumerate(OUT.items()):
        nodes.append(node("MatMul", f"{of if name == 'v' else 'x'} w{name}", f"p{name}"))
        constants[f"w{name}"] = random((WIDE, wide), number) / 5
        if bias:
            nodes.append(node("Add", f"p{name} b{name}", f"a{name}"))
            constants[f"b{name}"] = random((wide,), 5 + number)
        nodes.append(node("Reshape", f"{'a' if bias else 'p'}{name} apart", f"r{name}"))
        perm = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes.append(node("Transpose", f"r{name}", f"t{name}", perm=perm))
    for name in weights.split():
        inputs[name] = constants.pop(name).shape
    nodes += [
        *(node("MatMul", "tq tk", "s"), node("Mul", "s scale", "m"), node("Softmax", "m", "weigh", axis=-1)),
        *(node("MatMul", "weigh tv", "o"), node("Transpose", "o", "y", perm=[0, 2, 1, 3])),
    ]
    read = {name for each in nodes for name in each.input}
    inputs = {name: shape for name, shape in inputs.items() if name in read}
    ranks = {"y": 4, "aq": 3, "pv": 3}
    proto = make_model(nodes, inputs, outputs, constants, ranks={name: ranks[name] for name in outputs})
    return from_proto(proto, "block")


def ops(graph: Graph, device: str = "cuda", **options: object) -> list[str]:
    how = replace(Options(tuned=False), **options)
    return [step.op for step in plan(graph, BATCH, device, "fp32", how).steps]


@pytest.mark.parametrize("bias", [False, True])
def test_three_products_of_one_tensor_become_one(bias: bool) -> None:
    made = plan(block(bias), BATCH, "cuda", "fp32", Options(tuned=False))
    product, attention = made.steps
    assert isinstance(attention.params, Attention)
    assert attention.params.packed
    assert attention.inputs == (product.output,)
    assert product.params.output_shape == (1, BATCH * TOKENS, 3 * HEADS * DEPTH)
    assert [name[-1] for name in product.nodes if name[0] == "p"] == ["q", "k", "v"]


@pytest.mark.parametrize(
    ("what", "graph"),
    [
        ("the values of another tensor", block(of="z")),
        ("weights that come with each pass", block(weights="wk")),
        ("a bias that does", block(weights="bv")),
        ("queries that are an answer, too", block(outputs=("y", "aq"))),
        ("sums that are an answer, too", block(outputs=("y", "pv"))),
    ],
)
def test_other_products_stay_apart(what: str, graph: Graph) -> None:
    assert ops(graph).count("gemm") == 3


def test_they_stay_apart_on_the_cpu_and_where_rungs_are_named_for_them() -> None:
    assert ops(block(), "cpu").count("gemm") == 3
    assert ops(block(), rungs={"pq": "naive"}).count("gemm") == 1
    assert ops(block(), rungs={"pk": "naive"}).count("gemm") == 3


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable()))
@pytest.mark.sampled(4, "long")
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_answer_is_the_same(precision: str) -> None:
    """On the simulated GPU; in float16 the packed rows lie in it."""
    graph = block()
    x = random((BATCH, TOKENS, WIDE), 9)
    session = backends.get("engine-cuda-simulated").prepare(graph, BATCH, precision, Options(tuned=False))
    session.bind({"x": x})
    session.run()
    found = session.fetch()["y"]
    session.close()
    bound = 1e-5 if precision == "fp32" else 5e-3
    right = run_ort(graph, {"x": x})["y"]
    assert np.linalg.norm(found - right) <= bound * np.linalg.norm(right)
