"""A figure of ours for a line of a course report, out of what was measured; or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.extras.reports.courses.needs import NEEDS_GPU, Taken, backend
from bench.extras.reports.courses.presets import Course, Line, Need
from bench.results import rates
from bench.results.rows import rows


@dataclass(frozen=True)
class Ours:
    """value: in base units (None: `why` says why there is none), with its 95 % interval where it has one.
    rung: which rung it is of; doubts: what speaks against it; few: of how many images it is, where the
    published figure is of more."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    rung: str = ""
    doubts: tuple[str, ...] = ()
    few: int = 0


def ours(course: Course, line: Line, taken: Taken) -> Ours:
    """What stands beside a published figure."""
    if not line.need:
        return Ours(why=line.note or "nothing of ours is like it")
    need = course.need(line.need)
    if line.need in taken.why:
        return Ours(why=taken.why[line.need])
    found = _VALUES[line.value](need, line, taken)
    fewer = taken.images < (line.batch or need.batches[0])
    return replace(found, few=taken.images) if fewer and found.value is not None else found


def _none(need: Need) -> Ours:
    return Ours(why="not measured" if need.device == "cpu" else NEEDS_GPU)


# ------------------------------------------------------------------------------------------------ comparisons


def _row(need: Need, line: Line, taken: Taken) -> Any:
    wanted = line.batch or need.batches[0]
    folder = taken.runs[need.name]
    batches = [m.case.batch for m in folder.measurements()]
    batch = wanted if wanted in batches else max((b for b in batches if b <= wanted), default=0)
    name = backend(need, line.who)
    return next(
        (r for r in rows(folder.measurements()) if r.case.backend == name and r.case.batch == batch), None
    )


def _time(need: Need, line: Line, taken: Taken) -> Ours:
    row = _row(need, line, taken)
    if row is None or row.median_ns is None:
        return Ours(why=_reason(row))
    low, high = (None if end is None else end * 1e-9 for end in (row.low_ns, row.high_ns))
    return Ours(row.median_ns * 1e-9, low, high, doubts=row.own_doubts)


def _layer(need: Need, line: Line, taken: Taken) -> Ours:
    row = _row(need, line, taken)
    if row is None:
        return Ours(why="not measured")
    found = next((layer for layer in row.measurement.layers if line.layer in layer.nodes), None)
    if found is None or found.time_ns is None:
        return Ours(why=_reason(row) if row.median_ns is None else f"no layer {line.layer} was timed")
    seconds = found.time_ns * 1e-9
    if not row.median_ns or row.low_ns is None or row.high_ns is None:
        return Ours(seconds, rung=found.rung, doubts=row.own_doubts)
    # A layer's time is known no better than that of the pass that it is a part of.
    low, high = (seconds * end / row.median_ns for end in (row.low_ns, row.high_ns))
    return Ours(seconds, low, high, rung=found.rung, doubts=row.own_doubts)


def _top1(need: Need, line: Line, taken: Taken) -> Ours:
    row = _row(need, line, taken)
    if row is None or row.measurement.accuracy is None or row.measurement.accuracy.top1 is None:
        return Ours(why=_reason(row))
    ends = row.accuracy_interval("top1") or (None, None)
    return Ours(row.measurement.accuracy.top1, *ends)


def _reason(row: Any) -> str:
    return "not measured" if row is None else row.measurement.reason or row.measurement.disposition


# --------------------------------------------------------------------------------------------------- programs


def _used(name: str) -> Callable[[Need, Line, Taken], Ours]:
    return lambda need, line, taken: Ours(float(getattr(taken.programs[need.name], name)))


def _accuracy(need: Need, line: Line, taken: Taken) -> Ours:
    told = taken.programs[need.name].answer
    if told.top1 is None:
        return Ours(why="its images have no labels")
    return Ours(told.top1, *rates.interval(told.top1, told.images))


def _forward(need: Need, line: Line, taken: Taken) -> Ours:
    return Ours(taken.programs[need.name].answer.forward_ns * 1e-9)


# ---------------------------------------------------------------------------------------------------- ladders


def _rung(need: Need, line: Line, taken: Taken) -> Ours:
    from bench.ladder.show.rows import rows as rung_rows

    folder = taken.runs[need.name]
    found = rung_rows(folder.header, folder.measurements())
    of = [r for r in found if not (r.case.is_reference or r.case.yardstick or r.case.user)]
    of = [r for r in of if r.case.precision == "fp32"]
    if line.rung == "fastest":
        timed = [r for r in of if r.time is not None]
        row = min(timed, key=lambda r: r.time.value if r.time else 0.0, default=None)
    elif line.rung == "reference":
        row = next((r for r in found if r.case.is_reference and r.case.precision == "fp32"), None)
    else:
        row = next((r for r in of if r.name == line.rung), None)
    if row is None or row.time is None:
        m = row.measurement if row is not None else None
        return Ours(why=(m.reason or m.disposition) if m is not None else "there is no such rung here")
    known = row.time.known
    return Ours(
        row.time.value * 1e-9,
        row.time.low * 1e-9 if known else None,
        row.time.high * 1e-9 if known else None,
        rung="reference" if row.case.is_reference else row.case.label,
        doubts=row.doubts,
    )


# --------------------------------------------------------------------------------------------------- profiles


def _process(name: str) -> Callable[[Need, Line, Taken], Ours]:
    def value(need: Need, line: Line, taken: Taken) -> Ours:
        wanted = backend(need, line.who)
        for made in taken.runs[need.name].measurements():
            if made.case.backend == wanted and made.process is not None:
                return Ours(float(getattr(made.process, name)))
        return _none(need)

    return value


_VALUES: dict[str, Callable[[Need, Line, Taken], Ours]] = {
    "time": _time,
    "layer": _layer,
    "top1": _top1,
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
    "forward": _forward,
    "rung": _rung,
    "gpu_peak": _process("gpu_peak_nbytes"),
}
VALUES = tuple(_VALUES)
