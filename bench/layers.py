"""A model operator by operator on one backend: errors fed golden inputs, errors carried along, times.

The operators are engine.groups' — the same nodes for every backend — so that errors and times of two backends
stand side by side. Errors are taken at the golden images' batch, times at the case's.
"""

from __future__ import annotations

import statistics
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from bench import accuracy, oracle
from bench.oracle import Golden
from bench.records import ErrorStats, Layer
from engine import groups as grouping
from engine import submodel
from engine.backend import Backend, OpTime, Options, Queued, Session
from engine.graph import Graph, TensorInfo
from engine.groups import Group
from engine.precision import to_fp16
from kernels.errors import KernelscopeError, OutOfMemoryError

_LONGEST_TRAIN = 200  # runs: a device's queue holds about a thousand pieces of work
_TRAIN_NS = 2e6  # a sample of an isolated time: a train of runs of at least this
_SAMPLES = 10
_KEPT_ERRORS = 32


@dataclass(frozen=True)
class _Errors:
    """By output tensor; a group that the backend refuses alone has no isolated error."""

    isolated: Mapping[str, ErrorStats]
    propagated: Mapping[str, ErrorStats]


_errors: OrderedDict[Any, _Errors] = OrderedDict()


def measure(
    graph: Graph,
    backend: Backend,
    precision: str,
    options: Options | None,
    golden: Golden,
    batch: int,
    *,
    session: Session | None = None,
    reference: Backend | None = None,
    errors: bool = True,
    times: bool = True,
    seconds: float = 2.0,
) -> tuple[Layer, ...]:
    """Every operator of `graph` on `backend` at `batch`, in graph order; what the backend adds itself last.

    golden: of `graph` (oracle.golden); a tensor that it lacks has no errors. session: a prepared session at
    `batch` with inputs bound, whose op_times are used; where it is None, or knows none, each group is timed
    as a model of its own (clock "isolated"). reference: the backend whose own errors
    make the ratio, in the same precision if it offers it, else in fp32; None for no ratio. seconds: about as
    long as the times take.
    A backend that fails on a group leaves that figure None; one that fails on the whole model raises what it
    raised.
    """
    options = options or Options()
    parts = grouping.groups(graph, batch)
    ours = reference_errors = _Errors({}, {})
    if errors:
        ours = _errors_of(graph, backend, precision, options, golden, batch)
        if reference is not None and reference.name != backend.name:
            offered = precision if precision in reference.precisions else "fp32"
            plain = Options(threads=options.threads, provider_options=options.provider_options)
            try:
                reference_errors = _errors_of(graph, reference, offered, plain, golden, batch)
            except KernelscopeError:
                reference_errors = _Errors({}, {})  # it cannot run here: errors without a ratio
    measured = (
        _times(graph, parts, backend, precision, options, golden, batch, session, seconds) if times else ()
    )
    found, added = _by_group(parts, measured)
    read = _read(graph, parts)
    layers = []
    for part in parts:
        times_of = found.get(part.output, [])
        layers.append(
            Layer(
                nodes=part.nodes,
                op_type=part.op_type,
                output=part.output,
                inputs=read[part.output],
                shape=part.shape,
                parameters=part.parameters,
                flops=part.flops,
                nbytes=part.nbytes,
                rung=next((time.rung for time in times_of if time.rung), ""),
                chosen=next((time.chosen for time in times_of if time.rung), ""),
                time_ns=sum(time.time_ns for time in times_of) if times_of else None,
                clock=times_of[0].clock if times_of else "",
                isolated=_with_ratio(ours.isolated, reference_errors.isolated, part.output),
                propagated=_with_ratio(ours.propagated, reference_errors.propagated, part.output),
            )
        )
    return (*layers, *added)


def _read(graph: Graph, parts: tuple[Group, ...]) -> dict[str, tuple[str, ...]]:
    """By a group's output: what it reads, each tensor by the output of the group that makes it (a group may
    be read at another tensor than its last), so that the groups make a graph by these names alone."""
    group_of = {node: part.output for part in parts for node in part.nodes}
    maker = {
        tensor: group_of[node.name]
        for node in graph.nodes
        if node.name in group_of
        for tensor in node.outputs
    }
    return {
        part.output: tuple(dict.fromkeys(maker.get(name, name) for name in part.inputs)) for part in parts
    }


def _with_ratio(
    ours: Mapping[str, ErrorStats], reference: Mapping[str, ErrorStats], output: str
) -> ErrorStats | None:
    stats = ours.get(output)
    if stats is None:
        return None
    return msgspec.structs.replace(stats, ratio=accuracy.ratio(stats, reference.get(output)))


# -------------------------------------------------------------------------------------------------- errors


