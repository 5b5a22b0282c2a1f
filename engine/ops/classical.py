"""Operators of the domain ai.onnx.ml that classical models are made of, as nodes of ONNX's own: linear
models, support vectors, scalers, encoders of whole numbers, and ensembles of trees.

A tree is walked for all rows at once: each row holds the number of a node of each tree, and one turn of
comparing and choosing takes all of them one level down. A leaf leads to itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Refused
from engine.ops._nodes import Nodes, written

DOMAIN = "ai.onnx.ml"

LEAF = "LEAF"
BRANCHES = {
    "BRANCH_LEQ": "LessOrEqual",
    "BRANCH_LT": "Less",
    "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal",
}
FLOAT, INT64 = 1, 7  # of ONNX's TensorProto
DEEPEST = 64  # levels of a tree
_LEAST = 1e-30  # what a row is divided by at the least


def _rows(node: Node, nodes: Nodes) -> str:
    """The input in float32. Raises Refused where it is no matrix."""
    x = node.inputs[0]
    if len(nodes.shape(x)) != 2:
        raise Refused(f"its input has the shape {nodes.shape(x)}, and (rows, features) is wanted")
    return _real(node, nodes)


def _real(node: Node, nodes: Nodes) -> str:
    """The input in float32, of any shape."""
    x = node.inputs[0]
    if nodes.dtype(x) == "float64":
        raise Refused("its input is of float64, and float32 and whole numbers are supported")
    return x if nodes.dtype(x) == "float32" else nodes("Cast", x, to=FLOAT)


def _numbers(node: Node, name: str, dtype: Any = np.float32) -> np.ndarray:
    """An attribute's numbers, none where it is absent."""
    values = node.attributes.get(name)
    return np.array([] if values is None else values, dtype).reshape(-1)


def _text(node: Node, name: str, default: str) -> str:
    return str(node.attributes.get(name, default))


def _wide(node: Node, values: np.ndarray, features: int, what: str) -> np.ndarray:
    if values.size not in (1, features):
        raise Refused(f"it has {values.size} {what} for {features} features; one or one each is wanted")
    return values


# ------------------------------------------------------------------------------------- scalers and encoders


@written("Scaler", domain=DOMAIN)
def _scaler(node: Node, nodes: Nodes) -> None:
    x = _rows(node, nodes)
    features = nodes.shape(x)[1]
    offset, scale = _numbers(node, "offset"), _numbers(node, "scale")
    if not offset.size or not scale.size:
        raise Refused("it has no offset or no scale")
    centred = nodes("Sub", x, nodes.constant(_wide(node, offset, features, "offsets")))
    nodes("Mul", centred, nodes.constant(_wide(node, scale, features, "scales")), output=node.outputs[0])


@written("Normalizer", domain=DOMAIN)
def _normalizer(node: Node, nodes: Nodes) -> None:
    x, norm = _rows(node, nodes), _text(node, "norm", "MAX")
    if norm not in ("L1", "L2"):
        raise Refused(f"its norm is {norm}, and L1 and L2 are supported")
    size = nodes(f"Reduce{norm}", x, nodes.constant([1], np.int64), keepdims=1)
    size = nodes("Max", size, nodes.constant(_LEAST, np.float32))
    nodes("Div", x, size, output=node.outputs[0])


@written("Binarizer", domain=DOMAIN)
def _binarizer(node: Node, nodes: Nodes) -> None:
    x = _real(node, nodes)
    above = nodes("Greater", x, nodes.constant(node.attributes.get("threshold", 0.0), np.float32))
    nodes("Cast", above, to=FLOAT, output=node.outputs[0])


@written("Imputer", domain=DOMAIN)
def _imputer(node: Node, nodes: Nodes) -> None:
    x = node.inputs[0]
    dtype = nodes.dtype(x)
    kind = {"float32": "float", "int64": "int64"}.get(dtype)
    if kind is None or len(nodes.shape(x)) != 2:
        raise Refused(f"its input is {dtype} of shape {nodes.shape(x)}; rows of float32 or int64 are wanted")
    values = _numbers(node, f"imputed_value_{kind}s", dtype)
    values = _wide(node, values, nodes.shape(x)[1], "values to put in")
    missing = node.attributes.get(f"replaced_value_{kind}", 0)
    missing_mask = (
        nodes("IsNaN", x) if np.isnan(missing) else nodes("Equal", x, nodes.constant(missing, dtype))
    )
    nodes("Where", missing_mask, nodes.constant(values), x, output=node.outputs[0])


