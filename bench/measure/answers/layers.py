"""A model operator by operator on one backend: errors with right inputs, errors that come from the layers
before, and times.

The operators are those of engine.planning.groups, the same nodes for every backend, so that errors and times
of two backends can be shown side by side. Errors are measured at the batch size of the golden images, times
at the case's.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import closing
from time import perf_counter

import msgspec
import numpy as np

from bench.measure.answers import accuracy
from bench.measure.answers.layer_errors import Errors, errors_of, options_of
from bench.measure.answers.oracle import Golden
from bench.results.records import ErrorStats, Layer
from engine.backend import Backend, OpTime, Options, Planned, Queued, Session, is_ort
from engine.graph.graph import Graph, TensorInfo
from engine.ort import precision as ort_precision
from engine.planning import groups as grouping
from engine.planning import mixed, submodel
from engine.planning.groups import Group
from kernels.errors import KernelscopeError

_LONGEST_TRAIN = 200  # runs: a device's queue holds about a thousand pieces of work
_SHORTEST_TRAIN = 20  # runs, of those that are short: what a train begins and ends with is no part of a run
_TRAIN_NS = 2e6  # a sample of an isolated time: a train of runs of at least this
_SAMPLES = 10
_RANDOM = 16  # images that are drawn where none are known


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
    found: Errors | None = None,
    times: bool = True,
    seconds: float = 2.0,
) -> tuple[Layer, ...]:
    """Every operator of `graph` on `backend` at `batch`, in graph order; what the backend adds itself last.

    golden: of `graph` (oracle.golden); a tensor that it lacks has no errors. session: a prepared session at
    `batch` with inputs bound, whose op_times are used; where it is None, or knows none, each group is timed
    as a model of its own (clock "isolated"). reference: the backend whose own errors
    make the ratio, in the same precision if it offers it, else in fp32; None for no ratio. found: the errors,
    where they are known; None: they are taken. seconds: about as long as the times take.
    A backend that fails on a group leaves that figure None; one that fails on the whole model raises what it
    raised.
    """
    options = options or Options()
    parts = grouping.groups(graph, batch)
    ours = errors_of(graph, backend, precision, options, golden) if found is None else found
    reference_errors = Errors({}, {})
    if reference is not None and reference.name != backend.name:
        offered = precision if precision in reference.precisions else "fp32"
        plain = Options(threads=options.threads, provider_options=options.provider_options)
        try:
            reference_errors = errors_of(graph, reference, offered, plain, golden)
        except KernelscopeError:
            reference_errors = Errors({}, {})  # it cannot run here: errors without a ratio
    measured = (
        _times(graph, parts, backend, precision, options, golden, batch, session, seconds) if times else ()
    )
    times_by_group, added = _by_group(parts, measured)
    read = _read(graph, parts)
    layers = []
    for part in parts:
        times_of = times_by_group.get(part.output, [])
        layers.append(
            Layer(
                nodes=part.nodes,
                op_type=part.op_type,
                output=part.output,
                inputs=read[part.output],
                shape=part.shape,
                parameters=part.parameters,
                flops=part.flops,
                nbytes=_nbytes(graph, part, times_of, backend, precision),
                unread=sum(p.unread for p in part.params),
                least_nbytes=sum(
                    p.least_nbytes(mixed.of_nodes(part.nodes, precision, options)) for p in part.params
                ),
                rung=next((time.rung for time in times_of if time.rung), ""),
                chosen=next((time.chosen for time in times_of if time.rung), ""),
                time_ns=sum(time.time_ns for time in times_of) if times_of else None,
                clock=times_of[0].clock if times_of else "",
                isolated=_with_ratio(ours.isolated, reference_errors.isolated, part.output),
                propagated=_with_ratio(ours.propagated, reference_errors.propagated, part.output),
            )
        )
    return (*layers, *added)


def _nbytes(graph: Graph, part: Group, times_of: list[OpTime], backend: Backend, precision: str) -> int:
    """What a group reads and writes at least on this backend; 0 where that is not known."""
    told = [time.nbytes for time in times_of]
    known = [nbytes for nbytes in told if nbytes is not None]
    if known and len(known) == len(told):
        return sum(known)
    if is_ort(backend):
        return ort_precision.nbytes(graph, part.nodes, part.params, precision)
    return part.nbytes if precision == "fp32" else 0


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
    whole = ort_precision.to_fp16(graph) if precision == "fp16" else graph
    for part in parts:
        try:
            sub = submodel.extract(whole, part.nodes, batch)
            of = options_of(part.nodes, options)
            own = mixed.of_nodes(part.nodes, precision, options)
            with closing(backend.prepare(sub, sub.fixed_batch or batch, own, of)) as alone:
                alone.bind({info.name: _filled(golden, info, batch) for info in sub.inputs})
                time_ns = _median_ns(alone, seconds / len(parts))
                steps = alone.plan.steps if isinstance(alone, Planned) else None
        except KernelscopeError:  # refused alone, or no memory left for it beside the session
            continue
        nbytes = None if steps is None else sum(step.nbytes for step in steps)
        measured.append(OpTime(part.nodes, part.op_type, time_ns, "isolated", nbytes=nbytes))
    return tuple(measured)


def _filled(golden: Golden, info: TensorInfo, batch: int) -> np.ndarray:
    """A golden tensor at another batch size, its images repeated, in the type that the model declares.

    Random numbers where it is not known: the time hardly hangs on the values. The few images are converted
    before they are repeated: a whole batch of a large layer in float64 is gigabytes.
    """
    array = golden.tensors.get(info.name.removesuffix(":fp16"))
    if array is not None:
        return array.astype(info.dtype)[np.arange(batch) % golden.images]
    shape = tuple(dim for dim in info.shape if isinstance(dim, int))
    few = (min(shape[0], _RANDOM), *shape[1:]) if shape else ()
    drawn = np.random.default_rng(0).standard_normal(few, np.float32)
    return np.resize(np.asarray(drawn).astype(info.dtype), shape)


def _median_ns(session: Session, seconds: float) -> float:
    """Median time of one run from trains of runs, warmed up, within `seconds`; of a run that takes longer,
    of that one.

    Of the device alone where the session can tell: one operator is often shorter than its launch, which a
    whole model pays once.
    """
    clock = session.time_queued if isinstance(session, Queued) else session.time_runs
    end = perf_counter() + seconds
    one: float = max(clock(1), 1)  # of a run that is not the first: that was in getting ready
    queued = one  # what queueing a run takes the host
    if 4 * one < seconds * 1e9 / 8:
        started = perf_counter()
        one = max(min(one, clock(3) / 3), 1)
        queued = (perf_counter() - started) * 1e9 / 3
    train_ns = min(max(_TRAIN_NS, seconds * 1e9 / (2 * _SAMPLES)), seconds * 1e9 / 6)
    longest = max(_SHORTEST_TRAIN, round(seconds * 1e9 / 6 / queued))
    count = max(1, min(_LONGEST_TRAIN, longest, round(train_ns / one)))
    if count > 1:
        clock(count)  # what is launched in a row is warm in a row
    samples: list[float] = []
    lasted = 0.0  # the longest sample so far, on the host's clock
    while len(samples) < _SAMPLES and (not samples or perf_counter() + lasted < end):
        started = perf_counter()
        samples.append(clock(count) / count)
        lasted = max(lasted, perf_counter() - started)
    return statistics.median(samples)


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
