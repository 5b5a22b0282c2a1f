"""A model's file as a job runs it: its open axes have sizes, its ends types that NumPy has, and what has no
batch is a constant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.measure.images import io_types, open_axes, other_inputs
from bench.results.records import Job
from engine.graph import importer
from engine.graph.graph import Graph

if TYPE_CHECKING:
    from bench.measure.cases import ModelSpec, Progress


class Read(NamedTuple):
    """notes: what was taken for what the file leaves open, and what of it is left out, each a sentence."""

    graph: Graph
    notes: tuple[str, ...] = ()


def of_job(spec: ModelSpec, job: Job, progress: Progress | None = None) -> Read:
    """The file of one of a job's models, as `read`."""
    alone = len(set(job.models)) == 1
    dims = job.dims_of(spec.name)
    return read(spec.file(progress), dims, job.inputs, spec.dataset, job.seed, alone)


def read(
    path: Path,
    dims: Mapping[str, int] | None = None,
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
    dims: Mapping[str, int] | None = None,
    inputs: Mapping[str, str] | None = None,
    dataset: str = "random",
    seed: int = 0,
    alone: bool = True,
) -> Read:
    """The same of a graph that is read."""
    graph, guessed = open_axes.closed(graph, dims or {}, dataset, lenient=not alone)
    left_out = graph.left_out
    graph, converted = io_types.of_numpy(graph)
    graph, drawn = other_inputs.folded(graph, inputs or {}, seed)
    notes = [guessed] if guessed else []
    notes += [f"output {words}, is left out: only tensors of numbers are compared" for words in left_out]
    return Read(graph, (*notes, *converted, *drawn))
