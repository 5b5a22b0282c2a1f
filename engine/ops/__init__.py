"""The operators of the engine, one file an ONNX op or family of them; the folder is the list.

A file here (its name not starting with "_") has a function for each operator, which says which they are:

    @operator("Softmax", "LogSoftmax")          (node, scope) → Lowered
    @written("Trilu", domain="…")               (node, nodes): writes the node as other nodes (`_nodes`)

and HINTS, where there is something that would work in the place of op types that nobody handles. The function
checks the node, infers its output's shape and says which kernels compute it, or raises `Refused` with the
reason. Nodes whose inputs are all constant never get here: `engine.passes.trace` computes them.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

from engine.graph.graph import Node
from engine.graph.plan import MOST_ELEMENTS
from engine.ops._base import (
    DEFAULT_DOMAINS,
    LOWERINGS,
    Kernel,
    Lowered,
    Lowering,
    Refused,
    Scope,
    View,
    full_name,
)
from kernels.errors import KernelscopeError, UnsupportedError, one_line
from kernels.ops import ITEMSIZE

__all__ = [
    "DEFAULT_DOMAINS",
    "Kernel",
    "Lowered",
    "Refused",
    "Scope",
    "View",
    "full_name",
    "lower",
    "operators",
    "supported",
]

LISTED = "docs/conformance.md lists what it supports"


class MissingOperatorError(UnsupportedError):
    """Raised for a node whose operator nobody here handles. operator: its name."""

    def __init__(self, text: str, operator: str) -> None:
        super().__init__(text)
        self.operator = operator


@functools.cache
def _modules() -> tuple[ModuleType, ...]:
    names = [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]
    return tuple(importlib.import_module(f"{__name__}.{name}") for name in names)


@functools.cache
def hints() -> Mapping[str, str]:
    """What would work in the place of op types that the engine refuses, where there is something."""
    return {
        op_type: words for module in _modules() for op_type, words in getattr(module, "HINTS", {}).items()
    }


@functools.cache
def operators() -> Mapping[str, Lowering]:
    """The function that lowers each operator, by the operator's full name."""
    _modules()
    return dict(sorted(LOWERINGS.items()))


def supported() -> tuple[str, ...]:
    """ONNX op types that the engine runs, in alphabetical order."""
    return tuple(operators())


def lower(node: Node, scope: Scope) -> Lowered:
    """Kernels, shapes and constants of one node.

    Raises UnsupportedError, one sentence naming the node, its op and what is supported.
    """
    where = f"node {node.name!r} ({node.op_type})"
    op = full_name(node.domain, node.op_type)
    if op not in operators():
        onnx_s = node.domain in DEFAULT_DOMAINS  # what is constant of it, ONNX's reference computes
        on = " on data that depends on the graph's inputs" if onnx_s and any(node.inputs) else ""
        why = f"the engine does not support {op}{on}; {hints().get(node.op_type) or LISTED}"
        raise MissingOperatorError(f"{where}: {why}", op)
    try:
        lowered = _apart(node, scope)
        for name, spec in lowered.specs.items():
            if name not in lowered.constants:  # a constant without elements is as good as none
                _check_elements(name, spec.shape)
        for item in lowered.items:
            if isinstance(item, Kernel) and item.params.dtype not in ITEMSIZE:
                known = ", ".join(ITEMSIZE)
                raise Refused(f"it computes in {item.params.dtype}, and the element types are {known}")
    except Refused as error:
        raise UnsupportedError(f"{where}: {error}") from None
    except KernelscopeError:
        raise
    except MemoryError:
        raise
    except Exception as error:
        # What no file here foresaw, of inputs and attributes that do not fit the operator's text.
        raise UnsupportedError(
            f"{where}: its inputs or attributes are not as ONNX describes them ({one_line(error)})"
        ) from error
    return lowered


def _apart(node: Node, scope: Scope) -> Lowered:
    """`node` lowered. An inner tensor may have the name of a tensor of the graph (a file may have a `y:1`
    beside a `y`); then the inner tensors get other names."""
    lower_it = operators()[full_name(node.domain, node.op_type)]
    lowered = lower_it(node, scope)
    within = {*lowered.specs, *lowered.constants} - set(node.outputs)
    if not any(name in scope.specs or name in scope.consumed for name in within):
        return lowered
    names_taken = {*scope.specs, *scope.consumed}
    mark = next(
        mark
        for mark in map("~{}".format, itertools.count(1))
        if not any(mark in name for name in names_taken)
    )
    own_names = {f"{name}{mark}": name for name in node.outputs if name}
    others = tuple(f"{name}{mark}" if name else "" for name in node.outputs)
    read = frozenset(other for other, name in own_names.items() if name in scope.consumed)
    lowered = lower_it(
        replace(node, name=f"{node.name}{mark}", outputs=others),
        replace(scope, consumed=scope.consumed | read),
    )

    def called(name: str) -> str:
        return own_names.get(name, name)

    return Lowered(
        tuple(
            replace(item, source=called(item.source), output=called(item.output))
            if isinstance(item, View)
            else replace(item, inputs=tuple(map(called, item.inputs)), output=called(item.output))
            for item in lowered.items
        ),
        {called(name): spec for name, spec in lowered.specs.items()},
        {called(name): value for name, value in lowered.constants.items()},
    )


def _check_elements(name: str, shape: tuple[int, ...]) -> None:
    elements = math.prod(shape)
    if elements == 0:
        raise Refused(f"its output {name!r} of shape {shape} has no elements")
    if min(shape, default=1) < 0 or elements > MOST_ELEMENTS:
        raise Refused(f"its output {name!r} of shape {shape} has more elements than any memory holds")
