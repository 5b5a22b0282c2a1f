"""A figure of ours for a line of a course report, out of what was measured; or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

from bench.extras.reports.courses.presets import Course, Line
from bench.extras.reports.figures import Figure, row_of, time
from bench.extras.reports.needs import NEEDS_GPU, NOT_MEASURED, Taken
from bench.extras.reports.presets import Need
from bench.results import rates
from bench.results.events import Activity, Events, HostSpan
from bench.results.rows import Row


def ours(course: Course, line: Line, taken: Taken) -> Figure:
    """What stands beside a published figure."""
    if not line.need:
        return Figure(why=line.note or "nothing of ours is like it")
    need = course.need(line.need)
    if line.need in taken.why:
        return Figure(why=taken.why[line.need])
    found = _VALUES[line.value](need, line, taken)
    fewer = taken.images and taken.images < (line.batch or need.batches[0])
    return replace(found, few=taken.images) if fewer and found.value is not None else found


# ------------------------------------------------------------------------------------------------ comparisons


def _of_row(value: Callable[[Row, Line], Figure]) -> Callable[[Need, Line, Taken], Figure]:
    """Of the row at a line's batch size, or the largest below it that was measured."""

    def found(need: Need, line: Line, taken: Taken) -> Figure:
        measured = taken.run(need.name).measurements()
        wanted = line.batch or need.batches[0]
        batch = max((m.case.batch for m in measured if m.case.batch <= wanted), default=0)
        row = row_of(measured, line.model or need.model, need.backend(line.who), "fp32", batch)
        return Figure(why=NOT_MEASURED) if row is None else value(row, line)

    return found


def _time(row: Row, line: Line) -> Figure:
    if row.median_ns is None:
        return Figure(why=_reason(row))
    return time(row.median_ns, row.low_ns, row.high_ns, row.own_doubts, of=row.measurement)


def _layer(row: Row, line: Line) -> Figure:
    found = next((layer for layer in row.measurement.layers if line.layer in layer.nodes), None)
    if found is None or found.time_ns is None:
        return Figure(why=_reason(row) if row.median_ns is None else f"no layer {line.layer} was timed")
    # A layer's time is known no better than that of the pass that it is a part of.
    share = found.time_ns / row.median_ns if row.median_ns else 0.0
    low, high = (end * share if end and share else None for end in (row.low_ns, row.high_ns))
    return time(found.time_ns, low, high, row.own_doubts, found.rung, row.measurement)


def _top1(row: Row, line: Line) -> Figure:
    if row.measurement.accuracy is None or row.measurement.accuracy.top1 is None:
        return Figure(why=_reason(row))
    return Figure(row.measurement.accuracy.top1, *row.accuracy_interval("top1") or (None, None))


def _reason(row: Row) -> str:
    return row.measurement.reason or row.measurement.disposition


# ----------------------------------------------------------------------------------------- programs, profiles


def _used(name: str, scale: float = 1.0) -> Callable[[Need, Line, Taken], Figure]:
    """What a whole program's process used."""
    get = attrgetter(name)
    return lambda need, line, taken: Figure(float(get(taken.programs[need.name])) * scale)


def _accuracy(need: Need, line: Line, taken: Taken) -> Figure:
    told = taken.programs[need.name].answer
    if told.top1 is None:
        return Figure(why="its images have no labels")
    return Figure(told.top1, *rates.interval(told.top1, told.images))


def _gpu_peak(need: Need, line: Line, taken: Taken) -> Figure:
    """Of a profiled process."""
    for made in taken.run(need.name).measurements():
        if made.case.backend == need.backend(line.who) and made.process is not None:
            return Figure(float(made.process.gpu_peak_nbytes))
    return Figure(why=NOT_MEASURED if need.device == "cpu" else NEEDS_GPU)


def _recorded(need: Need, line: Line, taken: Taken) -> Figure:
    """A layer in a recorded pass: once, so without an interval."""
    from bench.results.event_files import events_in

    folder = taken.run(need.name)
    for made in folder.measurements():
        if made.case.backend == need.backend(line.who) and made.disposition == "ok":
            found = layer_ns(events_in(folder.path, made), line.layer)
            return Figure(found * 1e-9) if found else Figure(why=f"no layer {line.layer} was recorded")
    return Figure(why=NOT_MEASURED)


def layer_ns(events: Events, layer: str) -> float:
    """How long a recorded pass spent in this node and what was fused into it, ns; 0 where it is in none.
    Of one kernel for several steps, its step alone."""
    from bench.views.tables import event_lines

    count = sum(mark.kind == "window" and mark.run is not None for mark in events.marks)
    found = event_lines.device_events(event_lines.in_window(events), "node")
    divided = {e.correlation for e in found if isinstance(e, HostSpan) and e.kind == "inside"}
    whole = (isinstance(e, Activity) and e.correlation in divided for e in found)
    its = (e.time_ns for e, rest in zip(found, whole, strict=True) if layer in e.nodes and not rest)
    return sum(its) / max(1, count)


# ---------------------------------------------------------------------------------------------------- ladders


def _rung(need: Need, line: Line, taken: Taken) -> Figure:
    from bench.results.ladder_rows import rows

    folder = taken.run(need.name)
    found = [r for r in rows(folder.header, folder.measurements()) if r.case.precision == "fp32"]
    if line.rung == "reference":
        of = [r for r in found if r.case.is_reference]
    else:
        of = [r for r in found if not (r.case.is_reference or r.case.yardstick or r.case.user)]
        of = [r for r in of if r.name == line.rung or (line.rung == "fastest" and r.time is not None)]
    row = min(of, key=lambda r: r.time.value if r.time else 0.0, default=None)
    if row is None or row.time is None:
        m = row.measurement if row is not None else None
        return Figure(why=(m.reason or m.disposition) if m is not None else "there is no such rung here")
    low, high = (row.time.low, row.time.high) if row.time.known else (None, None)
    label = "reference" if row.case.is_reference else row.case.label
    return time(row.time.value, low, high, row.doubts, label, row.measurement)


_VALUES: dict[str, Callable[[Need, Line, Taken], Figure]] = {
    "time": _of_row(_time),
    "layer": _of_row(_layer),
    "top1": _of_row(_top1),
    "real": _used("real_s"),
    "user": _used("user_s"),
    "system": _used("system_s"),
    "cpu": _used("cpu"),
    "peak": _used("max_rss_nbytes"),
    "major_faults": _used("major_faults"),
    "minor_faults": _used("minor_faults"),
    "inputs": _used("inputs"),
    "outputs": _used("outputs"),
    "swaps": _used("swaps"),
    "accuracy": _accuracy,
    "forward": _used("answer.forward_ns", 1e-9),
    "rung": _rung,
    "gpu_peak": _gpu_peak,
    "recorded": _recorded,
}
VALUES = tuple(_VALUES)
