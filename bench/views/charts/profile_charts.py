"""A profile as charts: passes and their parts over batch sizes, the cold start, the roofline of each case."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from bench.results import parts as profile_parts
from bench.results import stats
from bench.results.events import Events
from bench.results.machine_limits import MachineLimits
from bench.results.profile_records import CaseProfile, Profile
from bench.views.charts.definitions import (
    Axis,
    Bar,
    BarPart,
    Category,
    Chart,
    MissingPoint,
    Panel,
    Point,
    Series,
)
from bench.views.sentences import profile_findings
from bench.words import palette, units


def charts(
    profile: Profile, profiles: Sequence[CaseProfile], events: Callable[[CaseProfile], Events]
) -> list[Chart]:
    """Those that have something to show."""
    fine = [made for made in profiles if made.disposition == "ok"]
    made_of_all = (breakdown(profile, profiles), times(profile, profiles), cold(profile, fine))
    found = [chart for chart in made_of_all if chart is not None]
    for made in fine:
        limits = profile.limits.get(made.device)
        told = events(made)
        if (roof := roofline(profile, made, told, limits, profiles)) is not None:
            found.append(roof)
    return found


def breakdown(profile: Profile, profiles: Sequence[CaseProfile], window: str = "pass") -> Chart | None:
    """A panel a backend: every pass divided into parts that add up to its wall, as shares of it, over batch
    sizes; the wall stands above each bar."""
    keys = keys_of(profiles, window)
    if not keys:
        return None
    batches = sorted({made.case.batch for made in profiles})
    panels = []
    for name in dict.fromkeys(made.case.backend for made in profiles):
        own = {made.case.batch: made for made in profiles if made.case.backend == name}
        bars = [_bar(batch, own.get(batch), keys, window) for batch in batches]
        panels.append(
            Panel(
                title=name,
                x=Axis(label="batch", ticks=tuple(float(batch) for batch in batches)),
                y=Axis(label="share of the profiled pass", unit="%", ticks=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
                bars=tuple(bar for bar in bars if bar is not None),
            )
        )
    tints = colours(keys)
    return Chart(
        name="profile-breakdown",
        model=profile.job.model,
        title=f"Where a pass of {profile.job.model} goes",
        finding=_breakdown_finding(profiles),
        panels=tuple(panels),
        categories=tuple(
            Category(key=key, label=profile_parts.label(key), colour=tints[key]) for key in keys
        ),
        notes=(
            "The parts add up to the wall of the profiled passes, which stands above each bar; every "
            "nanosecond is given to one of them, the device's work first.",
        ),
        footer=footer(profile),
    )


def _bar(batch: int, made: CaseProfile | None, keys: Sequence[str], window: str) -> Bar | None:
    if made is None:
        return None
    found = made.breakdown(window)
    if found is None or not found.wall_ns:
        mark = MissingPoint(x=batch, disposition=made.disposition, reason=made.reason)
        return Bar(x=batch, mark=mark) if made.disposition != "ok" else None
    parts = tuple(
        BarPart(
            category=key,
            value=found.part(key) / found.wall,
            text=f"{profile_parts.label(key)}: {units.duration(found.part(key))}, "
            f"{units.percent(found.part(key) / found.wall, 1)}",
        )
        for key in keys
        if found.part(key)
    )
    return Bar(x=batch, parts=parts, total=units.duration(found.wall))


def _breakdown_finding(profiles: Sequence[CaseProfile]) -> str:
    """What takes most of a pass at each backend's largest batch."""
    largest: dict[str, CaseProfile] = {}
    for made in sorted(profiles, key=lambda made: made.case.batch):
        if made.breakdown() is not None:
            largest[made.case.backend] = made
    told: dict[int, list[str]] = {}
    for name in dict.fromkeys(made.case.backend for made in profiles):
        if name not in largest:
            continue
        found = largest[name].breakdown()
        assert found is not None
        first = max(found.parts, key=lambda share: share.time_ns)
        share = units.percent(first.time_ns / max(found.wall_ns, 1), 1)
        what = IN_WORDS.get(first.key, profile_parts.label(first.key))
        told.setdefault(largest[name].case.batch, []).append(f"{share} of a pass on {name} is {what}")
    words = "; ".join(f"at batch {at:,}, {', '.join(said)}" for at, said in told.items())
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def times(profile: Profile, profiles: Sequence[CaseProfile]) -> Chart | None:
    """A whole pass without a profiler over batch size, a line a backend; None for a single batch size."""
    series: list[Series] = []
    grown: dict[str, list[str]] = {}
    for name in dict.fromkeys(made.case.backend for made in profiles):
        own = [made for made in profiles if made.case.backend == name]
        fine = [made for made in own if made.disposition == "ok" and made.pass_ns]
        points = [_time(made) for made in sorted(fine, key=lambda made: made.case.batch)]
        medians = [(round(point.x), point.y) for point in points]
        marks = tuple(
            MissingPoint(x=made.case.batch, disposition=made.disposition, reason=made.reason)
            for made in own
            if made.disposition != "ok"
        )
        series.append(
            Series(
                label=name,
                backend=name,
                precision=profile.job.precision,
                colour=palette.backend(name),
                dashed=name.startswith("ort"),
                marker=palette.marker(profile.job.precision),
                points=tuple(points),
                marks=marks,
            )
        )
        if len(medians) > 1:
            (first, least), (last, most) = medians[0], medians[-1]
            way = f"from batch {first:,} to {last:,} ({last / first:,.4g}× the images)"
            grown.setdefault(way, []).append(f"{units.times(most / least)} the time on {name}")
    batches = sorted({made.case.batch for made in profiles})
    if not grown:
        return None
    said = "; ".join(f"{way} a pass takes {', '.join(found)}" for way, found in grown.items())
    passes = "whole passes" if profile.job.warm_up else "a new session's first passes"
    return Chart(
        name="profile-times",
        model=profile.job.model,
        title=f"A whole pass of {profile.job.model}",
        finding=f"{said[:1].upper()}{said[1:]}.",
        panels=(
            Panel(
                title="",
                x=Axis(label="batch", scale="log", ticks=tuple(float(batch) for batch in batches)),
                y=Axis(label="a pass", unit="s", scale="log"),
                series=tuple(series),
                dodge=True,
            ),
        ),
        notes=(
            f"Medians of {passes} without a profiler, with 95 % intervals: inputs copied in, forward pass, "
            "outputs copied out.",
        ),
        footer=footer(profile),
    )


