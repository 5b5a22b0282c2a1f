"""A profile as charts: the parts of a pass over batch sizes, the cold start, the roofline, and a timeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bench import palette, units
from bench.charts.definitions import Axis, Bar, Category, Chart, Mark, Panel, Part, Point, Series
from bench.ladder.records import Limits
from bench.profile import findings as profile_findings
from bench.profile import parts as profile_parts
from bench.profile.records import CaseProfile, Events, Profile

# What takes most of a model has the colour that it has in every chart; other operators one by one in the
# order in which they are met; what is not an operator has colours of its own.
MAIN = {"Conv": "conv", "Gemm": "fc", "MaxPool": "pool"}
OPERATORS = ("#999933", "#6B5FB0", "#661100", "#88A0DC", "#AA7744", "#4477AA", "#557722")
PARTS = {
    "h2d": "#88CCEE",
    "d2h": "#DDCC77",
    "d2d": "#A8A060",
    "memset": "#7A8B8B",
    "staging": "#1F78D1",
    "launch": "#E07B39",
    "alloc": "#CC6677",
    "sync": "#AA4499",
    "api": "#882255",
    "ort": "#C6A4E0",
    "host": "#5A6B7B",
    "profiler": "#B0B8C0",
    "rest": "#D9D9D9",
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
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")


def charts(
    profile: Profile, profiles: Sequence[CaseProfile], events: Callable[[CaseProfile], Events]
) -> list[Chart]:
    """Those that have something to show."""
    fine = [made for made in profiles if made.disposition == "ok"]
    found = [chart for chart in (breakdown(profile, profiles), cold(profile, fine)) if chart is not None]
    for made in fine:
        limits = profile.limits.get(made.device)
        told = events(made)
        if (roof := roofline(profile, made, told, limits, profiles)) is not None:
            found.append(roof)
    return found


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
        mark = Mark(x=batch, disposition=made.disposition, reason=made.reason)
        return Bar(x=batch, mark=mark) if made.disposition != "ok" else None
    parts = tuple(
        Part(
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
    shown = [made for made in profiles if made.breakdown() is not None]
    if not shown:
        return ""
    last = max(shown, key=lambda made: made.case.batch)
    found = last.breakdown()
    assert found is not None
    first = max(found.parts, key=lambda share: share.time_ns)
    share = first.time_ns / max(found.wall_ns, 1)
    return (
        f"At batch {last.case.batch:,} on {last.case.backend}, {units.percent(share, 1)} of a pass is "
        f"{IN_WORDS.get(first.key, profile_parts.label(first.key))}."
    )


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
                    Part(category="before", value=mark.start_ns * 1e-9),
                    Part(
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
    finding = ", ".join(f"{name} after {units.duration(ns)}" for name, ns in ready.items())
    return Chart(
        name="profile-cold-start",
        model=profile.job.model,
        title=f"The cold start of {profile.job.model}",
        finding=f"In the steady state: {finding}.",
        panels=tuple(panels),
        categories=(
            Category(key="before", label="before", colour="#EEEEEE"),
            Category(key="phase", label="the phase", colour="#332288"),
        ),
        footer=footer(profile),
    )


def roofline(
    profile: Profile,
    made: CaseProfile,
    events: Events,
    limits: Limits | None,
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
    ridge = rate / limits.bytes_per_s
    low = 2.0 ** math.floor(math.log2(min(*intensities, ridge)) - 1)
    high = 2.0 ** math.ceil(math.log2(max(*intensities, ridge)) + 1)
    roof = Series(
        label="measured limit",
        backend="",
        precision="",
        colour=palette.MUTED,
        dashed=False,
        marker="",
        points=tuple(Point(x=x, y=min(rate, x * limits.bytes_per_s)) for x in (low, ridge, high)),
    )
    op_types = list(dict.fromkeys(f.op_type for f in found))
    keys = dict.fromkeys([*keys_of(among or [made]), *(profile_parts.OP + op_type for op_type in op_types)])
    tints = colours(list(keys))
    series = [
        Series(
            label=f.label,
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
            f"Limits measured on this machine: {limits.multiplied_by}; {limits.copied_by}.",
            *([COUNTED] if any(f.dram_nbytes for f in found) else []),
        ),
        footer=footer(profile),
    )


def _places(finding: profile_findings.Finding) -> tuple[Point, ...]:
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


COUNTED = (
    "A line joins where an operator stands by the least bytes it needs and by those that the hardware "
    "counted at device memory, with empty caches before each kernel."
)


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
