"""A model's file as a job runs it: its open axes have sizes, its ends types that NumPy has, and what has no
batch is a constant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench.measure.images import ends, open_axes, other_inputs
from engine.graph import importer
from engine.graph.graph import Graph


class Read(NamedTuple):
    """notes: what was taken for what the file leaves open, and what of it is left out, each a sentence."""

    graph: Graph
    notes: tuple[str, ...] = ()


def read(
    path: Path,
    dims: Mapping[str, int],
    inputs: Mapping[str, str] | None = None,
    dataset: str = "random",
    seed: int = 0,
    alone: bool = True,
) -> Read:
    """dims: sizes of open axes by name; inputs: what inputs are given (bench.measure.images.other_inputs);
    alone: whether this is the only model that these are for. Raises KernelscopeError where the file cannot be
    read, and for what is given and it does not have."""
    return fitted(importer.load(path), dims, inputs, dataset, seed, alone)


def fitted(
    graph: Graph,
    dims: Mapping[str, int],
    inputs: Mapping[str, str] | None = None,
    dataset: str = "random",
    seed: int = 0,
    alone: bool = True,
) -> Read:
    """The same of a graph that is read."""
    graph, guessed = open_axes.closed(graph, dims, dataset, lenient=not alone)
    left_out = graph.left_out
    graph, converted = ends.of_numpy(graph)
    graph, drawn = other_inputs.folded(graph, inputs or {}, seed)
    notes = [guessed] if guessed else []
    notes += [f"output {words}, is left out: only tensors of numbers are compared" for words in left_out]
    return Read(graph, (*notes, *converted, *drawn))