def _errors_of(
    graph: Graph, backend: Backend, precision: str, options: Options, golden: Golden, batch: int
) -> _Errors:
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
        key = (graph.sha256, backend.name, precision, asked, few.images, content)
        if key in _errors:
            return _errors[key]
    errors = _Errors(
        _isolated(graph, backend, precision, options, golden, few),
        _propagated(graph, backend, precision, options, few),
    )
    if key is not None:
        _errors[key] = errors
        while len(_errors) > _KEPT_ERRORS:
            _errors.popitem(last=False)
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
            with _prepared(
                backend, sub, sub.fixed_batch or few.images, precision, _of(part, options)
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
    parts = sorted(grouping.groups(graph, batch), key=lambda part: part.op_type != "Conv")
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
            with _prepared(backend, sub, sub.fixed_batch or batch, precision, _of(part, options)) as session:
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
    with _prepared(backend, told, golden.images, precision, options) as session:
        actual = _answers(session, golden.inputs)
    return {
        name: _stats(actual[name], golden.tensors[name], precision, accuracy.PROPAGATED_FACTOR)
        for name in names
        if name in actual
    }


def _of(part: Group, options: Options) -> Options:
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
def _prepared(
    backend: Backend, graph: Graph, batch: int, precision: str, options: Options
) -> Iterator[Session]:
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


# --------------------------------------------------------------------------------------------------- times


def _times(
    graph: Graph,
    parts: tuple[Group, ...],
    backend: Backend,
    precision: str,
    options: Options,
    golden: Golden,
    batch: int,
    session: Session | None,
    seconds: float,
) -> tuple[OpTime, ...]:
    if session is not None:
        told = session.op_times(seconds)
        if told:
            return told
    measured = []
    # Taken out of the converted model, a group reads and writes float16 as inside it: no casts are timed.
    whole = to_fp16(graph) if precision == "fp16" else graph
    for part in parts:
        try:
            sub = submodel.extract(whole, part.nodes, batch)
            with _prepared(backend, sub, sub.fixed_batch or batch, precision, _of(part, options)) as alone:
                alone.bind({info.name: _filled(golden, info, batch) for info in sub.inputs})
                time_ns = _median_ns(alone, seconds / len(parts))
        except KernelscopeError:  # refused alone, or no memory left for it beside the session
            continue
        measured.append(OpTime(part.nodes, part.op_type, time_ns, "isolated"))
    return tuple(measured)


def _filled(golden: Golden, info: TensorInfo, batch: int) -> np.ndarray:
    """A golden tensor at another batch size, its images repeated, in the type that the model declares.

    Random numbers where it is not known: the time hardly hangs on the values.
    """
    array = golden.tensors.get(info.name.removesuffix(":fp16"))
    if array is None:
        shape = tuple(dim for dim in info.shape if isinstance(dim, int))
        return np.random.default_rng(0).standard_normal(shape).astype(info.dtype)
    return array[np.arange(batch) % golden.images].astype(info.dtype)


def _median_ns(session: Session, seconds: float) -> float:
    """Median time of one run from trains of runs, after a warm-up, within about `seconds`.

    Of the device alone where the session can tell: one operator is often shorter than its launch, which a
    whole model pays once.
    """
    clock = session.time_queued if isinstance(session, Queued) else session.time_runs
    session.time_runs(3)
    one = max(clock(1), 1)
    count = max(1, min(_LONGEST_TRAIN, round(max(_TRAIN_NS, seconds * 1e9 / (2 * _SAMPLES)) / one)))
    samples = max(3, min(_SAMPLES, int(seconds * 1e9 / (one * count))))
    clock(count)
    return statistics.median(clock(count) / count for _ in range(samples))


def _by_group(
    parts: tuple[Group, ...], measured: tuple[OpTime, ...]
) -> tuple[dict[str, list[OpTime]], tuple[Layer, ...]]:
    """Times by the output of the group they belong to, and layers for what belongs to none.

    Several kernels of one group add up. A kernel over nodes of several groups counts for the last of them,
    where its result appears. What a backend adds itself (layout reorders) is one layer an op_type.
    """
    group_of = {node: index for index, part in enumerate(parts) for node in part.nodes}
    found: dict[str, list[OpTime]] = {}
    added: dict[str, list[OpTime]] = {}
    for time in measured:
        indices = [group_of[node] for node in time.nodes if node in group_of]
        if indices:
            found.setdefault(parts[max(indices)].output, []).append(time)
        else:
            added.setdefault(time.op_type, []).append(time)
    return found, tuple(
        Layer(
            nodes=(),
            op_type=op_type,
            output="",
            time_ns=sum(time.time_ns for time in times),
            clock=times[0].clock,
        )
        for op_type, times in added.items()
    )
