"""A model's weights kept once: as arrays beside a proto that only declares the large ones.

Weights can be hundreds of megabytes, and each proto that holds them is a copy, its serialisation another and
what is parsed of that a third. A declared initializer says its name, type and shape, and that its values lie
elsewhere (ONNX's external data, in a place that no file has).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Elements up to which an initializer may steer shapes (Reshape, Pad, Slice) and stays in the proto.
SMALL = 1024
_PLACE = "beside the proto"
# What NumPy and ONNX Runtime both have under one name; other types keep their values in the proto.
_SHARED = frozenset(
    ["bool", "float16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


def declared(proto: onnx.ModelProto) -> list[str]:
    """Names of the initializers whose values are not in the proto, in its order."""
    return [tensor.name for tensor in proto.graph.initializer if is_declared(tensor)]


def is_declared(tensor: onnx.TensorProto) -> bool:
    """Whether the values of this initializer are kept beside its proto."""
    return tensor.data_location == TensorProto.EXTERNAL and any(
        entry.key == "location" and entry.value == _PLACE for entry in tensor.external_data
    )


def initializer(name: str, array: np.ndarray) -> onnx.TensorProto:
    """The initializer, declared alone where it is large: whoever takes it has to keep the array."""
    if not _is_large(array):
        return numpy_helper.from_array(array, name)
    tensor = TensorProto(
        name=name,
        data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
        dims=array.shape,
        data_location=TensorProto.EXTERNAL,
    )
    tensor.external_data.add(key="location", value=_PLACE)
    return tensor


def light(proto: onnx.ModelProto, arrays: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """A copy of the model that declares its large initializers; `arrays` are the values of all of them."""
    copy = _without(proto, "graph")
    copy.graph.MergeFrom(_without(proto.graph, "initializer"))
    copy.graph.initializer.extend(
        initializer(tensor.name, arrays[tensor.name]) if _is_large(arrays[tensor.name]) else tensor
        for tensor in proto.graph.initializer
    )
    return copy


def whole(proto: onnx.ModelProto, arrays: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """A copy of the model with every value in it."""
    copy = _without(proto, "graph")
    copy.graph.MergeFrom(_without(proto.graph, "initializer"))
    copy.graph.initializer.extend(
        numpy_helper.from_array(arrays[tensor.name], tensor.name) if is_declared(tensor) else tensor
        for tensor in proto.graph.initializer
    )
    return copy


def _is_large(array: np.ndarray) -> bool:
    return array.size > SMALL and array.dtype.name in _SHARED


def _without(message: Any, left_out: str) -> Any:
    """A copy of a message without one of its fields, which is never copied on the way."""
    copy = type(message)()
    for field, value in message.ListFields():
        if field.name == left_out:
            continue
        if hasattr(value, "MergeFrom"):
            getattr(copy, field.name).MergeFrom(value)
        else:
            setattr(copy, field.name, value)
    return copy
