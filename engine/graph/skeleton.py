"""ONNX's own checks and inference of a model whose weights may be hundreds of megabytes: they are given a
skeleton of it, in which large initializers are inputs of the same type.
"""

from __future__ import annotations

import numpy as np
import onnx

from engine.graph.inference import infer_shapes
from engine.graph.initializers import SMALL
from kernels.errors import UnsupportedError, one_line


def skeleton(proto: onnx.ModelProto, small: int = SMALL) -> onnx.ModelProto:
    """A copy of the model without the values of initializers above `small` elements: those become inputs.

    Declared shapes of inner tensors are left out, so that inference says what the nodes make.
    """
    light = onnx.ModelProto(ir_version=proto.ir_version)
    light.opset_import.extend(proto.opset_import)
    light.functions.extend(proto.functions)
    light.graph.name = proto.graph.name or "graph"
    light.graph.node.extend(proto.graph.node)
    light.graph.input.extend(proto.graph.input)
    light.graph.output.extend(proto.graph.output)
    declared = {value.name for value in proto.graph.input}
    for tensor in proto.graph.initializer:
        if int(np.prod(tensor.dims, dtype=np.int64)) <= small:
            light.graph.initializer.append(tensor)
        elif tensor.name not in declared:
            light.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            )
    return light


def inferred(proto: onnx.ModelProto, name: str) -> onnx.GraphProto:
    """The graph of the model's skeleton with the types and shapes that ONNX can tell.

    Raises UnsupportedError where its inference gives up altogether."""
    try:
        return infer_shapes(skeleton(proto)).graph
    except MemoryError:
        raise
    except Exception as error:
        raise UnsupportedError(f"ONNX cannot tell the shapes in model {name!r}: {one_line(error)}") from None


def checked(proto: onnx.ModelProto, opset: int, where: str) -> tuple[dict[str, onnx.ValueInfoProto], str]:
    """Run ONNX's checker and shape inference: inferred infos by tensor name, and what they find fault with,
    in a sentence ("": nothing)."""
    faults = [
        f"{where}, node {node.name!r}: opset {opset} of ONNX has no operator {node.op_type!r}"
        for node in proto.graph.node
        if node.domain in ("", "ai.onnx") and not onnx.defs.has(node.op_type, opset)
    ]
    light = skeleton(proto)
    untyped = {value.name for value in light.graph.output if not _has_type(value)}
    for output in light.graph.output:
        # The checker wants one declared; what it is the nodes say.
        if output.type.WhichOneof("value") in ("tensor_type", None):
            output.type.tensor_type.shape.SetInParent()
        if output.name in untyped:
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    try:
        onnx.checker.check_model(light)
    except MemoryError:
        raise
    except Exception as error:
        faults.append(f"{where} is not a valid ONNX model: {one_line(error)}")
    for output in light.graph.output:
        # A declared shape that differs from the inferred one is no fault of the nodes.
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
        if output.name in untyped:
            output.ClearField("type")
    standard = all(node.domain in ("", "ai.onnx") for node in proto.graph.node)
    try:
        inferred_model = infer_shapes(light, check_type=True, strict_mode=standard)
    except MemoryError:
        raise
    except Exception as error:
        text = str(error)
        what = "types" if any(mark in text for mark in _OF_TYPES) else "shapes"
        faults.append(f"{where} has {what} that do not fit together: {one_line(error)}")
        inferred_model = _lenient(light)
    known = {value.name: value for value in (*inferred_model.graph.value_info, *inferred_model.graph.output)}
    return known, next(iter(faults), "")


# How ONNX's inference says that element types do not fit, whatever it calls the error.
_OF_TYPES = ("TypeInferenceError", "inconsistent type", "unsupported type", "elem type")


def _lenient(light: onnx.ModelProto) -> onnx.ModelProto:
    """What inference tells where it is not to mind what does not fit."""
    try:
        return infer_shapes(light)
    except MemoryError:
        raise
    except Exception:
        return light


def _has_type(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or value.type.tensor_type.elem_type != 0)
