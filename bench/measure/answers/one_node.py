"""A params record as an ONNX model of its own: what the oracle and the reference run for one rung.

What its nodes are stands in `nodes`, what its inputs are drawn from in `inputs`. The operator is one node;
an activation, and what a matrix product adds (alpha, beta, a bias), are nodes behind it, as exporters write
them. Inputs are in0, in1, … in the params' order, weights as initializers; output y.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from bench.measure.answers import inputs as of_operators
from bench.measure.answers import of_tasks, oracle, task_models
from bench.measure.answers.nodes import activate, nodes
from engine.graph import importer
from engine.graph.graph import Graph
from kernels.ops import Params
from kernels.tasks import TaskParams, reference

OPSET = 20
IR_VERSION = 9
OUTPUT = "y"


def draw(p: Params, random: np.random.Generator, half: str = "") -> tuple[np.ndarray, ...]:
    """Inputs of one check, including weights: normal values (weights scaled so that outputs are of order 1),
    not near 0 where they divide, whole numbers for whole-number types; for an exponential some are so large
    that it overflows in a kernel that does not take care of it. half: see of_tasks.drawn."""
    if isinstance(p, TaskParams):
        return of_tasks.drawn(p, random, half)
    arrays = []
    for place, (shape, name) in enumerate(zip(p.input_shapes, p.input_dtypes, strict=True)):
        dtype = np.dtype(name)
        unsigned = "u" in (dtype.kind, np.dtype(p.out_dtype).kind)
        values = of_operators.drawn(p, place, random.standard_normal(shape, np.float32), random)
        if dtype.kind in "iu" and values.dtype.kind == "f":
            values = np.abs(8 * values) if unsigned else 8 * values
        arrays.append(values > 0 if dtype.kind == "b" else values.astype(dtype))
    return tuple(arrays)


def is_graph(p: Params) -> bool:
    """Whether there is a model of it, which a backend runs; of a task whose reference is a function, and
    which names no model as yardstick, there is none."""
    return not isinstance(p, TaskParams) or bool(p.task.model)


def graph(p: Params, inputs: Sequence[np.ndarray]) -> Graph:
    """The model; `inputs` in the params' order, of which the weights become initializers."""
    if isinstance(p, TaskParams):
        return task_models.graph(p, p.task.model, inputs, OUTPUT)
    names, made, extra = _nodes(p)
    weights = [i for i in p.weight_inputs if i < len(inputs)]
    held = [onnx.numpy_helper.from_array(np.ascontiguousarray(inputs[i]), names[i]) for i in weights]
    held += [onnx.numpy_helper.from_array(array, name) for name, array in extra.items()]
    operator = helper.make_graph(
        made,
        p.op,
        [
            helper.make_tensor_value_info(names[i], _element(p.input_dtypes[i]), inputs[i].shape)
            for i in p.data_inputs
        ],
        [helper.make_tensor_value_info(OUTPUT, _element(p.out_dtype), p.output_shape)],
        held,
    )
    proto = helper.make_model(operator, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    digest = hashlib.sha256(repr(p).encode())
    for i in weights:
        digest.update(np.ascontiguousarray(inputs[i]).data)
    return importer.from_proto(proto, p.op, sha256=digest.hexdigest())


def _nodes(p: Params) -> tuple[list[str], list[onnx.NodeProto], dict[str, np.ndarray]]:
    """The inputs' names, the nodes, and the values of further inputs of these."""
    names = [f"in{i}" for i in range(len(p.input_shapes))]
    made, extra = nodes(p, names, OUTPUT)
    activate(made, getattr(p, "activation", None), "linear", OUTPUT)
    return names, made, extra


def answer(p: Params, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """What the oracle answers to `inputs`, weights among them; of a task what its reference does. Raises as
    `oracle.golden` does."""
    if isinstance(p, TaskParams):
        of_model = reference.is_model(p.task)
        found = task_models.answer(p, inputs, OUTPUT) if of_model else reference.answer(p, inputs)
        return reference.held(p, found)
    evaluation, extra = _evaluation(p)
    weights = {f"in{i}": inputs[i] for i in p.weight_inputs if i < len(inputs)}
    return evaluation({f"in{i}": inputs[i] for i in p.data_inputs}, weights | extra)[OUTPUT]


@functools.lru_cache(maxsize=128)
def _evaluation(p: Params) -> tuple[oracle.Evaluation, dict[str, np.ndarray]]:
    """Made once for all inputs that a shape is tried with: of a small one that takes longest."""
    names, made, extra = _nodes(p)
    opsets = [helper.make_opsetid("", OPSET)]
    return oracle.Evaluation(p.op, made, opsets, [*names, *extra], [OUTPUT]), extra


def _element(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
