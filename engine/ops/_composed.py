"""A node as several nodes of ONNX's own, lowered one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine import ops
from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Scope, View
from kernels.ops import Params

OPSET = 21  # of the nodes it is made of


class Composed:
    """What becomes of `node`. Each call adds a node of ONNX's and gives the name of its output; what is
    between is known to the scope from then on."""

    def __init__(self, node: Node, scope: Scope) -> None:
        self._node, self._scope = node, replace(scope, opset=OPSET)
        self._items: list[Kernel | View] = []
        self._specs: dict[str, TensorSpec] = {}
        self._constants: dict[str, np.ndarray] = {}

    def __call__(self, op_type: str, inputs: Sequence[str], to: str = "", **attributes: Any) -> str:
        """to: the output's name, where it is one of the node's."""
        to = to or f"{self._node.outputs[0]}:{len(self._specs)}"
        part = Node(self._node.name, op_type, tuple(inputs), (to,), attributes)
        self.add(ops.operators()[op_type](part, self._scope))
        return to

    def add(self, lowered: Lowered) -> None:
        """What has been lowered otherwise."""
        self._items += lowered.items
        self._specs |= lowered.specs
        self._constants |= lowered.constants
        self._scope.specs.update(lowered.specs)
        self._scope.constants.update(lowered.constants)

    def constant(self, array: np.ndarray) -> str:
        name = f"{self._node.outputs[0]}:{len(self._specs)}"
        self.add(Lowered((), {name: TensorSpec(array.shape, array.dtype.name)}, {name: array}))
        return name

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        return self("Reshape", (name, self.constant(np.array(shape, np.int64))))

    def kernel(self, params: Params, inputs: Sequence[str], to: str, shape: tuple[int, ...]) -> str:
        """One of ours, where ONNX has no node for it."""
        self.add(Lowered((Kernel(params, tuple(inputs), to),), {to: TensorSpec(shape, params.out_dtype)}))
        return to

    def lowered(self) -> Lowered:
        return Lowered(tuple(self._items), self._specs, self._constants)
