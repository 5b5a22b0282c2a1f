"""Errors of a model's operators on one backend: of each alone, with right inputs; and of each with the errors
of those before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bench.measure.answers import accuracy, cross_check, kept_errors, oracle
from bench.measure.answers.oracle import Golden
from bench.measure.timing import answers
from bench.results.records import ErrorStats
from engine.backend import Backend, Options
from engine.graph.graph import Graph
from engine.planning import groups as grouping
from engine.planning import mixed, submodel
from engine.planning.groups import Group
from engine.planning.submodel import SeparateParts
from kernels.errors import InputError, KernelscopeError, OutOfMemoryError, UnsupportedError

_KEPT = 8192  # errors of single groups, some hundred bytes each
# Groups from which on many are one session, beside each other: of fewer each has its own.
MANY = 64

Span = tuple[str, ...]
"""ONNX nodes that a session runs as one step."""


@dataclass(frozen=True)
class Errors:
    """By output tensor; a group that the backend refuses alone has no isolated error."""

    isolated: Mapping[str, ErrorStats]
    propagated: Mapping[str, ErrorStats]


_known: OrderedDict[Any, Any] = OrderedDict()  # of groups alone: ErrorStats or None; of models: by tensor


def errors_of(graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden) -> Errors:
    """Errors at the golden images, kept: all batch sizes share them.

    A user's own kernels may change between two calls, so nothing of theirs is kept.
    """
    return Errors(
        isolated(graph, backend, precision, options, golden),
        propagated(graph, backend, precision, options, golden),
    )


def isolated(
    graph: Graph,
    backend: Backend,
    precision: str,
    options: Options,
    golden: Golden,
    steps: Iterable[Span] = (),
    progress: Callable[[str], None] = lambda text: None,
    refused: list[str] | None = None,
) -> dict[str, ErrorStats]:
    """Errors of each group alone at the golden images, kept by what it is made of and the rungs named in it.

    steps: what a session runs as one; groups whose operators are one step are looked at together, as one. A
    group is left out where the golden answers lack its inputs (a judge other than the oracle knows the
    model's outputs alone) or the backend refuses it alone. refused: takes the nodes of groups whose rungs
    refuse so few images; the backend's own choice at these was looked at in their place. In a mixed
    precision each group is looked at in its own (engine.planning.mixed.of_nodes).
    """
    content = _content(golden)
    found: dict[str, ErrorStats] = {}
    at = (graph.sha256, graph.devices, backend.name, golden.images, content)

    def own(part: Group) -> str:
        return mixed.of_nodes(part.nodes, precision, options)

    def key_of(part: Group) -> Any:
        asked = _asked(options_of(part.nodes, options))
        return None if options.kernel_dirs else (*at, own(part), part.nodes, asked)

    with kept_errors.kept("isolated", graph, backend, precision, options, golden) as kept:
        units = [
            (part, outputs)
            for part, outputs in _units(graph, grouping.groups(graph, golden.images), steps)
            if set(part.inputs) <= golden.tensors.keys()
        ]
        unknown = [part for part, _ in units if part.output not in kept and key_of(part) not in _known]
        ready: dict[str, ErrorStats] = {}
        if len(unknown) > MANY and not options.kernel_dirs:
            progress(f"checking {len(unknown):,} layers")
            for each in dict.fromkeys(map(own, unknown)):
                few = [part for part in unknown if own(part) == each]
                ready |= _side_by_side(graph, backend, each, options, golden, few)
        for part, outputs in units:
            of = options_of(part.nodes, options)
            key = key_of(part)
            if key is not None and key in _known:
                stats, fits = _known[key]
            elif part.output in kept:
                stats, fits = kept[part.output], True
            else:
                if part.output in ready:
                    stats, fits = ready[part.output], True
                else:
                    progress(f"checking {part.nodes[0]} alone")
                    stats, fits = _alone(graph, backend, own(part), of, golden, part)
                if key is not None:
                    _keep(key, (stats, fits))
                if stats is not None and stats.ok:
                    kept[part.output] = stats
            if not fits and refused is not None:
                refused += part.nodes
            if stats is not None:
                found |= dict.fromkeys(outputs, stats)
    return found


def propagated(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden
) -> dict[str, ErrorStats]:
    """Errors of every group's output, fed what the backend computed before it, at the golden images; kept as
    `isolated`'s are."""
    key = None
    if not options.kernel_dirs:
        at = (graph.sha256, graph.devices, backend.name, precision, golden.images, _content(golden))
        key = (*at, _asked(options), *sorted((options.mix or {}).items()))
        if key in _known:
            return dict(_known[key])
    with kept_errors.kept("propagated", graph, backend, precision, options, golden) as kept:
        found = dict(kept) or _along(graph, backend, precision, options, golden)
        if all(stats.ok for stats in found.values()):
            kept |= found
    if key is not None:
        _keep(key, found)
    return found


def _along(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden
) -> dict[str, ErrorStats]:
    names = [part.output for part in grouping.groups(graph, golden.images) if part.output in golden.tensors]
    told = submodel.with_outputs(graph, names)
    try:
        session = backend.prepare(told, golden.images, precision, options)
    except UnsupportedError:
        if not options.rungs:
            raise
        # A rung that takes the case's batch and not that of the golden images.
        session = backend.prepare(told, golden.images, precision, replace(options, rungs={}))
    with closing(session):
        actual = answers(session, golden.inputs)
    # Any of them may carry the errors of the coarsest layer before it.
    factor, precision = accuracy.PROPAGATED_FACTOR, mixed.coarsest(precision, options)
    found = {
        name: accuracy.judged(actual[name], golden.tensors[name], precision, factor)
        for name in names
        if name in actual
    }
    if not all(stats.ok for stats in found.values()):
        wrong = [name for name, stats in found.items() if not stats.ok]
        for moved in oracle.moved_along(graph, golden, wrong):
            for name in [name for name in moved if not found[name].ok]:
                of = (actual[name], golden.tensors[name], precision, factor, moved[name])
                found[name] = accuracy.judged(*of)
            if all(stats.ok for stats in found.values()):
                break
    return found


def errors_at(
    graph: Graph,
    backend: Backend,
    precision: str,
    options: Options,
    golden: Golden,
    batch: int,
    nodes: Iterable[str] | None = None,
    known: Callable[[Graph], ErrorStats | None] = lambda layer: None,
) -> Iterator[tuple[Group, ErrorStats]]:
    """Errors of each group alone with right inputs, at any batch size: the batch size decides which algorithm
    a library takes for a layer, and so its error. Convolutions come first. nodes: only the groups of these.
    known: asked before a layer is run as a model of its own; its error, if that is known.

    The golden images are at the first, middle and last places of the batch, and the answers are compared
    there. A group whose first axis is not the batch, or that the backend refuses alone, is skipped. Raises
    OutOfMemoryError.
    """
    whole = {part.output: part for part in grouping.groups(graph, golden.images)}
    parts = sorted(grouping.groups(graph, batch), key=lambda part: not part.op_type.startswith("Conv"))
    wanted = None if nodes is None else set(nodes)
    for part in parts:
        if part.output not in whole or not {*part.inputs, part.output} <= set(golden.tensors):
            continue
        if wanted is not None and wanted.isdisjoint(part.nodes):
            continue
        sub = submodel.extract(graph, part.nodes, batch)
        own = mixed.of_nodes(part.nodes, precision, options)
        fed = oracle.feeds(sub, golden, own)
        expected = oracle.right_of_group(graph, whole[part.output], golden, own)
        tensors = [(info.shape, fed[info.name]) for info in sub.inputs] + [(part.shape, expected)]
        if any(
            not shape or shape[0] != batch or array.shape != (golden.images, *shape[1:])
            for shape, array in tensors
        ):
            continue
        if (stats := known(sub)) is not None:
            yield part, stats
            continue
        placed = accuracy.place(fed, batch)
        try:
            of = options_of(part.nodes, options)
            with closing(backend.prepare(sub, sub.fixed_batch or batch, own, of)) as session:
                actual = answers(session, placed.inputs)[part.output]
        except OutOfMemoryError:
            raise
        except KernelscopeError:
            continue
        if golden.together:
            yield part, _whole(sub, part.output, actual, placed.inputs, own)
            continue
        rows, golden_rows = list(placed.rows), list(placed.golden)
        right = (actual[rows], expected[golden_rows], golden_rows)
        moves = partial(oracle.moved, graph, whole[part.output], golden, own)
        yield part, accuracy.judged_further(partial(_at_rows, *right, own), moves)


def _at_rows(
    actual: np.ndarray, expected: np.ndarray, rows: list[int], precision: str, moved: np.ndarray | None
) -> ErrorStats:
    return accuracy.judged(actual, expected, precision, moved=None if moved is None else moved[rows])


def _whole(
    sub: Graph, output: str, actual: np.ndarray, fed: Mapping[str, np.ndarray], precision: str
) -> ErrorStats:
    """Of a group whose images may change each other's answers: all that it was fed, in float64."""
    return accuracy.judged(actual, oracle.run(sub, fed, [output])[output], precision)


def options_of(nodes: Sequence[str], options: Options) -> Options:
    """The options of these nodes alone: a model that lacks a node refuses a rung that is named for it."""
    return replace(options, mix=None, rungs={n: options.rungs[n] for n in nodes if n in options.rungs})


# ------------------------------------------------------------------------------------------- the inside


def _units(
    graph: Graph, parts: Sequence[Group], steps: Iterable[Span]
) -> list[tuple[Group, tuple[str, ...]]]:
    """The groups in their order, those whose main operators are one step as one, each with the outputs of all
    that it is made of. (An activation that a step does behind the pool stays with its convolution.)"""
    main = {node.name for node in graph.nodes if node.op_type in grouping.MAIN}
    place = {node: index for index, part in enumerate(parts) for node in part.nodes if node in main}
    head = list(range(len(parts)))
    for step in steps:
        touched = sorted({head[place[node]] for node in step if node in place})
        if len(touched) > 1:
            head = [touched[0] if first in touched else first for first in head]
    members: dict[int, list[Group]] = {}
    for part, first in zip(parts, head, strict=True):
        members.setdefault(first, []).append(part)
    units = []
    for together in members.values():
        unit = together[0] if len(together) == 1 else _as_one(graph, together)
        units.append((unit, tuple(part.output for part in together)))
    return units


def _as_one(graph: Graph, parts: Sequence[Group]) -> Group:
    nodes = tuple(node for part in parts for node in part.nodes)
    made = {name for node in nodes for name in graph.by_name[node].outputs}
    return replace(
        parts[-1],
        nodes=nodes,
        op_type="+".join(part.op_type for part in parts),
        inputs=tuple(dict.fromkeys(name for part in parts for name in part.inputs if name not in made)),
    )


def _alone(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden, part: Group
) -> tuple[ErrorStats | None, bool]:
    """The error of one group at the golden images, None where the backend refuses it alone; and whether the
    rungs that are named for it take so few images."""
    sub = submodel.extract(graph, part.nodes, golden.images)
    batch, fits = sub.fixed_batch or golden.images, True
    try:
        try:
            session = backend.prepare(sub, batch, precision, options)
        except (UnsupportedError, InputError):  # which a step that is another one alone has not
            fits = not options.rungs
            session = backend.prepare(sub, batch, precision, replace(options, rungs={}))
        with closing(session):
            actual = answers(session, oracle.feeds(sub, golden, precision))[part.output]
    except KernelscopeError:
        return None, fits
    return oracle.judged_alone(actual, graph, part, golden, precision, sub), fits


def _side_by_side(
    graph: Graph,
    backend: Backend,
    precision: str,
    options: Options,
    golden: Golden,
    parts: Sequence[Group],
) -> dict[str, ErrorStats]:
    """The errors of groups, many of which are one session, by their outputs. Left out is what the backend
    refuses, or what is wrong: that is looked at alone."""

    def answer(apart: SeparateParts, right: Golden) -> Mapping[str, np.ndarray]:
        of = options_of([node.name for node in apart.graph.nodes], options)
        batch = apart.graph.fixed_batch or golden.images
        with closing(backend.prepare(apart.graph, batch, precision, of)) as session:
            return answers(session, oracle.fed_apart(apart, right, precision))

    found = {}
    known = [part for part in parts if part.output in golden.tensors]
    for part, actual in cross_check.answered(graph, known, golden, answer, precision):
        if not isinstance(actual, KernelscopeError):
            stats = oracle.judged_alone(actual, graph, part, golden, precision)
            if stats.ok:
                found[part.output] = stats
    return found


def _asked(options: Options) -> tuple[object, ...]:
    """What of the options the answers hang on."""
    return (
        options.cuda_graph,
        options.tuned,
        *sorted(options.rungs.items()),
        *sorted(options.provider_options.items()),
        options.ort,
    )


def _content(golden: Golden) -> int:
    return hash(tuple(array.tobytes() for array in golden.inputs.values()))


def _keep(key: Any, value: Any) -> None:
    _known[key] = value
    while len(_known) > _KEPT:
        _known.popitem(last=False)
