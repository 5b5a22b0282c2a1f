"""The roofline of a profiled case: each operator under what this machine was measured to reach."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.profile import parts as profile_parts
from bench.profile.events import Events
from bench.profile.records import CaseProfile, Profile
from bench.results.machine_limits import MachineLimits
from bench.views.charts.definitions import Axis, Chart, Panel, Point, Series
from bench.views.charts.profile_common import colours, footer, keys_of
from bench.views.sentences import profile_findings
from bench.words import palette, units

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
COUNTED = (
    "A line joins where an operator stands by the least bytes it needs and by those that the hardware "
    "counted at device memory, with empty caches before each kernel."
)


def roofline(
    profile: Profile,
    made: CaseProfile,
    events: Events,
    limits: MachineLimits | None,
    among: Sequence[CaseProfile] = (),
) -> Chart | None:
    """Each operator at its operations a byte, under what the machine was measured to reach; where the
    hardware counted, a line leads to where it stands by the bytes that were moved. among: all cases of the
    profile, so that an operator has one colour in all of its charts."""
    found = [f for f in profile_findings.findings(made, events, limits) if f.flops_per_s and f.intensity]
    if limits is None or not found:
        return None
    intensities = [point.x for f in found for point in _places(f)]
    rate = profile_findings.rate_of(limits, made)
    moved_per_s = limits.moved_per_s(profile_findings.of_a_pass(made))
    ridge = rate / moved_per_s
    low = 2.0 ** math.floor(math.log2(min(*intensities, ridge)) - 1)
    high = 2.0 ** math.ceil(math.log2(max(*intensities, ridge)) + 2)  # names stand to the right
    roof = Series(
        label="measured limit",
        backend="",
        precision="",
        colour=palette.MUTED,
        dashed=False,
        marker="",
        points=tuple(Point(x=x, y=min(rate, x * moved_per_s)) for x in (low, ridge, high)),
    )
    op_types = list(dict.fromkeys(f.op_type for f in found))
    keys = dict.fromkeys([*keys_of(among or [made]), *(profile_parts.OP + op_type for op_type in op_types)])
    tints = colours(list(keys))
    series = [
        Series(
            label=f.nodes[0],  # the whole of it is read out on its point
            backend=made.case.backend,
            precision=made.case.precision,
            colour=tints[profile_parts.OP + f.op_type],
            dashed=False,
            marker=MARKERS[op_types.index(f.op_type) % len(MARKERS)],
            points=_places(f),
            # At a single point; two and the line between them are told by the legend.
            named=not f.dram_nbytes,
            leading=f is found[0],
        )
        for f in found
    ]
    ticks = tuple(2.0**power for power in range(round(math.log2(low)), round(math.log2(high)) + 1))
    longest = found[0]
    return Chart(
        name=f"profile-roofline-{made.case.key}",
        model=profile.job.model,
        title=f"{made.case.words}, under the roofline",
        finding=f"{longest.label} takes longest: {longest.sentence}." if longest.sentence else "",
        panels=(
            Panel(
                title="",
                x=Axis(label="operations a byte of the least traffic possible", scale="log", ticks=ticks),
                y=Axis(label="operations a second", unit="FLOP/s", scale="log"),
                series=(roof, *series),
            ),
        ),
        notes=(
            f"Limits measured on this machine: {units.si(rate, 'FLOP/s')} ({limits.multiplied_by}), "
            f"{profile_findings.moved_words(limits, made)}.",
            *([COUNTED] if any(f.dram_nbytes for f in found) else []),
        ),
        footer=footer(profile),
    )


def _places(finding: profile_findings.OpFinding) -> tuple[Point, ...]:
    """An operator by the least bytes, and by those that were counted; to the right with more work a byte."""
    rate = finding.flops_per_s or 0.0
    least = Point(
        x=finding.intensity or 0.0,
        y=rate,
        text=f"{finding.label}: {units.si(rate, 'FLOP/s')}. {finding.sentence}",
    )
    if not finding.dram_nbytes:
        return (least,)
    moved = units.nbytes(finding.dram_nbytes)
    counted = Point(
        x=finding.flops / finding.dram_nbytes,
        y=rate,
        text=f"{finding.label} by the {moved} counted at device memory; least {units.nbytes(finding.nbytes)}",
    )
    return tuple(sorted((least, counted), key=lambda point: point.x))