@written("OneHotEncoder", domain=DOMAIN)
def _one_hot_encoder(node: Node, nodes: Nodes) -> None:
    x = node.inputs[0]
    kinds = _numbers(node, "cats_int64s", np.int64)
    if not kinds.size:
        raise Refused("its categories are texts, and whole numbers are supported")
    if nodes.dtype(x) != "int64":
        x = nodes("Cast", x, to=INT64)
    same = nodes("Equal", nodes.shaped(x, (*nodes.shape(x), 1)), nodes.constant(kinds))
    nodes("Cast", same, to=FLOAT, output=node.outputs[0])


@written("FeatureVectorizer", domain=DOMAIN)
def _feature_vectorizer(node: Node, nodes: Nodes) -> None:
    parts = []
    for name in node.inputs:
        shape = nodes.shape(name)
        if len(shape) not in (1, 2):
            raise Refused(f"its input {name!r} has the shape {shape}, and (rows, features) is wanted")
        part = name if nodes.dtype(name) == "float32" else nodes("Cast", name, to=FLOAT)
        parts.append(part if len(shape) == 2 else nodes.shaped(part, (shape[0], 1)))
    widths = [nodes.shape(part)[1] for part in parts]
    if (declared := list(_numbers(node, "inputdimensions", np.int64))) and declared != widths:
        raise Refused(f"its inputs are {widths} features wide, and it says {declared}")
    nodes("Concat", *parts, axis=1, output=node.outputs[0])


# ------------------------------------------------------------------------------------- scores and classes


def _transformed(node: Node, nodes: Nodes, scores: str, output: str) -> str:
    """What becomes of scores by the node's post_transform."""
    kind = _text(node, "post_transform", "NONE")
    if kind == "NONE":
        return nodes("Identity", scores, output=output)
    if kind == "SOFTMAX":
        return nodes("Softmax", scores, axis=1, output=output)
    if kind == "LOGISTIC":
        return nodes("Sigmoid", scores, output=output)
    raise Refused(f"its post_transform is {kind}, and NONE, SOFTMAX and LOGISTIC are supported")


def _classified(node: Node, nodes: Nodes, scores: str, classes: int) -> None:
    """The label of each row's highest score, and the scores."""
    label, *rest = (*node.outputs, "")
    score = next(iter(rest), "")
    if label and label in nodes.around.consumed:
        labels = _labels(node)
        if labels.dtype != np.int64:
            raise Refused(f"its labels are texts, and its output {label!r} is read; only its scores may be")
        if len(labels) != classes:
            raise Refused(f"it has {len(labels)} labels for {classes} scores")
        place = nodes("ArgMax", scores, axis=1, keepdims=0)
        nodes("Gather", nodes.constant(labels), place, axis=0, output=label)
    _transformed(node, nodes, scores, score)


def _labels(node: Node) -> np.ndarray:
    """Numbers or texts. Raises Refused where there are none."""
    for name in ("classlabels_int64s", "classlabels_ints", "classlabels_strings"):
        if labels := list(node.attributes.get(name) or ()):
            return np.array(labels) if name.endswith("strings") else np.array(labels, np.int64)
    raise Refused("it has no labels")


def _products(node: Node, nodes: Nodes, x: str) -> str:
    """A linear model's scores: x · coefficientsᵀ + intercepts."""
    weights, shifts = _numbers(node, "coefficients"), _numbers(node, "intercepts")
    features = nodes.shape(x)[1]
    if not weights.size or weights.size % features:
        raise Refused(f"it has {weights.size} coefficients for {features} features")
    weights = weights.reshape(-1, features)
    if shifts.size not in (0, len(weights)):
        raise Refused(f"it has {shifts.size} intercepts for {len(weights)} rows of coefficients")
    inputs = [x, nodes.constant(weights), *([nodes.constant(shifts)] if shifts.size else ())]
    return nodes("Gemm", *inputs, transB=1)


def _both(nodes: Nodes, scores: str) -> str:
    """Of two classes with one score: that of the first is its negative."""
    return nodes("Concat", nodes("Neg", scores), scores, axis=1)


@written("LinearRegressor", domain=DOMAIN)
def _linear_regressor(node: Node, nodes: Nodes) -> None:
    scores = _products(node, nodes, _rows(node, nodes))
    targets = int(node.attributes.get("targets", 1))
    if nodes.shape(scores)[1] != targets:
        raise Refused(f"it has {targets} targets and coefficients for {nodes.shape(scores)[1]}")
    _transformed(node, nodes, scores, node.outputs[0])


