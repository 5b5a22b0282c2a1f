"""The passes between a Graph and a Plan: lower and fold node by node, drop what is dead, fuse.

`program(graph, batch)` is what the planner and `engine.groups` both start from, so that a group of nodes
means the same to every backend.
"""

from __future__ import annotations

from engine.graph import Graph
from engine.passes.fuse import fuse
from engine.passes.trace import Program, alive, check_batch, known, trace

__all__ = ["Program", "alive", "check_batch", "fuse", "known", "program", "trace"]


def program(graph: Graph, batch: int) -> Program:
    """The graph at this batch size as fused kernels and views, dead ones dropped.

    Raises InputError for a batch size out of range, UnsupportedError for a node or batch size refused.
    """
    return fuse(alive(trace(graph, batch)))
