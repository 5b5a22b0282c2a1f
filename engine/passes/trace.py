"""From a Graph to kernels: batch fixed, constants folded, every node lowered or refused, the dead dropped."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from engine.graph.graph import Graph, Node, TensorInfo
from engine.graph.plan import MOST_ELEMENTS, TensorSpec
from engine.graph.shapes import infer_node
from engine.ops import DEFAULT_DOMAINS, Kernel, Lowered, Scope, View, full_name, hints, lower, operators
from engine.ops._base import Dequantized
from engine.passes.control import controlled
from engine.passes.written_out import defined, own
from kernels.errors import InputError, UnsupportedError, one_line

MAX_BATCH = 2**24
# Operators whose functions take shapes that ONNX's text of the operator forbids.
STRICT = ("Clip", "PRelu")


@dataclass(frozen=True)
class Program:
    """What runs, in order, before rungs and memory: kernels and views over named tensors.

    specs: every tensor, constants included. constants: values that do not depend on the inputs; a step reads
    them in the type of their spec (folding keeps some in float64 until then). dequantized: of some of these,
    what they were made of. Inputs and outputs are the graph's, by name.
    """

    batch: int
    items: tuple[Kernel | View, ...]
    specs: Mapping[str, TensorSpec]
    constants: Mapping[str, np.ndarray]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dequantized: Mapping[str, Dequantized] = field(default_factory=dict)


def free_name(tensor: str, part: str, taken: Mapping[str, TensorSpec]) -> str:
    """A name for this part of a tensor that no tensor has."""
    while f"{tensor}{part}" in taken:
        tensor += "'"
    return f"{tensor}{part}"


def check_batch(batch: int) -> int:
    """`batch` as an int from 1 to MAX_BATCH. Raises InputError."""
    try:
        number = operator.index(batch)
    except TypeError:
        number = 0
    if not 1 <= number <= MAX_BATCH or isinstance(batch, bool):
        raise InputError(
            f"batch size {batch!r} is out of range: it must be a whole number from 1 to {MAX_BATCH:,}"
        )
    return number


def input_specs(graph: Graph, batch: int) -> dict[str, TensorSpec]:
    """Shape and dtype of the graph's inputs with the batch on their first axis.

    Raises UnsupportedError where the model is made for another batch size or another axis is dynamic.
    """
    _check_axes(graph)
    fixed = graph.fixed_batch
    if fixed is not None and fixed != batch:
        raise UnsupportedError(
            f"model {graph.name!r} is made for batch size {fixed} alone ({_shaped(graph)}), and batch size "
            f"{batch} was asked for"
        )
    specs: dict[str, TensorSpec] = {}
    for info in graph.inputs:
        shape = [size if isinstance(size, int) else batch for size in info.shape]
        if math.prod(shape) > MOST_ELEMENTS:
            raise UnsupportedError(
                f"model {graph.name!r} has an input {info.name!r} of shape {_words(info)}: more elements "
                "than any memory holds"
            )
        if math.prod(shape) == 0:
            raise UnsupportedError(
                f"model {graph.name!r} has an input {info.name!r} of shape {_words(info)}: empty"
            )
        specs[info.name] = TensorSpec(tuple(shape), info.dtype)
    return specs


def _check_axes(graph: Graph) -> None:
    """Raises UnsupportedError where an axis beside the batch has no size."""
    for name, axis in graph.open_axes:
        info = next(info for info in graph.inputs if info.name == name)
        called = info.shape[axis] or f"{name}.{axis}"
        raise UnsupportedError(
            f"model {graph.name!r} has an input {name!r} of shape {_words(info)}, and beside its batch no "
            f"axis may be open: give it a size, as with --dim {called}=128"
        )


def _shaped(graph: Graph) -> str:
    info = next(info for info in graph.inputs if info.shape)
    return f"input {info.name!r} has the shape {_words(info)}"


def _words(info: TensorInfo) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in info.shape) + ")"


def start(graph: Graph, batch: int) -> Scope:
    """What is known before the first node: the inputs at this batch size and the initializers."""
    specs = input_specs(graph, check_batch(batch))
    constants = dict(graph.initializers)
    specs.update((name, TensorSpec(array.shape, array.dtype.name)) for name, array in constants.items())
    consumed = graph.readers.keys() | {info.name for info in graph.outputs}
    return Scope(graph.opset, specs, constants, frozenset(consumed))


def advance(node: Node, scope: Scope, graph: Graph) -> Lowered | None:
    """Fold or lower one node and write what it gives into `scope`; None where it was folded.

    Raises UnsupportedError."""
    folded = fold(node, scope, graph)
    if folded is not None:
        _note_dequantized(node, scope, graph)
        scope.constants.update(folded)
        scope.specs.update(
            (name, TensorSpec(array.shape, array.dtype.name)) for name, array in folded.items()
        )
        return None
    lowered = _written(node, scope, graph) or _lowered(node, scope, graph)
    scope.specs.update(lowered.specs)
    scope.constants.update(lowered.constants)
    return lowered


def _written(node: Node, scope: Scope, graph: Graph) -> Lowered | None:
    """What stands for other nodes whatever operators the engine has."""
    return controlled(node, scope, graph, advance) or own(node, scope, graph, advance)


def _lowered(node: Node, scope: Scope, graph: Graph) -> Lowered:
    """By the engine's kernels, else as the function that ONNX defines the operator as."""
    try:
        return lower(node, scope)
    except UnsupportedError as error:
        if node.op_type in STRICT and node.domain in DEFAULT_DOMAINS:
            raise
        try:
            written = defined(node, scope, graph, advance)
        except UnsupportedError as inner:
            known = full_name(node.domain, node.op_type) in operators() or node.op_type in hints()
            raise (error if known else inner) from None
        if written is None:
            raise
        return written


