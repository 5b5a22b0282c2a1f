"""ONNX's own backend tests, each with its feeds and expected outputs, as models that the engine may be asked
to run: the node tests of every operator, and those of PyTorch's converters.

The data ships inside the onnx package; nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper, version_converter

from engine.graph.importer import OPSETS
from engine.ops import full_name
from tests import sampling

_FOLDERS = ("pytorch-converted", "pytorch-operator", "simple")


@dataclass(frozen=True)
class Case:
    """One test in one form. constants: whether all inputs but the first are initializers, as real models have
    their weights, else all are fed. op_types: of its nodes. node: whether it is one of an operator alone.
    float32, float16: whether it takes or gives any."""

    name: str
    proto: onnx.ModelProto
    feeds: tuple[tuple[str, np.ndarray], ...]
    expected: tuple[np.ndarray, ...]
    rtol: float
    atol: float
    constants: bool
    op_types: tuple[str, ...]
    node: bool
    float32: bool
    float16: bool


@functools.cache
def cases() -> tuple[Case, ...]:
    """Every test of the suite whose ends are tensors, by name, in both forms, or one where they are alike."""
    from onnx.backend.test.case import node

    with _quiet():
        own = node.collect_testcases(None)
    return tuple(_cases(own, _converted()))


def sample(share: int) -> tuple[Case, ...]:
    """Of one module in so many of onnx's, each of which has the tests of an operator, all, and as many of the
    other tests. Importing a module computes all that its tests expect, which for all of them takes seconds.
    For a process that asks for no `cases()`, after which there is nothing left to import."""
    from onnx.backend.test.case import node

    modules = [found.name for found in pkgutil.walk_packages(node.__path__)]
    converted = _converted()
    return (
        *of_modules(*sampling.some("conformance, operators", modules, len(modules) // share)),
        *_cases([], sampling.some("conformance, converted", converted, len(converted) // share)),
    )


def of_modules(*names: str) -> tuple[Case, ...]:
    """The tests of some of onnx's modules, in a process that asks for no `cases()`."""
    return tuple(_cases([test for name in names for test in _own(name)], []))


@functools.cache
def _own(module: str) -> tuple[Any, ...]:
    from onnx.backend.test.case import node

    before = len(node._NodeTestCases)
    with _quiet():
        importlib.import_module(f"{node.__name__}.{module}")
    return tuple(node._NodeTestCases[before:])


def _converted() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    return [test for kind in _FOLDERS for test in load_model_tests(kind=kind)]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose
        yield


def _cases(own: Sequence[Any], converted: Sequence[Any]) -> Iterator[Case]:
    names = {test.name for test in own}
    for test in sorted({t.name: t for t in (*own, *converted)}.values(), key=lambda test: test.name):
        proto = onnx.ModelProto()
        proto.CopyFrom(test.model or onnx.load(Path(test.model_dir, "model.onnx")))
        given, expected = _tensors(test)
        with contextlib.suppress(TypeError):  # sequences and optionals are no tensors
            arrays = [_array(value) for value in given]
            results = tuple(_array(value) for value in expected)
            op_types = {full_name(made.domain, made.op_type) for made in proto.graph.node} - {"Constant"}
            ends = (*proto.graph.input, *proto.graph.output)
            element_types = {value.type.tensor_type.elem_type for value in ends}
            for constants in (True, False) if len(arrays) > 1 else (True,):
                adapted, feeds = _adapted(proto, arrays, constants)
                yield Case(
                    test.name,
                    adapted,
                    feeds,
                    results,
                    test.rtol,
                    test.atol,
                    constants,
                    tuple(sorted(op_types)),
                    test.name in names,
                    TensorProto.FLOAT in element_types,
                    TensorProto.FLOAT16 in element_types,
                )


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


def _adapted(
    proto: onnx.ModelProto, arrays: list[np.ndarray], constants: bool
) -> tuple[onnx.ModelProto, tuple[tuple[str, np.ndarray], ...]]:
    """The model, of an opset that we take, and what it is fed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    given = {tensor.name for tensor in copy.graph.initializer}
    names = [value.name for value in copy.graph.input if value.name not in given]
    named = list(zip(names, arrays, strict=True))
    fed = named[:1] if constants else named
    if constants:
        copy.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in named[1:])
    if any(entry.domain == "" and entry.version < OPSETS[0] for entry in copy.opset_import):
        copy = version_converter.convert_version(copy, 13)
    kept = [value for value in copy.graph.input if value.name in dict(fed)]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    copy.ir_version = max(copy.ir_version, 4)  # from here on constants need not be inputs
    return copy, tuple(fed)
