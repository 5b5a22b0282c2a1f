"""The translation of a graph to a torch module, as the operators' translations see it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.graph.graph import Graph, Node
from engine.ops import Scope
from engine.ops._base import Refused
from engine.passes.trace import known
from kernels.errors import UnsupportedError


@dataclass(frozen=True)
class Swap:
    """An exported operator in the place of nodes. module: the path of its file for PyTorch; inputs: the
    tensors that it is given in each pass; weights: its others, in order; output: the tensor that it
    computes."""

    module: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    weights: tuple[np.ndarray, ...]
    output: str


class Translation:
    """One graph being translated. torch: the package; scope: shapes and constants at this batch size;
    held: the type of its floating point; handlers: by op type what makes a node's output; swaps: what takes
    the place of nodes. NumPy has no bfloat16: what computes in it is given float32, and gives that."""

    def __init__(
        self,
        torch: Any,
        graph: Graph,
        batch: int,
        held: str,
        handlers: Mapping[str, Handler],
        swaps: Sequence[Swap] = (),
    ) -> None:
        self.torch, self.f = torch, torch.nn.functional
        self.graph, self.held, self._handlers = graph, held, handlers
        self.scope: Scope = known(graph, batch)
        self.root = torch.nn.Module()
        self.fx = torch.fx.Graph()
        self.values: dict[str, Any] = {}
        self._swaps = {node: swap for swap in swaps for node in swap.nodes}
        self._constants = 0

    def module(self) -> Any:
        """The module, with inputs and outputs in the graph's order. Raises UnsupportedError."""
        for index, info in enumerate(self.graph.inputs):
            given = self.fx.placeholder(f"input_{index}")
            if self.held == "bfloat16" and np.dtype(self.scope.spec(info.name).dtype).kind == "f":
                given = self.call(self.torch.Tensor.to, given, self.torch.bfloat16)
            self.values[info.name] = given
        for node in self.graph.nodes:
            if all(name in self.scope.constants for name in node.outputs if name):
                continue
            if (swap := self._swaps.get(node.name)) is None:
                self._translate(node)
            elif swap.output in node.outputs:  # the last of its nodes: what it is given is there
                self.values[swap.output] = self._swapped(swap)
        outputs = [self.value(info.name) for info in self.graph.outputs]
        if self.held == "bfloat16":
            floats = (np.dtype(self.scope.spec(info.name).dtype).kind == "f" for info in self.graph.outputs)
            wide = zip(outputs, floats, strict=True)
            outputs = [self.call(self.torch.Tensor.float, y) if real else y for y, real in wide]
        self.fx.output(tuple(outputs))
        module = self.torch.fx.GraphModule(self.root, self.fx)
        if module.graph.eliminate_dead_code():
            module.recompile()
        return module.eval()

    def _translate(self, node: Node) -> None:
        handler = self._handlers.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        try:
            if handler is None:
                raise Refused("it has no translation to PyTorch here")
            if any(name in self.scope.consumed for name in node.outputs[1:] if name):
                raise Refused("an output beyond its first is used")
            self.values[node.outputs[0]] = handler(self, node)
        except Refused as error:
            raise UnsupportedError(f"node {node.name!r} ({node.op_type}): {error}") from error

    def _swapped(self, swap: Swap) -> Any:
        """A call of the operator's module, as whoever uses it elsewhere writes it."""
        torch, name = self.torch, Path(swap.module).stem
        module = sys.modules.get(name)  # PyTorch takes an operator of one name once
        if module is None:
            found = importlib.util.spec_from_file_location(name, swap.module)
            assert found is not None
            assert found.loader is not None
            module = importlib.util.module_from_spec(found)
            found.loader.exec_module(module)
            sys.modules[name] = module
        weights = []
        for array in swap.weights:
            odd = array.dtype.name == "bfloat16"
            tensor = torch.from_numpy(np.array(array.view(np.int16) if odd else array))
            weights.append(tensor.view(torch.bfloat16) if odd else tensor)
        self.root.add_module(name, module.Module(*weights))
        return self.fx.call_module(name, tuple(self.value(given) for given in swap.inputs))

    # --------------------------------------------------------------------------------- for the operators

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self.fx.call_function(function, arguments, named)

    def value(self, name: str) -> Any:
        """A tensor of the module; None for an optional input that is absent."""
        if not name:
            return None
        if name not in self.values:
            self.values[name] = self.constant(np.array(self.scope.constants[name]))
        return self.values[name]

    def constant(self, array: np.ndarray) -> Any:
        """A tensor with these values that belongs to the module, floating point in its type."""
        name = f"constant_{self._constants}"
        self._constants += 1
        real = array.dtype.kind == "f"
        tensor = self.torch.from_numpy(np.ascontiguousarray(array, np.float32 if real else None))
        self.root.register_buffer(name, tensor.to(getattr(self.torch, self.held)) if real else tensor)
        return self.fx.get_attr(name)

    def inputs(self, node: Node) -> list[Any]:
        return [self.value(name) for name in node.inputs]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.scope.shape(name)

    def padded(self, x: Any, pads: Sequence[tuple[int, int]], value: float) -> Any:
        """x with so many elements added before and behind each of its last axes; negative pads remove
        elements."""
        flat = [size for pair in reversed(pads) for size in pair]
        return self.call(self.f.pad, x, flat, "constant", value) if any(flat) else x


Handler = Callable[[Translation, Node], Any]
