"""The passes between a Graph and a Plan: lower and fold node by node, drop what is dead, multiply in whole
numbers where a model is quantized, see a function in the nodes that it was written as, leave out
transpositions that undo each other, fuse; and where a device has no kernels for an element type, widen.

`grouped` is what `engine.planning.groups` starts from, so that a group of nodes means the same to every
backend; `program` is what a plan is made of. The two differ where a step's work is done by another one than
its own node's (an activation behind the pool that follows), or where a device is better off with two steps.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.graph.graph import Graph
from engine.passes.attention import fuse_attention
from engine.passes.fuse import fuse
from engine.passes.gates import gated
from engine.passes.packed import Packs, packed
from engine.passes.pools import Joins, join, postpone
from engine.passes.quantized import fuse_quantized
from engine.passes.trace import Program, alive, check_batch, known, trace
from engine.passes.turns import turned
from engine.passes.widen import widen
from kernels.ops import GELUS

__all__ = [
    "Joins",
    "Packs",
    "Program",
    "alive",
    "check_batch",
    "fuse",
    "grouped",
    "join",
    "known",
    "program",
    "trace",
    "widen",
]


def program(
    graph: Graph, batch: int, joins: Joins, behind: Collection[str] = (), packs: Packs | None = None
) -> Program:
    """The graph at this batch size as fused kernels and views, dead ones dropped.

    joins: which pools become one kernel with what they read. behind: as in `fuse`.
    packs: which products of an attention become one (None: none do).
    Raises InputError for a batch size out of range, UnsupportedError for a node or batch size refused.
    """
    made = join(fuse(postpone(_seen(trace(graph, batch))), behind), joins)
    return packed(made, packs) if packs is not None else made


def grouped(traced: Program, joins: Joins) -> Program:
    """A traced graph fused as its nodes are grouped: the same on every device."""
    return join(fuse(_seen(traced), GELUS), joins)


def _seen(traced: Program) -> Program:
    """With what several nodes were written as seen for what it is."""
    return turned(gated(fuse_attention(fuse_quantized(alive(traced)))))
