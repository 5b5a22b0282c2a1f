"""The engine's view of an ONNX file: frozen, checked, with the words of the ONNX specification."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from engine.graph import initializers as weights

Shape = tuple[int | str | None, ...]


@dataclass(frozen=True)
class TensorInfo:
    """A graph input or output: its ONNX name, NumPy dtype name ("float32") and shape (a str is a symbol)."""

    name: str
    dtype: str
    shape: Shape


@dataclass(frozen=True)
class Node:
    """One ONNX node. `name` is unique in the graph (made up as "<op_type>_<index>" where the file has none);
    an optional input or output that is absent is "". captured: what the graphs within it (the branches of an
    If, the body of a Loop) read of the tensors around it."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    domain: str = ""
    captured: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """Every tensor that it needs."""
        return tuple(name for name in (*self.inputs, *self.captured) if name)

    def proto(self) -> onnx.NodeProto:
        """The node as ONNX writes it."""
        attributes = {
            name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
            for name, value in self.attributes.items()
        }
        made = onnx.helper.make_node(self.op_type, self.inputs, self.outputs, self.name, domain=self.domain)
        made.attribute.extend(
            onnx.helper.make_attribute(name, value) for name, value in sorted(attributes.items())
        )
        return made


@dataclass(frozen=True)
class Graph:
    """A model as it was read: nodes in topological order, initializers by name.

    `proto` is the ModelProto (node names filled in as in `nodes`), for backends that take ONNX as it is. It
    only declares large initializers (engine.graph.initializers): their values are in `initializers` alone,
    and `whole_proto` puts both together. `sha256` is of the file's or the serialized model's bytes.
    `devices`: those that its answers and times are looked at on, which says what of it is one group
    (engine.planning.groups).
    """

    name: str
    opset: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    nodes: tuple[Node, ...]
    initializers: Mapping[str, np.ndarray]
    proto: onnx.ModelProto
    sha256: str
    devices: tuple[str, ...] = ("cpu", "cuda")

    @property
    def fixed_batch(self) -> int | None:
        """The batch size the model insists on, or None where its first axis is dynamic."""
        first = self.inputs[0].shape[0] if self.inputs and self.inputs[0].shape else None
        return first if isinstance(first, int) else None

    @functools.cached_property
    def node_protos(self) -> Mapping[str, onnx.NodeProto]:
        """The nodes of `proto` by name."""
        return {node.name: node for node in self.proto.graph.node}

    def whole_proto(self) -> onnx.ModelProto:
        """The model with every value in it, a copy."""
        return weights.whole(self.proto, self.initializers)
