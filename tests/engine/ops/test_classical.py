"""Classical models (ai.onnx.ml) as nodes of ONNX's own, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from engine.graph.graph import Graph
from engine.graph.importer import from_proto
from kernels.errors import UnsupportedError
from tests.engine.harness import agree, bare, make_model, random

few = settings(max_examples=8, deadline=None)
FEATURES = 5
INT64 = TensorProto.INT64


def classical(op_type: str, outputs: dict[str, int] | None = None, kind: int = 1, **attributes: Any) -> Graph:
    """outputs: their ranks by name; those of rank 1 are labels."""
    outputs = outputs or {"y": 2}
    node = helper.make_node(op_type, ["x"], [*outputs], "it", domain="ai.onnx.ml", **attributes)
    types = {"x": kind} | {name: INT64 for name, rank in outputs.items() if rank == 1}
    proto = make_model([node], {"x": ("N", FEATURES)}, [*outputs], ranks=outputs, types=types)
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
    return from_proto(proto, "classical")


SCORED = {"label": 1, "scores": 2}


def rows(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": random((count, FEATURES), seed) * 2}


@few
@given(st.integers(1, 4), st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC"]), st.integers(1, 5), st.booleans())
def test_linear_models(targets: int, transform: str, count: int, shifted: bool) -> None:
    given: dict[str, Any] = {
        "coefficients": random((targets, FEATURES), 1).ravel().tolist(),
        "post_transform": transform,
        **({"intercepts": random((targets,), 2).tolist()} if shifted else {}),
    }
    # ONNX's text leaves open what a softmax of one score is, and of two that were made of one.
    if targets > 1 or transform == "NONE":
        agree(classical("LinearRegressor", targets=targets, **given), rows(count), count)
    if targets > 1 or transform == "LOGISTIC":
        labels = [7 * place - 3 for place in range(max(targets, 2))]
        classifier = {"intercepts": [0.0] * targets, "classlabels_ints": labels, **given}
        agree(classical("LinearClassifier", SCORED, **classifier), rows(count), count)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("Scaler", {"offset": [0.5], "scale": [2.0]}),
        ("Scaler", {"offset": [0.5, 1, -1, 3, 0], "scale": [2.0, 1, 0.1, -4, 0]}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Binarizer", {"threshold": 0.25}),
        ("Imputer", {"imputed_value_floats": [1.0, 2, 3, 4, 5], "replaced_value_float": float("nan")}),
        ("Imputer", {"imputed_value_floats": [9.0], "replaced_value_float": 0.0}),
        ("FeatureVectorizer", {"inputdimensions": [FEATURES]}),
    ],
)
def test_scalers_and_what_fills_gaps(op_type: str, attributes: dict[str, Any]) -> None:
    feeds = rows(3)
    feeds["x"][1] = 0  # a row without length
    if op_type == "Imputer":
        feeds["x"][:, 2] = attributes["replaced_value_float"]
    agree(classical(op_type, **attributes), feeds, 3)


def test_whole_numbers_become_places() -> None:
    graph = classical("OneHotEncoder", {"y": 3}, INT64, cats_int64s=[4, -1, 0])
    agree(graph, {"x": np.random.default_rng(0).integers(-2, 6, (4, FEATURES))}, 4)


@pytest.mark.parametrize("kernel", ["", "LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vectors(kernel: str, one_class: int) -> None:
    count = 7 if kernel else 0
    attributes: dict[str, Any] = {
        "coefficients": random((count or FEATURES,), 1).tolist(),
        "rho": [0.3],
        "kernel_type": kernel or "LINEAR",
        "kernel_params": [0.2, 0.5, 3.0],
        "n_supports": count,
        "one_class": one_class,
        **({"support_vectors": random((count, FEATURES), 2).ravel().tolist()} if count else {}),
    }
    agree(classical("SVMRegressor", **attributes), rows(5), 5)


def test_a_missing_value_goes_where_its_branch_says() -> None:
    leaves = {"target_treeids": [0, 0, 0], "target_nodeids": [2, 3, 4], "target_ids": [0, 0, 0]}
    told = {
        "nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4], "nodes_featureids": [0, 1, 0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", *["LEAF"] * 3], "nodes_values": [0.0, 0.5, 0, 0, 0],
        "nodes_truenodeids": [1, 3, 0, 0, 0], "nodes_falsenodeids": [2, 4, 0, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0], "target_weights": [1.0, 2.0, 4.0],
    }  # fmt: skip
    x = np.array([[np.nan, 0], [np.nan, 1], [np.nan, np.nan], [1, 0], [-1, np.nan]], np.float32)
    feeds = {"x": np.concatenate([x, np.zeros((5, 3), np.float32)], axis=1)}
    agree(classical("TreeEnsembleRegressor", n_targets=1, **told, **leaves), feeds, 5)


@st.composite
def trees(draw: Any) -> dict[str, list[Any]]:
    """Nodes of some trees, each as deep as it comes; numbers of nodes in any order."""
    seed, count = draw(st.integers(0, 999)), draw(st.integers(1, 3))
    by, mode = np.random.default_rng(seed), draw(st.sampled_from(["LEQ", "LT", "GTE", "GT"]))
    told: dict[str, list[Any]] = {
        name: []
        for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }

    def grow(tree: int, depth: int, found: list[list[Any]]) -> int:
        number, leaf = len(found), depth == 0 or by.random() < 0.2
        row = [tree, number, 0, "LEAF", float(by.standard_normal()), 0, 0]
        found.append(row)
        if not leaf:
            row[2:4] = [int(by.integers(FEATURES)), f"BRANCH_{mode}"]
            row[5:] = [grow(tree, depth - 1, found), grow(tree, depth - 1, found)]
        return number

    for tree in range(count):
        found: list[list[Any]] = []
        grow(tree, draw(st.integers(0, 4)), found)
        order = by.permutation(len(found)).tolist()
        for row in found:
            ends = row[3] == "LEAF"
            row[1], row[5:] = order[row[1]], row[5:] if ends else [order[to] for to in row[5:]]
            for name, value in zip(told, row, strict=True):
                told[name].append(value)
    return told


def ensemble(told: dict[str, list[Any]], kind: str, targets: int, ids: list[int]) -> dict[str, Any]:
    leaves = [
        key
        for key, mode in zip(zip(told["treeids"], told["nodeids"], strict=True), told["modes"], strict=True)
        if mode == "LEAF"
    ]
    weights = random((len(leaves), len(ids)), 3).ravel().tolist()
    return {
        **{f"nodes_{name}": values for name, values in told.items()},
        f"{kind}_treeids": [tree for tree, _ in leaves for _ in ids],
        f"{kind}_nodeids": [number for _, number in leaves for _ in ids],
        f"{kind}_ids": [target for _ in leaves for target in ids],
        f"{kind}_weights": weights,
        "base_values": random((targets,), 4).tolist(),
    }


@few
@given(trees(), st.integers(1, 3))
def test_trees_give_numbers(told: dict[str, list[Any]], targets: int) -> None:
    attributes = ensemble(told, "target", targets, [*range(targets)])
    agree(classical("TreeEnsembleRegressor", n_targets=targets, **attributes), rows(7), 7)


@few
@given(trees(), st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC"]))
def test_trees_give_classes(told: dict[str, list[Any]], transform: str) -> None:
    attributes = ensemble(told, "class", 3, [0, 1, 2])
    labels = {"classlabels_int64s": [5, -2, 9], "post_transform": transform}
    agree(classical("TreeEnsembleClassifier", SCORED, **labels, **attributes), rows(7), 7)
    attributes = ensemble(told, "class", 1, [0])
    labels = {"classlabels_int64s": [5, -2], "post_transform": "LOGISTIC"}
    agree(classical("TreeEnsembleClassifier", SCORED, **labels, **attributes), rows(7), 7)


def test_what_is_not_taken_is_named() -> None:
    told = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.0, 0, 0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0],
        "target_nodeids": [1],
        "target_ids": [0],
        "target_weights": [1.0],
    }
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("Normalizer", {"norm": "MAX"}, "its norm is MAX"),
        ("LinearRegressor", {"coefficients": [1.0] * 4, "targets": 1}, "4 coefficients for 5 features"),
        ("LinearRegressor", {"coefficients": [1.0] * 5, "post_transform": "PROBIT"}, "PROBIT"),
        ("Scaler", {"offset": [0.0] * 3, "scale": [1.0]}, "3 offsets for 5 features"),
        ("TreeEnsembleRegressor", {**told, "nodes_falsenodeids": [0, 0, 0]}, "not one root each"),
        ("TreeEnsembleRegressor", {**told, "nodes_truenodeids": [8, 0, 0]}, "leads to no node"),
        ("TreeEnsembleRegressor", {**told, "nodes_featureids": [9, 0, 0]}, "feature 9 of 5"),
        ("TreeEnsembleRegressor", {**told, "aggregate_function": "MAX"}, "takes the MAX"),
        ("SVMRegressor", {"coefficients": [1.0] * 4, "rho": [0.0]}, "4 coefficients"),
    ]
    for op_type, attributes, words in wrong:
        with pytest.raises(UnsupportedError, match=words):
            bare(classical(op_type, **attributes), 2)
