"""Sparse weights made dense: kernels read all elements."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import numpy_helper

from kernels.errors import ModelError, UnsupportedError, one_line

MOST_ELEMENTS = 2**28


def dense(proto: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model with its sparse initializers and Constants as dense ones: a copy where there are any. Raises
    ModelError for a broken one, UnsupportedError for one of more elements than that."""
    constants = [
        (place, attribute.sparse_tensor)
        for place, node in enumerate(proto.graph.node)
        for attribute in node.attribute
        if node.op_type == "Constant" and attribute.name == "sparse_value"
    ]
    if not constants and not proto.graph.sparse_initializer:
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in proto.graph.sparse_initializer:
        copy.graph.initializer.append(_dense(tensor, tensor.values.name, where))
    del copy.graph.sparse_initializer[:]
    for place, tensor in constants:
        node = copy.graph.node[place]
        del node.attribute[:]
        node.attribute.append(
            onnx.helper.make_attribute("value", _dense(tensor, node.output[0] if node.output else "", where))
        )
    return copy


def _dense(tensor: onnx.SparseTensorProto, name: str, where: str) -> onnx.TensorProto:
    """ONNX: "indices … can have shape [NNZ], the linearized index … or [NNZ, rank]"."""
    shape = tuple(tensor.dims)
    if min(shape, default=1) < 0 or math.prod(shape) > MOST_ELEMENTS:
        raise UnsupportedError(
            f"{where} has a sparse tensor {name!r} of shape {shape}, and one of up to {MOST_ELEMENTS:,} "
            "elements is made dense"
        )
    try:
        values, indices = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
        if indices.size and indices.min() < 0:
            raise IndexError(f"an index of it is {indices.min()}")
        made = np.zeros(shape, values.dtype)
        if indices.ndim == 1:
            made.reshape(-1)[indices] = values
        else:
            made[tuple(indices.T)] = values
    except (ValueError, TypeError, IndexError) as error:
        raise ModelError(f"{where} has a broken sparse tensor {name!r}: {one_line(error)}") from None
    return numpy_helper.from_array(made, name)
