"""A whole net as an operator of the ladder: what there is to climb on, and which rungs there are. A rung is a
way of putting the steps together into a pass (engine.net_rungs), so it is run as a session of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from engine import net_rungs
from engine.backend import Options
from engine.graph.graph import Graph
from engine.planning import planner
from kernels.errors import InputError
from kernels.ops import ITEMSIZE
from kernels.precision import PRECISIONS

OP = net_rungs.OP
NODE = "whole net"  # in the place of a node's name


@dataclass(frozen=True)
class Net:
    """All of a model at a batch size. steps: of its plan on the device; nbytes: inputs, weights and outputs,
    once."""

    op: ClassVar[str] = OP

    batch: int
    steps: int
    nodes: int
    flops: int
    nbytes: int

    @property
    def unread(self) -> int:
        """As kernels.ops.Params."""
        return 0

    def least_nbytes(self, precision: str, given: bool = False) -> int:
        """As kernels.ops.Params; which of its bytes are weights is not told, and most are."""
        return self.nbytes * PRECISIONS[precision].weight_nbytes // ITEMSIZE["float32"]

    @property
    def words(self) -> str:
        return f"{self.nodes} nodes in {self.steps} steps"


@dataclass(frozen=True)
class Whole:
    """A Net where a ladder looks for steps."""

    params: Net
    op: str = OP
    nodes: tuple[str, ...] = (NODE,)


def whole(graph: Graph, batch: int, device: str) -> Whole:
    """Raises InputError, UnsupportedError."""
    made = planner.plan(graph, batch, device, options=Options())
    ends = sum(made.tensors[name].nbytes for name in (*made.inputs, *made.outputs))
    flops = sum(step.params.flops for step in made.steps)
    nodes = sum(len(step.nodes) for step in made.steps)
    return Whole(Net(batch, len(made.steps), nodes, flops, made.weights_nbytes + ends))


def net_of(told: Mapping[str, Any]) -> Net:
    """The record of these fields, as JSON has them. Raises InputError."""
    try:
        return Net(**{field.name: int(told[field.name]) for field in fields(Net)})
    except (KeyError, TypeError, ValueError):
        raise InputError(f"a ladder of a whole net says {', '.join(f.name for f in fields(Net))}") from None
