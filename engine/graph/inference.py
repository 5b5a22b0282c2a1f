"""ONNX's inference of shapes, which goes on element by element where it follows values."""

from __future__ import annotations

from typing import Any

import onnx

# What has one axis may be a shape; ONNX lays out its elements, also those that it knows nothing of. Longer
# than that is no shape, and could be as long as a file says.
MOST_FOLLOWED = 1 << 16


def infer_shapes(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """As onnx.shape_inference's, values followed, unless the model declares a tensor of one axis that is no
    shape."""
    graph = model.graph
    followed = not any(
        len(value.type.tensor_type.shape.dim) == 1
        and value.type.tensor_type.shape.dim[0].dim_value > MOST_FOLLOWED
        for value in (*graph.input, *graph.output, *graph.value_info)
    )
    return onnx.shape_inference.infer_shapes(model, data_prop=followed, **options)