def _note_dequantized(node: Node, scope: Scope, graph: Graph) -> None:
    """Keep what a folded DequantizeLinear read: whole numbers may be multiplied as they are."""
    if node.op_type != "DequantizeLinear" or node.attributes.get("block_size", 0):
        return
    value, scale, *zero = (scope.constants.get(name) for name in node.inputs)
    if value is not None and scale is not None and scale.dtype == np.float32:
        axis = int(node.attributes.get("axis", 1))
        name = node.name if graph.by_name.get(node.name) is node else ""
        scope.dequantized[node.outputs[0]] = Dequantized(
            name, node.inputs[0], value, scale, zero[0] if zero else None, axis
        )


@dataclass(frozen=True)
class Walk:
    """What became of each node: those that were not folded, in order, with what they were lowered to (None:
    refused), what is known behind the last, and the first refusal, where there is one."""

    scope: Scope
    nodes: tuple[tuple[Node, Lowered | None], ...]
    refused: UnsupportedError | None


def walk(graph: Graph, batch: int) -> Walk:
    """Every node of the graph folded, lowered or refused, once for whoever asks. The shapes behind one that
    the engine refuses are asked of ONNX's own inference. Raises InputError or UnsupportedError for the batch
    size alone."""
    number = check_batch(batch)
    return graph.remembered("walk", number, lambda: _walk(graph, number))


def _walk(graph: Graph, batch: int) -> Walk:
    scope = start(graph, batch)
    walked: list[tuple[Node, Lowered | None]] = []
    refused = UnsupportedError(graph.refused) if graph.refused else None
    for node in graph.nodes:
        try:
            lowered = advance(node, scope, graph)
        except UnsupportedError as error:
            why = error.with_traceback(None)
        except Exception:
            # Of a file that ONNX's own checks find fault with, a node may be anything.
            if not graph.refused:
                raise
            why = None
        else:
            if lowered is not None:
                walked.append((node, lowered))
            continue
        with contextlib.suppress(*((Exception,) if graph.refused else ())):
            scope.specs.update(infer_node(node, scope.specs, scope.constants, graph))
        if node.name in graph.live:  # what no output hangs on is not run
            refused = refused or why
            walked.append((node, None))
    return Walk(scope, tuple(walked), refused)


def trace(graph: Graph, batch: int) -> Program:
    """Every node of the graph folded or lowered, in order, nothing dropped or fused.

    Raises InputError for the batch size, UnsupportedError for the first node that is refused.
    """
    walked = walk(graph, batch)
    if walked.refused is not None:
        raise walked.refused.with_traceback(None)
    scope = walked.scope
    items = [
        _signed(item, node, scope)
        for node, lowered in walked.nodes
        for item in (lowered.items if lowered is not None else ())
    ]
    return Program(
        batch=batch,
        items=tuple(items),
        specs=scope.specs,
        constants=scope.constants,
        inputs=tuple(info.name for info in graph.inputs),
        outputs=tuple(info.name for info in graph.outputs),
        dequantized=scope.dequantized,
    )


def _signed(item: Kernel | View, node: Node, scope: Scope) -> Kernel | View:
    if isinstance(item, View):
        return replace(item, nodes=(node.name,))
    return replace(item, nodes=(node.name,), parameters=scope.elements(item.inputs))


def alive(program: Program) -> Program:
    """The program without what no output depends on."""
    needed = set(program.outputs)
    live_items: list[Kernel | View] = []
    for item in reversed(program.items):
        if item.output in needed:
            needed.update((item.source,) if isinstance(item, View) else item.inputs)
            live_items.append(item)
    return replace(program, items=tuple(reversed(live_items)))


def known(graph: Graph, batch: int) -> Scope:
    """Every tensor of the graph whose shape or value can be known at this batch size: not to be changed.

    Raises InputError or UnsupportedError for the batch size alone.
    """
    return walk(graph, batch).scope


# ----------------------------------------------------------------------------------------------------- fold

# Constant folding: what is known without running, computed once by ONNX's reference evaluator.


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
