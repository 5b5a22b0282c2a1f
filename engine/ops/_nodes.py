"""A node written as other nodes of ONNX, for operators that need no kernel of their own."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper

from engine import ops
from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, View, operator, view
from engine.ops.reshape import resolve
from kernels.errors import UnsupportedError
from kernels.ops import Params

OPSET = 21  # of the nodes that operators are written as


@dataclass
class Nodes:
    """The nodes that one node is written as, each lowered as it is added.

    Calling it adds one: `y = nodes("MatMul", a, b)`. What it gives has a name of its own, or that of the
    node's output where `output` says so.
    """

    node: Node
    around: Scope
    opset: int = OPSET
    items: list[Kernel | View] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self._specs: dict[str, TensorSpec] = {}
        self._constants: dict[str, np.ndarray] = {}
        self.scope = Scope(
            self.opset,
            ChainMap(self._specs, self.around.specs),
            ChainMap(self._constants, self.around.constants),
            frozenset(),
        )

    def __call__(self, op_type: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Raises Refused where the engine does not take the node, with the reason."""
        node = self.name(op_type.lower())
        name = output or node
        try:
            self.add(ops.lower(Node(node, op_type, inputs, (name,), attributes), self.scope))
        except UnsupportedError as error:
            raise Refused(str(error).removeprefix(f"node {node!r} ({op_type}): ")) from None
        return name

    def add(self, lowered: Lowered) -> None:
        self.items.extend(lowered.items)
        self._specs.update(lowered.specs)
        self._constants.update(lowered.constants)

    def kernel(self, params: Params, inputs: Sequence[str], shape: tuple[int, ...], output: str = "") -> str:
        """Add a kernel, whose output gets this shape."""
        name = output or self.name(params.op)
        self.items.append(Kernel(params, tuple(inputs), name))
        self._specs[name] = TensorSpec(shape, params.out_dtype)
        return name

    def constant(self, value: Any, dtype: Any = None, output: str = "") -> str:
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        name = output or self.name("constant")
        self._constants[name], self._specs[name] = array, TensorSpec(array.shape, array.dtype.name)
        return name

    def shaped(self, source: str, shape: Sequence[int], output: str = "") -> str:
        """The same elements in another shape; one size may be −1."""
        name = output or self.name("reshape")
        node = Node(name, "Reshape", (source,), (name,), {})
        self.add(view(node, self.scope, resolve(self.shape(source), [*map(int, shape)], True)))
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.scope.shape(name)

    def dtype(self, name: str) -> str:
        return self.scope.spec(name).dtype

    def name(self, what: str) -> str:
        self.made += 1
        return f"{self.node.name}::{what}{self.made}"

    def lowered(self) -> Lowered:
        """The lowered nodes."""
        return Lowered(tuple(self.items), self._specs, self._constants)


def number_of(dtype: str) -> int:
    """ONNX's number of an element type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


Writing = Callable[[Node, Nodes], None]


def written(*op_types: str, domain: str = "") -> Callable[[Writing], Writing]:
    """As `operator`, of a function that writes a node as other nodes."""

    def registered(function: Writing) -> Writing:
        @operator(*op_types, domain=domain)
        def lower(node: Node, scope: Scope) -> Lowered:
            nodes = Nodes(node, scope)
            function(node, nodes)
            return nodes.lowered()

        return function

    return registered