@written("LinearClassifier", domain=DOMAIN)
def _linear_classifier(node: Node, nodes: Nodes) -> None:
    scores = _products(node, nodes, _rows(node, nodes))
    classes = len(_labels(node))
    if nodes.shape(scores)[1] == 1 and classes == 2:
        if _text(node, "post_transform", "NONE") != "LOGISTIC":
            # onnx.reference answers (−s, s) and ONNX Runtime (1 − s, s); ONNX's text says nothing.
            raise Refused("it has one score for two classes, which is supported with LOGISTIC alone")
        scores = _both(nodes, scores)
    if nodes.shape(scores)[1] != classes:
        raise Refused(f"it has {classes} labels and scores for {nodes.shape(scores)[1]}")
    _classified(node, nodes, scores, classes)


@written("SVMRegressor", domain=DOMAIN)
def _vectors_regressor(node: Node, nodes: Nodes) -> None:
    """Sums of kernels with the support vectors; of a linear one without any a product."""
    x = _rows(node, nodes)
    features, count = nodes.shape(x)[1], int(node.attributes.get("n_supports", 0))
    weights, rho = _numbers(node, "coefficients"), _numbers(node, "rho")
    if weights.size != (count or features) or rho.size != 1:
        raise Refused(f"it has {weights.size} coefficients for {count} vectors, and {rho.size} shifts")
    alike = _kernels(node, nodes, x, count, features) if count else x
    y = nodes("Gemm", alike, nodes.constant(weights.reshape(-1, 1)), nodes.constant(rho))
    if int(node.attributes.get("one_class", 0)):
        above = nodes("Greater", y, nodes.constant(0.0, np.float32))
        y = nodes("Where", above, *(nodes.constant(sign, np.float32) for sign in (1.0, -1.0)))
    _transformed(node, nodes, y, node.outputs[0])


def _kernels(node: Node, nodes: Nodes, x: str, count: int, features: int) -> str:
    """(rows, vectors)."""
    vectors = _numbers(node, "support_vectors")
    if vectors.size != count * features:
        raise Refused(f"its {count} vectors have {vectors.size} elements for {features} features")
    kind, parameters = _text(node, "kernel_type", "LINEAR"), _numbers(node, "kernel_params").tolist()
    gamma, shift, degree = (nodes.constant(value, np.float32) for value in (*parameters, 0.0, 0.0, 0.0)[:3])
    if kind == "RBF":
        off = nodes(
            "Sub", nodes.shaped(x, (-1, 1, features)), nodes.constant(vectors.reshape(count, features))
        )
        square = nodes("ReduceSumSquare", off, nodes.constant([2], np.int64), keepdims=0)
        return nodes("Exp", nodes("Neg", nodes("Mul", gamma, square)))
    product = nodes("Gemm", x, nodes.constant(vectors.reshape(count, features)), transB=1)
    if kind == "LINEAR":
        return product
    moved = nodes("Add", nodes("Mul", gamma, product), shift)
    if kind == "POLY":
        return nodes("Pow", moved, degree)
    if kind == "SIGMOID":
        return nodes("Tanh", moved)
    raise Refused(f"its kernel {kind} is not known")


# ------------------------------------------------------------------------------------------------------ trees


