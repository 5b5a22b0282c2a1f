"""Errors of a model's operators on one backend: each alone, fed right inputs, and with those before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from bench import accuracy, oracle
from bench.oracle import Golden
from bench.records import ErrorStats
from engine import groups as grouping
from engine import submodel
from engine.backend import Backend, Options, Session
from engine.graph import Graph
from engine.groups import Group
from kernels.errors import KernelscopeError, OutOfMemoryError

_KEPT = 32


@dataclass(frozen=True)
class Errors:
    """By output tensor; a group that the backend refuses alone has no isolated error."""

    isolated: Mapping[str, ErrorStats]
    propagated: Mapping[str, ErrorStats]


_known: OrderedDict[Any, Errors] = OrderedDict()


def errors_of(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden, batch: int
) -> Errors:
    """Errors at the first min(batch, golden.images) golden images, kept: larger batches share them.

    A user's own kernels may change between two calls, so nothing of theirs is kept.
    """
    few = _first(graph, golden, min(batch, golden.images))
    key = None
    if not options.kernel_dirs:
        content = hash(tuple(array.tobytes() for array in few.inputs.values()))
        asked = (
            options.cuda_graph,
            options.tuned,
            *sorted(options.rungs.items()),
            *sorted(options.provider_options.items()),
            options.ort,
        )
        key = (graph.sha256, graph.devices, backend.name, precision, asked, few.images, content)
        if key in _known:
            return _known[key]
    errors = Errors(
        _isolated(graph, backend, precision, options, golden, few),
        _propagated(graph, backend, precision, options, few),
    )
    if key is not None:
        _known[key] = errors
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return errors


def _first(graph: Graph, golden: Golden, images: int) -> Golden:
    """The golden tensors of the first images alone: a slice where the batch is the first axis throughout."""
    if images == golden.images:
        return golden
    inputs = {name: array[:images] for name, array in golden.inputs.items()}
    tensors = {name: array[:images] for name, array in golden.tensors.items()}
    shapes = {part.output: tuple(part.shape) for part in grouping.groups(graph, images)}
    if all(tensors[name].shape == shape for name, shape in shapes.items() if name in tensors):
        return Golden(images, inputs, tensors)
    return oracle.golden(graph, inputs, set(tensors) - set(inputs))


def _isolated(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden, few: Golden
) -> dict[str, ErrorStats]:
    """Errors of each group alone at the images of `few`, the first of `golden`'s."""
    errors = {}
    whole = {part.output: part for part in grouping.groups(graph, golden.images)}
    for part in grouping.groups(graph, few.images):
        if not set(part.inputs) <= set(few.tensors):
            continue  # a judge other than the oracle knows the model's outputs alone
        sub = submodel.extract(graph, part.nodes, few.images)
        if few.images < golden.images and few.tensors[part.output].base is golden.tensors[part.output]:
            # A slice of the answers for all images, which every batch size shares.
            expected = oracle.alone(graph, whole[part.output], golden, precision)[: few.images]
        else:
            expected = oracle.alone(graph, part, few, precision, sub)
        try:
            with prepared(
                backend, sub, sub.fixed_batch or few.images, precision, options_of(part, options)
            ) as session:
                actual = _answers(session, oracle.feeds(sub, few, precision))[part.output]
        except KernelscopeError:
            continue
        errors[part.output] = _stats(actual, expected, precision, 1.0)
    return errors


def errors_at(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden, batch: int
) -> Iterator[tuple[Group, ErrorStats]]:
    """Errors of each group alone, fed right inputs, at any batch size: which algorithm a library takes for a
    layer hangs on the batch, and its error with it. Convolutions come first.

    The golden images stand at the first, middle and last places of the batch, and there the answers are
    looked at. A group whose first axis is not the batch, or that the backend refuses alone, is passed over.
    Raises OutOfMemoryError.
    """
    whole = {part.output: part for part in grouping.groups(graph, golden.images)}
    parts = sorted(grouping.groups(graph, batch), key=lambda part: not part.op_type.startswith("Conv"))
    for part in parts:
        if part.output not in whole or not {*part.inputs, part.output} <= set(golden.tensors):
            continue
        sub = submodel.extract(graph, part.nodes, batch)
        fed = oracle.feeds(sub, golden, precision)
        expected = oracle.alone(graph, whole[part.output], golden, precision)
        tensors = [(info.shape, fed[info.name]) for info in sub.inputs] + [(part.shape, expected)]
        if any(
            not shape or shape[0] != batch or array.shape != (golden.images, *shape[1:])
            for shape, array in tensors
        ):
            continue
        placed = accuracy.place(fed, batch)
        try:
            with prepared(
                backend, sub, sub.fixed_batch or batch, precision, options_of(part, options)
            ) as session:
                actual = _answers(session, placed.inputs)[part.output]
        except OutOfMemoryError:
            raise
        except KernelscopeError:
            continue
        yield part, _stats(actual[list(placed.rows)], expected[list(placed.golden)], precision, 1.0)


def _propagated(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden
) -> dict[str, ErrorStats]:
    names = [part.output for part in grouping.groups(graph, golden.images) if part.output in golden.tensors]
    told = submodel.with_outputs(graph, names)
    with prepared(backend, told, golden.images, precision, options) as session:
        actual = _answers(session, golden.inputs)
    return {
        name: _stats(actual[name], golden.tensors[name], precision, accuracy.PROPAGATED_FACTOR)
        for name in names
        if name in actual
    }


def options_of(part: Group, options: Options) -> Options:
    """The options of a group alone: a model that lacks a node refuses a rung that is named for it."""
    return replace(options, rungs={n: rung for n, rung in options.rungs.items() if n in part.nodes})


def _stats(actual: np.ndarray, expected: np.ndarray, precision: str, factor: float) -> ErrorStats:
    if actual.shape != expected.shape:
        stats = accuracy.error_stats(np.full(1, np.nan), np.zeros(1), precision, factor=factor)
        return msgspec.structs.replace(
            stats, reason=f"the shape is {actual.shape} and should be {expected.shape}"
        )
    return accuracy.error_stats(actual, expected, precision, factor=factor)


@contextmanager
def prepared(
    backend: Backend, graph: Graph, batch: int, precision: str, options: Options
) -> Iterator[Session]:
    """A session that is closed at the end. Raises what the backend raises."""
    session = backend.prepare(graph, batch, precision, options)
    try:
        yield session
    finally:
        session.close()


def _answers(session: Session, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    session.bind(inputs)
    session.run()
    session.synchronize()
    return session.fetch()
