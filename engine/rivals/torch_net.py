"""From our Graph to a torch module: each ONNX node as PyTorch's own operator of that meaning, at one batch
size.

`torch_operators` says which operators there are.
The module is a torch.fx.GraphModule: plain Python with one call a node, which torch.compile takes whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.graph import Graph
from engine.passes.trace import known
from engine.rivals.torch_operators import HANDLERS
from engine.rivals.torch_translation import Swap, Translation
from kernels.errors import UnsupportedError


def translated(
    torch: Any, graph: Graph, batch: int, held: str = "float32", swaps: Sequence[Swap] = ()
) -> Any:
    """The graph at this batch size as a torch module, on the CPU; held: the type of its floating point;
    swaps: exported operators in the place of nodes. Raises UnsupportedError, naming node, op and reason."""
    return Translation(torch, graph, batch, held, HANDLERS, swaps).module()


def refusal(graph: Graph) -> str | None:
    """The first node whose operator has no translation, in words; None where all have. Needs no PyTorch."""
    for node in graph.nodes:
        if node.op_type not in HANDLERS and node.op_type != "Constant" and node.domain in ("", "ai.onnx"):
            try:
                folded = known(graph, graph.fixed_batch or 1).constants
            except UnsupportedError as error:
                return str(error)
            if not all(name in folded for name in node.outputs if name):
                return (
                    f"node {node.name!r} ({node.op_type}) has no translation to PyTorch here; "
                    f"{len(HANDLERS)} operators have"
                )
        elif node.domain not in ("", "ai.onnx"):
            return f"node {node.name!r} is of the domain {node.domain!r}, which PyTorch does not have"
    return None
