"""An ONNX model of a task, its reference or what its kernels are timed beside, as a graph of the task's own
tensors: in0, in1, … and y."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import compose, helper, numpy_helper

from bench.measure.answers import oracle
from bench.run import confined
from engine.graph import importer
from engine.graph.graph import Graph
from kernels.errors import InputError, ModelError
from kernels.tasks import TaskParams

_PREFIX = "task/"  # of all that the model names, so that the task's own names are free


def answer(p: TaskParams, inputs: Sequence[np.ndarray], output: str) -> np.ndarray:
    """What the model answers in float64. Raises as `oracle.golden` does."""
    made = graph(p, p.task.file.name, inputs, output)
    found = oracle.run(made, {f"in{i}": inputs[i] for i in p.data_inputs}, [output])[output]
    if found.shape != p.output_shape:
        where = f"{p.task.file} answers the shape {found.shape}"
        raise InputError(f"{where}, and the task says {p.output_shape} ({p.words})")
    return found


def graph(p: TaskParams, name: str, inputs: Sequence[np.ndarray], output: str) -> Graph:
    """The model of a file of the task, by its name, for these sizes; inputs that are constant are
    initializers, and so are those of the model's that are called as sizes. Raises InputError where it does
    not take what the task has."""
    file = p.task.folder / name
    whole, digest = _model(dict(p.task.models)[name], file)
    proto = onnx.ModelProto()
    proto.CopyFrom(whole)
    of = proto.graph
    held = {it.name for it in of.initializer}
    sizes = [it for it in of.input if it.name not in held and it.name.removeprefix(_PREFIX) in p.sizes]
    for it in sizes:
        of.initializer.append(_size(it, p.sizes[it.name.removeprefix(_PREFIX)]))
        of.input.remove(it)
    given = [it.name for it in of.input if it.name not in held]
    named = [f"{_PREFIX}{one.name}" for one in p.task.spec.input]
    given = named if set(named) == set(given) else given
    if len(given) != len(named) or len(of.output) != 1:
        raise InputError(
            f"{file} has {len(given)} inputs and {len(of.output)} outputs, and the task says {len(named)} "
            "and 1"
        )
    own = [helper.make_node("Identity", [f"in{i}"], [name]) for i, name in enumerate(given)]
    last = helper.make_node("Identity", [of.output[0].name], [output])
    nodes = [*own, *of.node, last]
    kept = [it for it in of.input if it.name in held]
    del of.node[:], of.input[:], of.output[:]
    of.node.extend(nodes)
    shapes, types = p.input_shapes, p.input_dtypes
    of.input.extend([*kept, *(_info(f"in{i}", types[i], shapes[i]) for i in p.data_inputs)])
    of.output.append(_info(output, p.out_dtype, p.output_shape))
    told = hashlib.sha256(digest + repr(p).encode())
    for i in p.weight_inputs:
        of.initializer.append(numpy_helper.from_array(np.ascontiguousarray(inputs[i]), f"in{i}"))
        told.update(np.ascontiguousarray(inputs[i]).data)
    return importer.from_proto(proto, p.op, sha256=told.hexdigest())


def _info(name: str, dtype: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def _size(of: onnx.ValueInfoProto, size: int) -> onnx.TensorProto:
    """A size as the model takes it: a scalar, or an array of one element."""
    kind = of.type.tensor_type
    array = np.full((1,) * len(kind.shape.dim), size, helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return numpy_helper.from_array(array, of.name)


@functools.lru_cache(maxsize=4)
def _model(data: bytes, file: Path) -> tuple[onnx.ModelProto, bytes]:
    """The model with all its names apart, and its digest, read within limits. file: what it is called."""
    try:
        with confined.confined(confined.seconds()):
            proto = onnx.load_model_from_string(data)
            del proto.graph.value_info[:]
            return compose.add_prefix(proto, _PREFIX), hashlib.sha256(data).digest()
    except MemoryError:
        raise ModelError(confined.too_large(str(file))) from None
    except Exception as error:
        raise ModelError(f"{file} is no ONNX model: {str(error).splitlines()[0]}") from error
