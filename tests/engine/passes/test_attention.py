"""Attention as exporters write it becomes one step, and only where it is what it seems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from engine.planning.groups import groups
from kernels.ops.attention import Attention
from tests.engine.harness import agree, bare, make_model, random, run_ort, run_plan

BATCH, HEADS, TOKENS, DEPTH = 2, 3, 6, 4
WIDTH = HEADS * DEPTH
LOW = float(np.finfo(np.float32).min)


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], output, **attributes)


CONSTANTS = {
    "apart": np.array([0, TOKENS, HEADS, DEPTH]),
    "whole": np.array([0, TOKENS, WIDTH]),
    "as_columns": np.array([0, HEADS, DEPTH, TOKENS]),
    "as_matrices": np.array([-1, TOKENS, DEPTH]),
    "as_heads": np.array([-1, HEADS, TOKENS, DEPTH]),
    "as_scores": np.array([-1, HEADS, TOKENS, TOKENS]),
    "as_one": np.array([-1, TOKENS, TOKENS]),
    "root": np.array(2, np.float32),
    "factor": np.array(0.5, np.float32),
    "part": np.array(0.70710677, np.float32),
    "zero": np.array(0, np.float32),
    "low": np.array(LOW, np.float32),
    "nothing": np.array(-np.inf, np.float32),
    "some": np.array(-5, np.float32),
    "causal": np.tril(np.ones((1, 1, TOKENS, TOKENS), bool)),
    "hidden": ~np.tril(np.ones((TOKENS, TOKENS), bool)),
    "added": np.triu(np.full((1, 1, TOKENS, TOKENS), -np.inf, np.float32), 1),
    "bias": random((1, HEADS, TOKENS, TOKENS), 7),
    "scalars": np.array([0.5] * TOKENS, np.float32),
}
QUERY = [node("Reshape", "q apart", "q4"), node("Transpose", "q4", "qh", perm=[0, 2, 1, 3])]
VALUE = [node("Reshape", "v apart", "v4"), node("Transpose", "v4", "vh", perm=[0, 2, 1, 3])]
KEY = [node("Reshape", "k apart", "k4"), node("Transpose", "k4", "kt", perm=[0, 2, 3, 1])]
KEY_TWICE = [
    node("Reshape", "k apart", "k4"),
    node("Transpose", "k4", "kh", perm=[0, 2, 1, 3]),
    node("Transpose", "kh", "kt", perm=[0, 1, 3, 2]),
]
PRODUCT = [node("MatMul", "qh kt", "s")]
DIVIDED = [*PRODUCT, node("Div", "s root", "d")]
BACK = [node("Transpose", "o", "t", perm=[0, 2, 1, 3]), node("Reshape", "t whole", "y")]
END = [node("MatMul", "p vh", "o"), *BACK]
HEAD = [*QUERY, *KEY, *VALUE]


def soft(x: str) -> list[NodeProto]:
    return [node("Softmax", x, "p", axis=-1), *END]


WRITTEN = {
    "divided": [*HEAD, *DIVIDED, *soft("d")],
    "multiplied": [*HEAD, *PRODUCT, node("Mul", "factor s", "d"), *soft("d")],
    "not scaled": [*HEAD, *PRODUCT, *soft("s")],
    "q and k scaled": [
        *HEAD,
        node("Mul", "qh part", "qs"),
        node("Mul", "kt part", "ks"),
        node("MatMul", "qs ks", "s"),
        *soft("s"),
    ],
    "q scaled before its heads come in front": [
        *(node("Reshape", "q apart", "q4"), node("Mul", "q4 factor", "qs")),
        node("Transpose", "qs", "qh", perm=[0, 2, 1, 3]),
        *(*KEY, *VALUE, *PRODUCT, *soft("s")),
    ],
    "keys turned twice": [*QUERY, *KEY_TWICE, *VALUE, *DIVIDED, *soft("d")],
    "masked": [*HEAD, *DIVIDED, node("Add", "d mask", "m"), *soft("m")],
    "masked, the mask first": [*HEAD, *DIVIDED, node("Add", "mask d", "m"), *soft("m")],
    "causal": [*HEAD, *DIVIDED, node("Add", "d added", "m"), *soft("m")],
    "with a bias a head": [*HEAD, *DIVIDED, node("Add", "d bias", "m"), *soft("m")],
    "causal, others replaced": [*HEAD, *DIVIDED, node("Where", "causal d low", "m"), *soft("m")],
    "causal, replaced by nothing": [*HEAD, *DIVIDED, node("Where", "hidden nothing d", "m"), *soft("m")],
    "dropped out": [*HEAD, *DIVIDED, node("Softmax", "d", "p0", axis=-1), node("Dropout", "p0", "p"), *END],
    "NaN made zero": [
        *(*HEAD, *DIVIDED, node("Add", "d mask", "m"), node("Softmax", "m", "w", axis=-1)),
        *(node("IsNaN", "w", "n"), node("Where", "n zero w", "p"), *END),
    ],
    "as one stack of matrices": [
        *HEAD[:3],
        node("Transpose", "k4", "kh", perm=[0, 2, 1, 3]),
        *VALUE,
        *(node("Reshape", "qh as_matrices", "qm"), node("Reshape", "kh as_matrices", "km")),
        *(node("Reshape", "vh as_matrices", "vm"), node("Transpose", "km", "kt", perm=[0, 2, 1])),
        *(node("MatMul", "qm kt", "s"), node("Reshape", "s as_scores", "s4"), node("Add", "s4 mask", "m")),
        *(node("Reshape", "m as_one", "m3"), node("Softmax", "m3", "p", axis=-1)),
        *(node("MatMul", "p vm", "o3"), node("Reshape", "o3 as_heads", "o"), *BACK),
    ],
}
# What differs in one thing.
OTHER = {
    "scaled behind the mask": [
        *(*HEAD, *PRODUCT, node("Add", "s mask", "m"), node("Mul", "m factor", "d"), *soft("d"))
    ],
    "keys in another shape, not turned": [
        *(*QUERY, *VALUE, node("Reshape", "k as_columns", "kt"), *DIVIDED, *soft("d")),
    ],
    "another axis": [*HEAD, *DIVIDED, node("Softmax", "d", "p", axis=2), *END],
    "a factor a key": [*HEAD, *PRODUCT, node("Mul", "s scalars", "d"), *soft("d")],
    "replaced by a score": [*HEAD, *DIVIDED, node("Where", "causal d some", "m"), *soft("m")],
    "a logarithm": [*HEAD, *DIVIDED, node("LogSoftmax", "d", "p", axis=-1), *END],
    "an activation of the scores": [*HEAD, *DIVIDED, node("Relu", "d", "r"), *soft("r")],
    "the weights are given out": [*HEAD, *DIVIDED, *soft("d")],
    "the scores are given out": [*HEAD, *DIVIDED, *soft("d")],
}
GIVEN_OUT = {"the weights are given out": "p", "the scores are given out": "d"}


def graph(nodes: list[NodeProto], given_out: str = "", width: int = WIDTH) -> Graph:
    read = {name for each in nodes for name in each.input}
    inputs: dict[str, Any] = dict.fromkeys("qkv", ("N", TOKENS, width))
    if "mask" in read:
        inputs["mask"] = ("N", 1, 1, TOKENS)
    held = {name: value for name, value in CONSTANTS.items() if name in read}
    outputs = ["y", *([given_out] if given_out else [])]
    proto = make_model(nodes, inputs, outputs, held, 20, {"y": 3, given_out: 4})
    return from_proto(proto, "attention")


def feeds(of: Graph, batch: int = BATCH) -> dict[str, np.ndarray]:
    made = {info.name: random((batch, *info.shape[1:]), n) for n, info in enumerate(of.inputs)}  # type: ignore[misc]
    if "mask" in made:
        made["mask"][:, :, :, 1] = -np.inf
    return made


@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("name", list(WRITTEN))
def test_what_exporters_write_is_one_step(name: str, batch: int) -> None:
    made = graph(WRITTEN[name])
    steps = bare(made, batch).steps
    assert [step.op for step in steps if step.op not in ("transpose", "where")] == ["attention"]
    if name != "as one stack of matrices":
        assert [step.op for step in steps] == ["attention"]
        assert steps[0].params.swapped == (True,) * 4  # type: ignore[attr-defined]
    agree(made, feeds(made, batch), batch)


@pytest.mark.parametrize("name", list(OTHER))
def test_what_is_not_attention_stays_apart(name: str) -> None:
    made = graph(OTHER[name], GIVEN_OUT.get(name, ""))
    assert "attention" not in {step.op for step in bare(made, BATCH).steps}
    agree(made, feeds(made), BATCH)


def test_a_query_that_sees_nothing_is_nan_as_its_softmax_is_and_zero_where_that_is_said() -> None:
    for name, wanted in (("masked", np.nan), ("NaN made zero", 0.0)):
        made = graph(WRITTEN[name])
        fed = feeds(made)
        fed["mask"][1] = -np.inf
        ours, theirs = run_plan(made, BATCH, fed)["y"], run_ort(made, fed)["y"]
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(ours[1], np.full_like(ours[1], wanted))
        (params,) = (step.params for step in bare(made, BATCH).steps)
        assert isinstance(params, Attention)
        assert params.guarded == (wanted == 0)


def test_its_nodes_are_one_group_and_every_node_is_in_one() -> None:
    made = graph(WRITTEN["masked"])
    found = groups(made, BATCH)
    assert [group.op_type for group in found if group.flops] == ["MatMul+Softmax"]
    nodes = [name for group in found for name in group.nodes]
    assert sorted(nodes) == sorted(each.name for each in made.nodes)


def test_a_row_of_a_condition_that_hides_all_keeps_what_replaces_them() -> None:
    """Next to −∞ everywhere is the same everywhere: equal weights, where −∞ itself would be NaN."""
    nodes = [*HEAD, *DIVIDED, node("Where", "none d low", "m"), *soft("m")]
    none = np.ones((TOKENS, TOKENS), bool)
    none[2] = False
    held = {name: CONSTANTS[name] for name in ("apart", "whole", "root", "low")} | {"none": none}
    inputs = dict.fromkeys("qkv", ("N", TOKENS, WIDTH))
    made = from_proto(make_model(nodes, inputs, ["y"], held, 20, {"y": 3}), "hidden")
    assert "attention" not in {step.op for step in bare(made, BATCH).steps}
    agree(made, feeds(made), BATCH)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 5),
    st.booleans(),
)
def test_drawn_shapes(batch: int, heads: int, queries: int, keys: int, depth: int, masked: bool) -> None:
    """Heads in front from the beginning, keys that are not as many as the queries."""
    nodes = [
        node("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "q kt", "s"),
        node("Div", "s root", "d"),
    ]
    if masked:
        nodes.append(node("Add", "d mask", "m"))
    nodes += [node("Softmax", "m" if masked else "d", "p", axis=-1), node("MatMul", "p v", "y")]
    inputs = {"q": ("N", heads, queries, depth), "k": ("N", heads, keys, depth), "v": ("N", heads, keys, 3)}
    mask = {"mask": random((heads, 1, keys), 4)} if masked else {}
    made = from_proto(
        make_model(nodes, inputs, ["y"], {"root": CONSTANTS["root"], **mask}, 17, {"y": 4}), "drawn"
    )
    agree(made, feeds(made, batch), batch)
    if batch * heads > 1 and min(keys, depth) > 1:
        assert [step.op for step in bare(made, batch).steps] == ["attention"]
