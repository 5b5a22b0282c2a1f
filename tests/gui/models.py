"""Small model files for the window's tests."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def small_model(path: Path, op: str = "Relu", batch: object = "N", domain: str = "") -> Path:
    """conv (3 → 4 channels, 8×8) → op → mean → flatten: takes images, scores 4 classes. domain: the op's."""
    weight = np.linspace(-1, 1, 4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3)
    nodes = [
        helper.make_node("Conv", ["image", "weight"], ["c"], "first", pads=[1, 1, 1, 1]),
        helper.make_node(op, ["c"], ["r"], "second", domain=domain),
        helper.make_node("GlobalAveragePool", ["c" if op == "Det" else "r"], ["g"], "mean"),
        helper.make_node("Flatten", ["g"], ["scores"], "flat"),
    ]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 4])]
    if op == "Det":  # a node that our engine has no kernel for
        outputs.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [batch, 4]))
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 8, 8])],
        outputs,
        [numpy_helper.from_array(weight, "weight")],
    )
    opset = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path
