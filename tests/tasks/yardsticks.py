"""The models that kernels of shipped tasks are timed beside, where ONNX has the operation: `yardstick.onnx`
of a task's folder. `python -m tests.tasks --write` writes them, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from kernels import tasks
from kernels.tasks import TaskParams, spec

FILE = "yardstick.onnx"
OPSET, IR_VERSION = 20, 9
Made = tuple[list[onnx.NodeProto], dict[str, np.ndarray]]  # nodes, and further inputs of these


def _of(op: str, *, given: Sequence[str], **attributes: object) -> Made:
    return [helper.make_node(op, [*given], ["y"], **attributes)], {}


def _rms_norm() -> Made:
    steps = (
        ("Mul", ["x", "x"], ["squares"]),
        ("ReduceMean", ["squares", "last"], ["mean"]),
        ("Add", ["mean", "epsilon"], ["above"]),
        ("Sqrt", ["above"], ["root"]),
        ("Div", ["x", "root"], ["scaled"]),
        ("Mul", ["scaled", "weight"], ["y"]),
    )
    held = {"last": np.array([-1]), "epsilon": np.array(1e-5, np.float32)}
    return [helper.make_node(op, *names) for op, *names in steps], held


def _attention() -> Made:
    steps = (
        ("Shape", ["q"], ["shape"], {}),
        ("Gather", ["shape", "last"], ["d"], {}),
        ("Cast", ["d"], ["d_float"], {"to": onnx.TensorProto.FLOAT}),
        ("Sqrt", ["d_float"], ["root"], {}),
        ("Transpose", ["k"], ["turned"], {"perm": [0, 2, 1]}),
        ("MatMul", ["q", "turned"], ["products"], {}),
        ("Div", ["products", "root"], ["scores"], {}),
        ("Softmax", ["scores"], ["shares"], {"axis": -1}),
        ("MatMul", ["shares", "v"], ["y"], {}),
    )
    return [helper.make_node(op, a, b, **more) for op, a, b, more in steps], {"last": np.array([2])}


def _top_k() -> Made:
    return [helper.make_node("TopK", ["x", "k"], ["y", "places"])], {}


SIZES = {"row_top_k": ("k",)}  # that a model takes as inputs, each as an array of one number
MODELS: dict[str, Callable[[], Made]] = {
    "vector_add": lambda: _of("Add", given=["a", "b"]),
    "reduction": lambda: _of("ReduceSum", given=["x"], keepdims=1),
    "scan": lambda: (_of("CumSum", given=["x", "axis"])[0], {"axis": np.array(0)}),
    "matrix_transpose": lambda: _of("Transpose", given=["x"], perm=[1, 0]),
    "rms_norm": _rms_norm,
    "softmax_attention": _attention,
    "row_top_k": _top_k,
}


def path(name: str) -> Path:
    folder = tasks.folder_of(name)
    assert folder is not None
    return folder / FILE


def model(name: str) -> onnx.ModelProto:
    """The model of a task, with its inputs by their names, of any size."""
    record = tasks.record_of(name)
    assert issubclass(record, TaskParams)
    spec = record.task.spec
    nodes, held = MODELS[name]()

    def told(tensor: onnx.NodeProto | object, called: str) -> onnx.ValueInfoProto:
        shape = [None] * len(tensor.shape)  # type: ignore[attr-defined]
        return helper.make_tensor_value_info(called, onnx.TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes,
        name,
        [
            *(told(tensor, tensor.name) for tensor in spec.input),
            *(
                helper.make_tensor_value_info(size, onnx.TensorProto.INT64, [1])
                for size in SIZES.get(name, ())
            ),
        ],
        [told(spec.output[0], "y")],
        [numpy_helper.from_array(array, called) for called, array in held.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(made, full_check=True)
    return made


def write() -> None:
    for name in MODELS:
        (spec.ROOT / name / FILE).touch()  # of a new one: a task that names a file has it
    for name in MODELS:
        path(name).write_bytes(model(name).SerializeToString())
