"""The engine's view of an ONNX file: frozen, checked, with the words of the ONNX specification."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import onnx

from engine.graph import initializers as weights

Shape = tuple[int | str | None, ...]
T = TypeVar("T")
MOST_KEPT = 3  # batch sizes


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
    overload: str = ""  # which of several functions of one name it calls

    @property
    def reads(self) -> tuple[str, ...]:
        """Every tensor that it needs."""
        return tuple(name for name in (*self.inputs, *self.captured) if name)

    def proto(self) -> onnx.NodeProto:
        """The node as ONNX writes it."""
        attributes = {
            name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
            for name, value in self.attributes.items()
            if value is not None  # of a function's node, which names an attribute of its caller
        }
        proto = onnx.helper.make_node(
            self.op_type, self.inputs, self.outputs, self.name, domain=self.domain, overload=self.overload
        )
        proto.attribute.extend(
            onnx.helper.make_attribute(name, value) for name, value in sorted(attributes.items())
        )
        return proto


@dataclass(frozen=True)
class Graph:
    """A model as it was read: nodes in topological order, initializers by name.

    `proto` is the ModelProto (node names filled in as in `nodes`), for backends that take ONNX as it is. It
    only declares large initializers (engine.graph.initializers): their values are in `initializers` alone,
    and `whole_proto` puts both together. `sha256` is of the file's or the serialized model's bytes.
    `devices`: those that its answers and times are looked at on, which says what of it is one group
    (engine.planning.groups).

    refused: why our engine runs none of it, though another may: ONNX's own checks find a fault in it, or it
    is of an opset that we do not know; "" where there is nothing against it. left_out: what the file gives
    out and the graph does not, in words, each by its name. libraries: files of custom operators that ONNX
    Runtime has to load for `proto`.
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
    refused: str = ""
    left_out: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to another process: what was worked out of the graph is not."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def fixed_batch(self) -> int | None:
        """The batch size the model insists on, or None where its batch is open."""
        first = next((info.shape[0] for info in self.inputs if info.shape), None)
        return None if self.batch_axes or not isinstance(first, int) else first

    @functools.cached_property
    def batch_axes(self) -> Mapping[str, int]:
        """By input the open axis that is the batch: the first, or, where the first is no batch (time comes
        first, as PyTorch's recurrent layers have it), the one that is. An input without one is not in it."""
        return batch_axes(self.inputs)

    @functools.cached_property
    def batch_symbols(self) -> frozenset[str]:
        """What the file calls its batch; an axis may be open and have no name."""
        by_name = {info.name: info.shape for info in self.inputs}
        symbols = {by_name[name][axis] for name, axis in self.batch_axes.items()}
        return frozenset(symbol for symbol in symbols if isinstance(symbol, str))

    @functools.cached_property
    def open_axes(self) -> tuple[tuple[str, int], ...]:
        """(input, axis) of what is open and is not the batch: nothing can be fed before it has a size."""
        return tuple(
            (info.name, axis)
            for info in self.inputs
            for axis, size in enumerate(info.shape)
            if not isinstance(size, int)
            and size not in self.batch_symbols
            and self.batch_axes.get(info.name) != axis
        )

    @functools.cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}

    @functools.cached_property
    def functions(self) -> Mapping[tuple[str, str, str], onnx.FunctionProto]:
        """The model's own functions by domain, name and overload."""
        return {(of.domain, of.name, of.overload): of for of in self.proto.functions}

    @functools.cached_property
    def order(self) -> Mapping[str, int]:
        """The place of each node among the others, by its name."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    @functools.cached_property
    def given_out(self) -> frozenset[str]:
        """The names of its outputs."""
        return frozenset(info.name for info in self.outputs)

    @functools.cached_property
    def readers(self) -> Mapping[str, frozenset[str]]:
        """By tensor the names of the nodes that read it."""
        by_tensor: dict[str, set[str]] = {}
        for node in self.nodes:
            for name in node.reads:
                by_tensor.setdefault(name, set()).add(node.name)
        return {name: frozenset(nodes) for name, nodes in by_tensor.items()}

    @functools.cached_property
    def live(self) -> frozenset[str]:
        """The names of the nodes that an output hangs on."""
        needed, live_nodes = set(self.given_out), set[str]()
        for node in reversed(self.nodes):
            if not needed.isdisjoint(node.outputs):
                live_nodes.add(node.name)
                needed.update(node.reads)
        return frozenset(live_nodes)

    @functools.cached_property
    def _kept(self) -> dict[str, dict[int, Any]]:
        return {}

    def remembered(self, what: str, batch: int, make: Callable[[], T]) -> T:
        """What `make` works out of this graph at a batch size, kept for whoever asks for it again: not to be
        changed. Of the last batch sizes alone, for weights that were folded are in it."""
        by_batch = self._kept.setdefault(what, {})
        if batch not in by_batch:
            result = make()
            while len(by_batch) >= MOST_KEPT:
                by_batch.pop(next(iter(by_batch)))
            by_batch[batch] = result
        known: T = by_batch[batch]
        return known

    @functools.cached_property
    def node_protos(self) -> Mapping[str, onnx.NodeProto]:
        """The nodes of `proto` by name."""
        return {node.name: node for node in self.proto.graph.node}

    def whole_proto(self) -> onnx.ModelProto:
        """The model with every value in it, a copy."""
        return weights.whole(self.proto, self.initializers)


def batch_axes(inputs: Sequence[TensorInfo]) -> dict[str, int]:
    """As `Graph.batch_axes`. Of a first input whose first axis is open that one is the batch, unless it has a
    name that is no batch's and a later axis has one that is. Where no first axis is open, it is the one
    symbol that there is."""
    firsts = [info for info in inputs if info.shape and not isinstance(info.shape[0], int)]
    symbols = {size for info in inputs for size in info.shape if isinstance(size, str)}
    called = [symbol for symbol in symbols if _is_batch(symbol)]
    leading = {info.shape[0] for info in firsts}
    if len(called) == 1 and leading and None not in leading and called[0] not in leading:
        return _axes_of(inputs, {called[0]})
    if firsts:
        own = {size for size in leading if isinstance(size, str)}
        if len(called) == 1 and called[0] in own:
            own = {called[0]}
        return {info.name: 0 for info in firsts if info.shape[0] is None} | _axes_of(inputs, own)
    return _axes_of(inputs, symbols) if len(symbols) == 1 else {}


def _axes_of(inputs: Sequence[TensorInfo], symbols: set[str]) -> dict[str, int]:
    axes = {}
    for info in inputs:
        axis = next((axis for axis, size in enumerate(info.shape) if size in symbols), None)
        if axis is not None:
            axes[info.name] = axis
    return axes


def _is_batch(symbol: str) -> bool:
    word = symbol.lower()
    return "batch" in word or word in ("n", "b", "bs")
