"""What a report says that no two of its figures decide, answered with ours. Ours is of one recording of a
pass: it is told, and decides nothing."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from bench.extras.reports.courses import tables
from bench.extras.reports.courses.presets import Course, Matrix, Remark
from bench.extras.reports.needs import LACKS_GPU, NEEDS_GPU, NOT_MEASURED, Taken
from bench.results import kernel_names as names
from bench.words import units


def sentence(course: Course, remark: Remark, taken: Taken) -> str:
    """What they say, and ours."""
    said = f"They say that {remark.says}, in their words “{remark.quote}”"
    ours, why = told(course, remark, taken)
    return f"{said}. Ours does not answer it: {why}." if why else f"{said}. Ours, recorded once: {ours}."


def told(course: Course, remark: Remark, taken: Taken) -> tuple[str, str]:
    """Ours, or why there is none."""
    if remark.need in taken.why:
        why = taken.why[remark.need]
        return "", LACKS_GPU if why == NEEDS_GPU else why
    ours = REMARKS[remark.of](course, remark, taken)
    return ours, "" if ours else NOT_MEASURED


def _seconds(value: float) -> str:
    return units.si(value, "s", 3)


def _of_batches(found: Mapping[int, float], text: Callable[[float], str]) -> str:
    return ", ".join(f"{text(value)} at batch {batch:,}" for batch, value in sorted(found.items()))


# --------------------------------------------------------------------------------- of kernels and of calls


def _calls(course: Course, remark: Remark, taken: Taken) -> str:
    """Calls into CUDA against what the GPU did: together, and the longest of each."""
    device, why = tables.profiled_table(course, remark, taken, "activities")
    calls, none = tables.profiled_table(course, remark, taken, "calls")
    within, _ = tables.profiled_table(course, remark, taken, "calls", "pass")
    if why or none:
        return ""

    def together(rows: Any) -> str:
        return _seconds(sum(row["time_ns"] for row in rows) * 1e-9)

    def longest(rows: Any) -> str:
        row = max(rows, key=lambda row: row["max_ns"])
        return f"{names.short(row['name'], 60)} with {_seconds(row['max_ns'] * 1e-9)}"

    return (
        f"kernels and copies of a pass take {together(device)} together, the longest is {longest(device)}; "
        f"calls into CUDA take {together(calls)} from the creation of the session to its close, the longest "
        f"is {longest(calls)}, and {together(within)} within the pass"
    )


def _share(course: Course, remark: Remark, taken: Taken) -> str:
    """The share of convolutions in what the device did."""
    rows, why = tables.profiled_table(course, remark, taken, "activities", by="operator")
    if why:
        return ""
    share = sum(row["share"] for row in rows if "Conv" in row["name"].split("+"))
    return f"convolutions take {units.percent(share, 1)} of the time of kernels and copies"


# ------------------------------------------------------------------------------------------ by batch size


def _matrix(course: Course, remark: Remark) -> Matrix:
    return next(matrix for matrix in course.matrices if matrix.need == remark.need)


def grown(theirs: Mapping[int, float], ours: Mapping[int, float]) -> str:
    """How time grows with the batch size, from one end of what was measured here to the other; "" of fewer
    than two sizes."""
    if len(ours) < 2:
        return ""
    first, last = min(ours), max(ours)
    said = (
        f"From batch {first:,} to {last:,} there are {last / first:,.0f} times as many images, and the time "
        f"here is {ours[last] / ours[first]:,.1f} times as long"
    )
    if first in theirs and last in theirs:
        said += f", the published one {theirs[last] / theirs[first]:,.1f} times"
    return f"{said}."


def _growth(course: Course, remark: Remark, taken: Taken) -> str:
    theirs, ours = tables.totals(course, _matrix(course, remark), taken)
    said = grown(theirs, ours).rstrip(".")
    if not said:
        return ""
    each = {batch: seconds / batch for batch, seconds in ours.items()}
    passes = {
        made.case.batch: statistics.median(made.samples_ns)
        for made in tables.profiled(course, remark, taken)
        if made.samples_ns
    }
    if len(passes) > 1:  # the recorded pass is the first of its process
        grows = passes[max(passes)] / passes[min(passes)]
        said += f". Later passes, without the recorder, take {grows:,.1f} times as long"
    return f"{said[0].lower()}{said[1:]}. An image takes {_of_batches(each, _seconds)}"


def _free_host(course: Course, remark: Remark, taken: Taken) -> str:
    """The share of cudaFreeHost in all that the table counts, theirs and ours."""
    matrix = _matrix(course, remark)

    def shares(found: Mapping[int, Mapping[str, float | None]]) -> dict[int, float]:
        return {
            batch: (row["cudaFreeHost"] or 0.0) / total
            for batch, row in found.items()
            if (total := sum(value or 0.0 for value in row.values()))
        }

    ours = shares(tables.own_seconds(course, matrix, taken))
    theirs = shares({int(batch): dict(zip(matrix.columns, ms, strict=True)) for batch, *ms in matrix.rows})
    if not ours:
        return ""

    def of(found: Mapping[int, float]) -> str:
        return _of_batches(found, lambda share: units.percent(share, 1))

    return f"of all that the table counts it takes {of(ours)}; published: {of(theirs)}"


def _cold(course: Course, remark: Remark, taken: Taken) -> str:
    """What comes before the passes that are counted."""
    found = {}
    for made in tables.profiled(course, remark, taken):
        if made.cold:
            found[made.case.batch] = max(mark.start_ns + mark.time_ns for mark in made.cold) * 1e-9
    if not found:
        return ""
    told = f"from the start of the process to the steady state it takes {_of_batches(found, _seconds)}"
    return f"{told}; that is in no figure of a pass, and has a figure of its own"


REMARKS: dict[str, Callable[[Course, Remark, Taken], str]] = {
    "calls": _calls,
    "share": _share,
    "growth": _growth,
    "free_host": _free_host,
    "cold": _cold,
}
