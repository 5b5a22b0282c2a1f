"""Constant folding: what is known without running, computed once by ONNX's reference evaluator."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from engine.graph.graph import Graph, Node
from engine.graph.shapes import infer_node
from engine.ops import DEFAULT_DOMAINS, Scope
from kernels.errors import UnsupportedError, one_line

# Of these the reference evaluator is known to answer wrongly at some opsets, or by chance; where their inputs
# are constant they run as steps of the plan, if the engine has them.
FAULTY = ("AveragePool", "BatchNormalization", "LRN", "LogSoftmax", "MaxPool", "Softmax")
RANDOM = (
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
)
# Which the evaluator has from this opset on alone, and which says the same before.
LATER = {"DequantizeLinear": 19}
# Elements of a folded output: 1 GiB of float32, some times the largest weight of the nets we know.
MOST_FOLDED = 2**28
NOT_FOLDED = frozenset({*FAULTY, *RANDOM, "Dropout"})


def fold(node: Node, scope: Scope, graph: Graph) -> dict[str, np.ndarray] | None:
    """The outputs of a node that do not depend on the values of the graph's inputs, by name, else None.

    That is a node with constant inputs alone; Shape, Size and EyeLike of any tensor, which are known because
    the batch is fixed; and a constant cast to the type of any. Raises UnsupportedError where the node has
    constant inputs that it cannot take.
    """
    if node.domain not in DEFAULT_DOMAINS or node.op_type in NOT_FOLDED:
        return None
    if node.op_type == "Shape":
        shape = scope.shape(node.inputs[0])
        first, last = int(node.attributes.get("start", 0)), node.attributes.get("end")
        return {node.outputs[0]: np.array(shape[first : None if last is None else int(last)], np.int64)}
    if node.op_type == "Size":
        return {
            node.outputs[0]: np.array(int(np.prod(scope.shape(node.inputs[0]), dtype=np.int64)), np.int64)
        }
    if node.op_type == "EyeLike":  # of which only the shape and the type count
        spec = scope.spec(node.inputs[0])
        _check_size(node, scope, graph)
        return evaluate(node, {node.inputs[0]: np.zeros(spec.shape, spec.dtype)}, graph)
    if node.op_type == "CastLike" and node.inputs[0] in scope.constants:  # of the other only its type counts
        to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(scope.spec(node.inputs[1]).dtype))
        node = replace(node, op_type="Cast", inputs=node.inputs[:1], attributes={**node.attributes, "to": to})
    inputs = {name: scope.constants.get(name) for name in node.inputs if name}
    if any(array is None for array in inputs.values()):
        return None
    if any(isinstance(value, onnx.GraphProto) for value in node.attributes.values()):
        return None
    _check_size(node, scope, graph)
    return evaluate(node, inputs, graph)


def _check_size(node: Node, scope: Scope, graph: Graph) -> None:
    """Refuse what would fill the memory, though small constants or shapes alone say how large it is."""
    for name, spec in infer_node(node, scope.specs, scope.constants, graph).items():
        if math.prod(spec.shape) > MOST_FOLDED:
            raise UnsupportedError(
                f"node {node.name!r} ({node.op_type}): its output {name!r} of shape {spec.shape} does not "
                f"depend on the model's inputs and has more than the {MOST_FOLDED:,} elements that are "
                f"computed beforehand"
            )


def evaluate(node: Node, inputs: dict[str, np.ndarray | None], graph: Graph) -> dict[str, np.ndarray]:
    """One node computed by `onnx.reference`. Raises UnsupportedError where that fails."""
    from onnx.reference import ReferenceEvaluator  # long to load, and most nets have nothing to fold

    outputs = [name for name in node.outputs if name]
    try:
        empty = onnx.TypeProto()
        model = onnx.helper.make_model(
            onnx.helper.make_graph(
                [node.proto()],
                "fold",
                [onnx.helper.make_value_info(name, empty) for name in inputs],
                [onnx.helper.make_value_info(name, empty) for name in outputs],
            ),
            opset_imports=_opsets(node, graph),
        )
        with np.errstate(all="ignore"):
            values = [np.asarray(v, order="C") for v in ReferenceEvaluator(model).run(None, inputs)]
    except MemoryError:
        raise
    except Exception as error:
        raise UnsupportedError(
            f"node {node.name!r} ({node.op_type}): its inputs are constant and it could not be "
            f"computed from them: {one_line(error)}"
        ) from error
    return dict(zip(outputs, values, strict=True))


def _opsets(node: Node, graph: Graph) -> list[onnx.OperatorSetIdProto]:
    least = LATER.get(node.op_type, 0)
    return [
        onnx.helper.make_opsetid(entry.domain, max(entry.version, least * (entry.domain in DEFAULT_DOMAINS)))
        for entry in graph.proto.opset_import
    ]
