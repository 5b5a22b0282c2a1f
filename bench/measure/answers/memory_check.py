"""Whether memory has room for a model, its right answers and the passes of all contenders, by arithmetic.
Linux would grant memory that does not exist, and end the process when it is first used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.words import units
from engine.graph.graph import Graph
from engine.graph.plan import TensorSpec
from engine.machine.host import free_nbytes
from engine.passes import known
from kernels.errors import OutOfMemoryError

WIDE = np.dtype(np.float64).itemsize
# Ours and the reference, each with a copy of the weights and a pass of its own.
CONTENDERS = 2


@dataclass(frozen=True)
class Needs:
    """Bytes at the least. weights: as they are read, in each contender and in float64. answers: every tensor
    in float64 at the images that are answered for, and what a convolution unrolls. passes: of each contender
    what is alive at once at its batch, and the inputs that it is fed."""

    weights: int
    answers: int
    passes: int

    @property
    def total(self) -> int:
        return self.weights + self.answers + self.passes


def needs(graph: Graph, batch: int, images: int) -> Needs:
    """The memory that a model needs at one batch size, with float64 answers for so many images. A tensor
    whose shape is not known before a pass does not count. Raises InputError and UnsupportedError for the
    batch size only."""
    weights = sum(array.nbytes for array in graph.initializers.values())
    wide = sum(array.size * WIDE for array in graph.initializers.values() if array.dtype.kind == "f")
    return Needs(
        weights=(1 + CONTENDERS) * weights + wide,
        answers=_answers(graph, images),
        passes=CONTENDERS * _alive(graph, batch),
    )


def check(graph: Graph, batch: int, images: int) -> None:
    """Raises OutOfMemoryError where more is needed than is free, and UnsupportedError for an input that is
    larger than any memory."""
    if graph.fixed_batch not in (None, batch):
        return  # which whoever is to run it says
    found = needs(graph, batch, images)
    free = free_nbytes()
    if found.total <= free:
        return
    told = ", ".join(
        f"{what} {units.nbytes(size)}"
        for what, size in (
            ("weights", found.weights),
            (f"right answers in float64 for {images:,} images", found.answers),
            (f"passes of {CONTENDERS} backends", found.passes),
        )
    )
    raise OutOfMemoryError(
        f"model {graph.name} at batch {batch:,} needs {units.nbytes(found.total)} of memory at the least "
        f"({told}), and {units.nbytes(free)} are free: a smaller batch or smaller sizes take less"
    )


def _answers(graph: Graph, images: int) -> int:
    specs = _tensors(graph, images)
    total = sum(math.prod(spec.shape) * WIDE for spec in specs.values())
    return total + max((_unrolled(graph, specs, name) for name in graph.by_name), default=0)


def _unrolled(graph: Graph, specs: Mapping[str, TensorSpec], name: str) -> int:
    """What the oracle lays out of one image for a convolution: the window of every output pixel."""
    node = graph.by_name[name]
    if node.op_type != "Conv" or len(node.inputs) < 2 or node.outputs[0] not in specs:
        return 0
    weight = graph.initializers.get(node.inputs[1])
    window = 0 if weight is None else math.prod(weight.shape[1:])
    return window * math.prod(specs[node.outputs[0]].shape[2:]) * WIDE


def _alive(graph: Graph, batch: int) -> int:
    """The most that lies in memory at once of a pass, node after node, and the inputs once more, which
    whoever feeds them keeps."""
    specs = _tensors(graph, batch)
    last = {name: place for place, node in enumerate(graph.nodes) for name in node.reads}
    kept = {info.name for info in (*graph.inputs, *graph.outputs)}
    given = sum(specs[info.name].nbytes for info in graph.inputs if info.name in specs)
    alive = most = given
    for place, node in enumerate(graph.nodes):
        alive += sum(specs[name].nbytes for name in node.outputs if name in specs)
        most = max(most, alive)
        for name in {*node.reads, *node.outputs} - kept:
            if name in specs and last.get(name, place) == place:
                alive -= specs[name].nbytes
    return most + given


def _tensors(graph: Graph, batch: int) -> dict[str, TensorSpec]:
    """The specs of what depends on the inputs, as far as they are known."""
    scope = known(graph, batch)
    return {name: spec for name, spec in scope.specs.items() if name not in scope.constants}