def _time(made: CaseProfile) -> Point:
    """What a pass takes without a profiler, with its interval where there is more than one."""
    found = stats.median_interval(made.pass_ns)
    value = statistics.median(made.pass_ns)  # as the tables have it, also where the clock ticks coarsely
    low, high = min(found.low, value), max(found.high, value)
    text = units.duration(value)
    if not found.known:
        return Point(x=made.case.batch, y=value * 1e-9, text=text)
    text += f" ({units.duration(low)} to {units.duration(high)})"
    return Point(x=made.case.batch, y=value * 1e-9, low=low * 1e-9, high=high * 1e-9, text=text)


def cold(profile: Profile, profiles: Sequence[CaseProfile]) -> Chart | None:
    """The waterfall of each backend's cold start at the smallest batch: a panel a backend, a bar a phase,
    which begins where the one before it ended."""
    panels = []
    ready: dict[str, int] = {}
    for name in dict.fromkeys(made.case.backend for made in profiles):
        made = min((m for m in profiles if m.case.backend == name), key=lambda m: m.case.batch)
        if not made.cold:
            continue
        ready[name] = made.cold[-1].end_ns
        bars = tuple(
            Bar(
                x=place,
                parts=(
                    BarPart(category="before", value=mark.start_ns * 1e-9),
                    BarPart(
                        category="phase",
                        value=mark.time_ns * 1e-9,
                        text=f"{mark.name}: {units.duration(mark.time_ns)}"
                        + (f" ({mark.text})" if mark.text else ""),
                    ),
                ),
                total=units.duration(mark.time_ns),
            )
            for place, mark in enumerate(made.cold)
        )
        labels = tuple(mark.name for mark in made.cold)
        panels.append(
            Panel(
                title=f"{name}, batch {made.case.batch:,}",
                x=Axis(label="", ticks=tuple(range(len(labels))), labels=labels),
                y=Axis(label="since the process was started", unit="s"),
                bars=bars,
            )
        )
    if not panels:
        return None
    finding = ", ".join(f"{name} {units.duration(ns)}" for name, ns in ready.items())
    return Chart(
        name="profile-cold-start",
        model=profile.job.model,
        title=f"The cold start of {profile.job.model}",
        finding=f"From the start of the process to the steady state: {finding}.",
        panels=tuple(panels),
        categories=(
            Category(key="before", label="before", colour="#EEEEEE"),
            Category(key="phase", label="the phase", colour="#332288"),
        ),
        footer=footer(profile),
    )


