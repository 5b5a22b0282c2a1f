"""ONNX's own backend tests that use our operators alone, each with its feed and expected outputs.

The data ships inside the onnx package; nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, version_converter

from engine.graph.importer import OPSETS
from engine.ops import supported

_FOLDERS = ("pytorch-converted", "pytorch-operator", "simple")
_FILES = {"BatchNormalization": "batchnorm"}  # of onnx.backend.test.case.node, where not the op's name


@dataclass(frozen=True)
class Case:
    """proto: one input (the others, weights as a rule, are its initializers) of a known shape."""

    name: str
    proto: onnx.ModelProto
    feed: np.ndarray
    expected: tuple[np.ndarray, ...]
    rtol: float
    atol: float


def cases() -> Iterator[Case]:
    """Every test of the suite whose nodes are all of supported op types, by name, each once."""
    from onnx.backend.test.case import node
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose
        for op_type in supported():
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(f"{node.__name__}.{_FILES.get(op_type, op_type.lower())}")
    made = [*node._NodeTestCases, *(test for kind in _FOLDERS for test in load_model_tests(kind=kind))]
    known = {*supported(), "Constant"}
    for test in sorted({test.name: test for test in made}.values(), key=lambda test: test.name):
        proto = onnx.ModelProto()
        proto.CopyFrom(test.model or onnx.load(Path(test.model_dir, "model.onnx")))
        if {made.op_type for made in proto.graph.node} <= known:
            feeds, expected = _tensors(test)
            with contextlib.suppress(TypeError):  # sequences and optionals are no tensors
                arrays = [_array(value) for value in feeds]
                results = tuple(_array(value) for value in expected)
                if arrays:
                    yield Case(test.name, _adapted(proto, arrays), arrays[0], results, test.rtol, test.atol)


def _tensors(test: Any) -> tuple[list[Any], list[Any]]:
    if test.data_sets is not None:
        return test.data_sets[0]
    folder = Path(test.model_dir, "test_data_set_0")
    return tuple(  # type: ignore[return-value]
        [
            onnx.TensorProto.FromString((folder / f"{kind}_{i}.pb").read_bytes())
            for i in range(len(list(folder.glob(f"{kind}_*.pb"))))
        ]
        for kind in ("input", "output")
    )


def _array(value: Any) -> np.ndarray:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    raise TypeError(f"{type(value)} is not a tensor")


def _adapted(proto: onnx.ModelProto, feeds: list[np.ndarray]) -> onnx.ModelProto:
    """The model in an opset we take, with all inputs but the first as constants, as real models have them."""
    given = {tensor.name for tensor in proto.graph.initializer}
    names = [value.name for value in proto.graph.input if value.name not in given]
    for name, array in list(zip(names, feeds, strict=True))[1:]:
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    for entry in proto.opset_import:
        if entry.domain == "" and entry.version > OPSETS[-1]:
            entry.version = OPSETS[-1]  # opsets 24 and 25 give these operators more element types alone
    if any(entry.domain == "" and entry.version < OPSETS[0] for entry in proto.opset_import):
        proto = version_converter.convert_version(proto, 13)
    kept = [value for value in proto.graph.input if value.name == names[0]]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    proto.ir_version = max(proto.ir_version, 4)  # from here on constants need not be inputs
    return proto