def _walked(node: Node, nodes: Nodes, kind: str, targets: int) -> str:
    """What the leaves that each row comes to give together, (rows, targets)."""
    x = _rows(node, nodes)
    if nodes.shape(x)[1] == 0:
        raise Refused("its input has no features")
    modes = [str(mode) for mode in node.attributes.get("nodes_modes") or ()]
    branches = {mode for mode in modes if mode != LEAF}
    if len(branches) > 1 or not branches <= BRANCHES.keys():
        raise Refused(f"its nodes compare by {', '.join(sorted(branches))}; one kind alone is supported")
    trees, ids = _numbers(node, "nodes_treeids", np.int64), _numbers(node, "nodes_nodeids", np.int64)
    place = {key: i for i, key in enumerate(zip(trees.tolist(), ids.tolist(), strict=True))}
    if not place or len(place) != len(modes):
        raise Refused("its nodes are not numbered one by one")
    leaf = np.array([mode == LEAF for mode in modes])
    numbers = np.arange(len(modes))
    ways = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        way = [
            place.get(key)
            for key in zip(trees.tolist(), _numbers(node, name, np.int64).tolist(), strict=True)
        ]
        if any(to is None for to, ends in zip(way, leaf, strict=True) if not ends):
            raise Refused("a branch of its leads to no node")
        ways.append(np.where(leaf, numbers, [0 if to is None else to for to in way]).astype(np.int64))
    leading = np.bincount(np.concatenate([way[~leaf] for way in ways]), minlength=len(modes))
    roots = numbers[leading == 0]
    if leading.max() > 1 or sorted(trees[roots].tolist()) != sorted({*trees.tolist()}):
        raise Refused("its trees have not one root each, and one way to each other node")
    weights = np.zeros((len(modes), targets), np.float64)
    for tree, number, target, weight in zip(
        *(_numbers(node, f"{kind}_{name}", np.int64).tolist() for name in ("treeids", "nodeids", "ids")),
        _numbers(node, f"{kind}_weights").tolist(),
        strict=True,
    ):
        if (tree, number) not in place or not 0 <= target < targets:
            raise Refused("a weight of its belongs to no leaf or target")
        weights[place[tree, number], target] += weight
    features = np.where(leaf, 0, _numbers(node, "nodes_featureids", np.int64)).astype(np.int64)
    if features.min() < 0 or features.max() >= nodes.shape(x)[1]:
        raise Refused(f"it compares feature {features.max()} of {nodes.shape(x)[1]}")
    bounds = _numbers(node, "nodes_values")
    at = nodes("Expand", nodes.constant(roots.astype(np.int64)[None]), nodes.constant([nodes.shape(x)[0], 1]))
    tables = [nodes.constant(table) for table in (features, bounds, *ways)]
    missing = _numbers(node, "nodes_missing_value_tracks_true").astype(bool)
    of_missing = nodes.constant(missing) if missing.any() else ""
    compare = BRANCHES[next(iter(branches))] if branches else ""
    for _ in range(_depth(roots, leaf, ways)):
        feature, bound, yes, no = (nodes("Gather", table, at, axis=0) for table in tables)
        value = nodes("GatherElements", x, feature, axis=1)
        goes_true = nodes(compare, value, bound)
        if of_missing:
            unknown = nodes("And", nodes("IsNaN", value), nodes("Gather", of_missing, at, axis=0))
            goes_true = nodes("Or", goes_true, unknown)
        at = nodes("Where", goes_true, yes, no)
    leaf_values = nodes(
        "Gather", nodes.constant(weights.astype(np.float32)), at, axis=0
    )  # (rows, trees, targets)
    return nodes("ReduceSum", leaf_values, nodes.constant([1], np.int64), keepdims=0)


def _depth(roots: np.ndarray, leaf: np.ndarray, ways: list[np.ndarray]) -> int:
    """Levels below the roots. Raises Refused where they have no end."""
    level, depth, seen = roots, 0, len(roots)
    while (inner := level[~leaf[level]]).size:
        depth += 1
        seen += 2 * len(inner)
        if depth > DEEPEST:
            raise Refused(f"its trees are more than {DEEPEST} levels deep")
        level = np.unique(np.concatenate([way[inner] for way in ways]))
    if seen != len(leaf):
        raise Refused("its trees have not one root each, and one way to each other node")
    return depth


def _based(node: Node, nodes: Nodes, scores: str) -> str:
    base = _numbers(node, "base_values")
    if not base.size:
        return scores
    base = _wide(node, base, nodes.shape(scores)[1], "base values")
    return nodes("Add", scores, nodes.constant(base))


@written("TreeEnsembleRegressor", domain=DOMAIN)
def _tree_regressor(node: Node, nodes: Nodes) -> None:
    if (how := _text(node, "aggregate_function", "SUM")) != "SUM":
        raise Refused(f"it takes the {how} of its trees, and the sum is supported")
    targets = int(node.attributes.get("n_targets", 1))
    _transformed(node, nodes, _based(node, nodes, _walked(node, nodes, "target", targets)), node.outputs[0])


@written("TreeEnsembleClassifier", domain=DOMAIN)
def _tree_classifier(node: Node, nodes: Nodes) -> None:
    classes = len(_labels(node))
    scored = np.unique(_numbers(node, "class_ids", np.int64))
    if classes == 2 and len(scored) == 1:
        if _text(node, "post_transform", "NONE") != "LOGISTIC":
            raise Refused("it scores one of two classes, which is supported with LOGISTIC alone")
        total = _walked(node, nodes, "class", int(scored[0]) + 1)
        if scored[0]:
            total = nodes("Gather", total, nodes.constant([int(scored[0])], np.int64), axis=1)
        _classified(node, nodes, _both(nodes, _based(node, nodes, total)), classes)
        return
    if classes < 3:
        raise Refused("it has fewer than three classes, and of two that are scored is not said which is told")
    _classified(node, nodes, _based(node, nodes, _walked(node, nodes, "class", classes)), classes)
