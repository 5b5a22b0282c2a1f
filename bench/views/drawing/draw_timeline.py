"""One profiled pass of each case as a picture: stages, calls, copies and kernels over one time axis.

With draw and draw_panels the only modules that import matplotlib, and only when they
draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.results import api_calls as profile_api
from bench.results import parts as profile_parts
from bench.results.events import Events, Mark
from bench.results.profile_records import CaseProfile, Profile
from bench.results.rows import label
from bench.results.store import write_atomically
from bench.views.charts import profile_charts
from bench.views.charts.definitions import Chart
from bench.views.drawing import draw, looks
from bench.views.drawing.looks import PAGE, Look
from bench.views.drawing.page import Page
from bench.words import palette, units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, UNDER = 9.6, 0.26, 0.4  # inches: the picture's width, a row's height, what the time axis takes
LETTER, TIME = 0.075, 0.9  # inches of a letter of a row's name, and of a time on the axis
STAGES = {
    "bind": profile_charts.PARTS["h2d"],
    "run": palette.CATEGORIES["rest"][1],
    "synchronize": profile_charts.PARTS["sync"],
    "fetch": profile_charts.PARTS["d2h"],
}
CALLS = {
    "launch": "#E07B39",
    "copy": "#4477AA",
    "alloc": "#CC6677",
    "sync": profile_charts.PARTS["sync"],
    "load": "#882255",
    "other": "#999999",
}
CALL_LABELS = {
    "launch": "call: launch",
    "copy": "call: copy",
    "alloc": "call: memory",
    "sync": "call: wait",
    "load": "call: load code",
    "other": "call: other",
}
HOST = {"staging": "staging", "run": "ort"}  # intervals with a row of their own, by the part that they are
Span = tuple[int, int, str]  # ns from the pass's beginning, how long, colour


def middle_pass(events: Events) -> Mark | None:
    """The profiled pass of median length, the one to look at."""
    found = sorted(
        (m for m in events.marks if m.kind == "window" and m.run is not None), key=lambda m: m.time_ns
    )
    return found[len(found) // 2] if found else None


def rows(events: Events, tints: dict[str, str]) -> list[tuple[str, list[Span]]]:
    """What one pass consists of: (row's name, its spans)."""
    shown = middle_pass(events)
    if shown is None:
        return []
    low, high = shown.start_ns, shown.end_ns

    def span(event: object, colour: str) -> Span | None:
        start, end = max(event.start_ns, low), min(event.end_ns, high)  # type: ignore[attr-defined]
        return (start - low, end - start, colour) if start < end else None

    found: list[tuple[str, list[Span | None]]] = [
        ("stages", [span(m, STAGES.get(m.name, palette.MUTED)) for m in events.marks if m.kind == "stage"]),
        (
            "CUDA calls",
            [
                span(c, CALLS.get(profile_api.purpose(c.name), palette.MUTED))
                for c in profile_api.outermost(events.calls)
            ],
        ),
    ]
    for name, key in HOST.items():
        own = [i for i in events.intervals if i.kind == name]
        found.append((profile_parts.label(key), [span(i, profile_charts.PARTS[key]) for i in own]))
    steps = [i for i in events.intervals if i.kind in ("step", "node")]
    found.append(("steps", [span(i, tints.get(profile_parts.OP + i.op_type, palette.MUTED)) for i in steps]))
    for stream in sorted({a.stream for a in events.activities}):
        its = [a for a in events.activities if a.stream == stream]
        named = {
            "copies": [a for a in its if a.kind != "kernel"],
            "kernels": [a for a in its if a.kind == "kernel"],
        }
        found += [
            (f"{name}, stream {stream}", [span(a, tints[profile_parts.activity_key(a)]) for a in members])
            for name, members in named.items()
        ]
        inside = [i for i in events.intervals if i.kind == "inside" and i.stream == stream]
        colours = [tints.get(profile_parts.part_of(i), palette.MUTED) for i in inside]
        told = [span(i, colour) for i, colour in zip(inside, colours, strict=True)]
        found.append((f"steps in them, stream {stream}", told))
    drawn = [(name, [s for s in spans if s is not None]) for name, spans in found]
    return [(name, spans) for name, spans in drawn if spans]


def legend(drawn: Sequence[tuple[str, list[Span]]], tints: dict[str, str]) -> list[tuple[str, str]]:
    """(colour, label) of what is drawn: what the device does and steps, then calls, then stages, as one
    colour may mean another thing in another row."""
    stages, calls = "stages", "CUDA calls"
    seen: dict[str, set[str]] = {stages: set(), calls: set(), "": set()}
    for name, spans in drawn:
        seen[name if name in seen else ""] |= {colour for *_, colour in spans}
    made = [(colour, profile_parts.label(key)) for key, colour in tints.items() if colour in seen[""]]
    # A part that other things hide in the breakdown is drawn here all the same.
    hidden = [key for key in HOST.values() if key not in tints and profile_charts.PARTS[key] in seen[""]]
    made += [(profile_charts.PARTS[key], profile_parts.label(key)) for key in hidden]
    made += [(palette.MUTED, "step without a kernel")] if palette.MUTED in seen[""] else []
    made += [(colour, CALL_LABELS[name]) for name, colour in CALLS.items() if colour in seen[calls]]
    return made + [(colour, name) for name, colour in STAGES.items() if colour in seen[stages]]


def described(profile: Profile, cases: Sequence[tuple[CaseProfile, Events]], name: str = "") -> Chart:
    """What is said of the picture, as of a chart."""
    passes = [(made, mark) for made, events in cases if (mark := middle_pass(events)) is not None]
    told = "; ".join(f"{made.case.words}: {units.duration(mark.time_ns)}" for made, mark in passes)
    return Chart(
        name=name,
        model=profile.job.model,
        title=f"One pass of {profile.job.model}",
        finding=f"{told}." if told else "",
        panels=(),
        notes=("Of each case the profiled pass of median length, from its beginning.",),
        footer=profile_charts.footer(profile),
    )


def figure(
    profile: Profile,
    cases: Sequence[tuple[CaseProfile, Events]],
    among: Sequence[CaseProfile] = (),
    look: Look = PAGE,
) -> Figure | None:
    """All cases one over the other on one time axis, each from the beginning of its pass. among: all cases
    of the profile, so that an operator has one colour in all of its pictures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    keys = profile_charts.keys_of(among or [made for made, _ in cases])
    keys += [k for _, e in cases for a in e.activities if (k := profile_parts.activity_key(a)) not in keys]
    tints = profile_charts.colours(list(dict.fromkeys(keys)))
    shown = [(made, rows(events, tints), middle_pass(events)) for made, events in cases]
    shown = [(made, its, mark) for made, its, mark in shown if its and mark is not None]
    if not shown:
        return None
    words = described(profile, cases)
    width = look.inches or WIDTH
    made = Figure(figsize=(width, 1))
    FigureCanvasAgg(made)
    page = Page(made, width, look.margin)
    if look.title:
        page.text(words.title, 13, weight="bold")
    page.legend(
        [
            (Patch(facecolor=colour, edgecolor=palette.edge(colour), linewidth=0.3), label)
            for colour, label in legend([r for _, its, _ in shown for r in its], tints)
        ]
    )
    count = sum(len(its) + 1 for _, its, _ in shown)
    top = page.reserve(ROW * count + UNDER)
    if look.footer:
        for note in words.notes:
            page.text(note, 8, colour=palette.MUTED, gap=0.03)
        draw.small_print(page, words.footer)
    height = page.finish()
    longest = max(len(name) for _, its, _ in shown for name, _ in its)
    left = look.margin + 0.12 + longest * LETTER
    axes = made.add_axes(
        (
            left / width,
            (height - top - ROW * count) / height,
            (width - left - look.margin - 0.1) / width,
            ROW * count / height,
        )
    )
    _spans(axes, shown, max(2, int((width - left - look.margin) / TIME)))
    return made


def _spans(
    axes: Axes,
    shown: Sequence[tuple[CaseProfile, list[tuple[str, list[Span]]], Mark | None]],
    ticks_most: int,
) -> None:
    """A row for each kind of thing of each case, below the case's name."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    place, ticks, names = 0.0, [], []
    for case, its, mark in shown:
        assert mark is not None
        who = label(case.case.backend, case.case.precision)
        words = f"{who}, batch {case.case.batch:,}: {units.duration(mark.time_ns)}"
        axes.text(0, place, f" {words}", va="center", size=8.5, weight="bold", color=palette.INK)
        place += 1
        for name, spans in its:
            axes.broken_barh(
                [(start, lasts) for start, lasts, _ in spans],
                (place - 0.4, 0.8),
                facecolors=[colour for *_, colour in spans],
                edgecolors=[palette.edge(colour) for *_, colour in spans],
                linewidth=0.3,
            )
            ticks.append(place)
            names.append(name)
            place += 1
    axes.set_ylim(place - 0.4, -0.6)
    axes.set_xlim(0, max(mark.time_ns for *_, mark in shown if mark is not None) * 1.01)
    axes.set_yticks(ticks, names)
    axes.xaxis.set_major_locator(MaxNLocator(min(7, ticks_most)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: units.duration(ns) if ns else "0"))
    axes.grid(True, axis="x")


def render(
    profile: Profile,
    cases: Sequence[tuple[CaseProfile, Events]],
    form: str,
    among: Sequence[CaseProfile] = (),
    scale: float = 1.0,
    look: Look = PAGE,
) -> bytes:
    """The picture of `figure` in a format of bench.views.drawing.draw's, b"" where no case has a pass."""
    from matplotlib import rc_context

    with rc_context(dict[Any, Any](draw.STYLE)):
        made = figure(profile, cases, among, look)
        if made is None:
            return b""
        looks.grown(made, look.growth)
        words = described(profile, cases)
        return draw.saved(made, form, scale, words.title, words.finding)


def write(
    profile: Profile,
    cases: Sequence[tuple[CaseProfile, Events]],
    folder: Path,
    formats: Sequence[str],
    scale: float = 1.0,
    look: Look = PAGE,
) -> list[Path]:
    """A picture for each batch size, in each format, with its caption: `profile-timeline`, or where there are
    several `profile-timeline-b16`. The files written, none where no case has a pass."""
    written = []
    among = [made for made, _ in cases]
    batches = list(dict.fromkeys(made.case.batch for made in among))
    for batch in batches:
        shown = [(made, events) for made, events in cases if made.case.batch == batch]
        stem = "profile-timeline" if len(batches) == 1 else f"profile-timeline-b{batch}"
        drawn = {form: render(profile, shown, form, among, scale, look) for form in formats}
        files = {f"{stem}.{form}": data for form, data in drawn.items() if data}
        if files and look.caption:
            files[f"{stem}{looks.CAPTION}"] = looks.caption(described(profile, shown)).encode()
        for name, data in files.items():
            written.append(folder / name)
            write_atomically(written[-1], data)
    return written