# What takes most of a model has the colour that it has in every chart; other operators one by one in the
# order in which they are met; what is not an operator has colours of its own.
MAIN = {"Conv": "conv", "Gemm": "fc", "MaxPool": "pool"}
OPERATORS = ("#999933", "#6B5FB0", "#661100", "#88A0DC", "#AA7744", "#4477AA", "#557722")
PARTS = {
    "h2d": palette.CATEGORIES["h2d"][1],
    "d2h": palette.CATEGORIES["d2h"][1],
    "d2d": "#A8A060",
    "memset": "#7B8C8C",
    "staging": "#1173CC",
    "launch": "#ED8643",
    "alloc": "#C15C6E",
    "sync": palette.CATEGORIES["sync"][1],
    "api": "#D56B99",
    "ort": "#C6A4E0",
    "host": "#4F6070",
    "profiler": "#BFC7D0",
    "rest": palette.CATEGORIES["rest"][1],
}
# Parts whose label is no end of a sentence.
IN_WORDS = {
    "h2d": "copying in",
    "d2h": "copying out",
    "d2d": "copying on the device",
    "staging": "the host's filling and emptying of page-locked memory",
    "launch": "waiting for what is being launched",
    "ort": "ONNX Runtime's own work on the host",
    "host": "the host's own code",
    "profiler": "the profiler's own work",
    "rest": "not explained",
}


def colours(keys: Sequence[str]) -> dict[str, str]:
    """A colour for each part; an operator's, where it is none of the main ones, by its place among them."""
    operators = [key for key in keys if key.startswith(profile_parts.OP)]
    main = {key: MAIN[name] for key in operators if (name := key.removeprefix(profile_parts.OP)) in MAIN}
    found = {key: palette.CATEGORIES[category][1] for key, category in main.items()}
    others = [key for key in operators if key not in found]
    found |= {key: OPERATORS[index % len(OPERATORS)] for index, key in enumerate(others)}
    return found | {key: PARTS.get(key, palette.MUTED) for key in keys if key not in found}


def keys_of(profiles: Sequence[CaseProfile], window: str = "pass") -> list[str]:
    """The parts of all these cases in stacking order: operators, the longest first, then the others."""
    total: dict[str, float] = {}
    for made in profiles:
        if (found := made.breakdown(window)) is not None:
            for share in found.parts:
                # A share of its own pass: a large batch is not to decide alone.
                total[share.key] = total.get(share.key, 0.0) + share.time_ns / max(found.wall_ns, 1)
    operators = sorted((key for key in total if key.startswith(profile_parts.OP)), key=lambda k: -total[k])
    return operators + [key for key in profile_parts.OTHERS if key in total]


def footer(profile: Profile) -> tuple[str, ...]:
    """Machine, software and command."""
    env = profile.environment
    software = [
        f"{name} {version}"
        for name, version in env.packages.items()
        if name.startswith(("numpy", "onnxr", "cupy", "cupti"))
    ]
    driver = f"driver {env.driver}" if env.driver else ""
    lines = [
        " · ".join(filter(None, [env.machine, env.cpu, env.gpu, driver, env.os])),
        " · ".join(filter(None, [*software, profile.created_at.replace("T", " ")[:16]])),
        profile.command,
    ]
    return tuple(filter(None, lines))


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
    rate = profile_findings.rate_of(limits, made.case.precision)
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
