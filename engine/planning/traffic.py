"""The bytes that the steps of a plan move: every input and output once, as this plan keeps it.

A tensor between two steps counts in the layout and type that the plan gives it, a weight as its kernel packs
it, everything else as in ONNX. What stays in float32 in the plan counts as float32, whatever the precision.
Bytes are counted only here: all rates, rooflines and limits use these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.graph.plan import Plan, Step
from kernels.launch import Launch
from kernels.layouts import PLAIN, nbytes
from kernels.ops import ITEMSIZE, Params

Packed = Mapping[int, int]
"""Bytes of those inputs of a step that are weights and lie packed, by their places."""


def bytes_moved(p: Params, packed: Packed, reads: str = PLAIN, writes: str = PLAIN) -> int:
    """Bytes that one kernel moves. packed: bytes of its packed weights, by place of the input; reads, writes:
    the layouts of its first input and its output."""
    shapes, dtypes = p.input_shapes, p.input_dtypes

    def plain(place: int) -> int:
        return math.prod(shapes[place]) * ITEMSIZE[dtypes[place]]

    # The operator's own count knows what of its inputs is not read, or read once for several.
    nbytes_moved = p.nbytes + sum(packed_nbytes - plain(place) for place, packed_nbytes in packed.items())
    if reads != PLAIN:
        nbytes_moved += nbytes(reads, p.laid[0]) - plain(0)
    if writes != PLAIN:
        nbytes_moved += nbytes(writes, p.laid[1]) - p.outputs * ITEMSIZE[p.out_dtype]
    return nbytes_moved


def with_traffic(steps: Sequence[Step], packed: Sequence[Packed]) -> tuple[Step, ...]:
    """The steps with the bytes that they move. packed: for each step, see bytes_moved."""
    return tuple(
        replace(step, moved=bytes_moved(step.params, its, step.reads, step.writes))
        for step, its in zip(steps, packed, strict=True)
    )


def planned_traffic(plan: Plan, launches: Sequence[Launch]) -> tuple[Step, ...]:
    """The same for a plan whose weights no session has packed."""
    packed = [
        {
            place: pack.nbytes(plan.tensors[step.inputs[place]].shape)
            for place, pack in launch.packed.items()
            if plan.holder(step.inputs[place]) in plan.weights
        }
        for step, launch in zip(plan.steps, launches, strict=True)
    ]
    return with_traffic(plan.steps, packed)
