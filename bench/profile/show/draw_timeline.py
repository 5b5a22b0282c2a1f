"""One profiled pass of each case as a picture: stages, calls, copies and kernels over one time axis.

With bench.show.draw and bench.show.draw_panels the only modules that import matplotlib, and only when they
draw.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.charts import profile_common as charts
from bench.profile import api as profile_api
from bench.profile import parts as profile_parts
from bench.profile.events import Events, Mark
from bench.profile.records import CaseProfile, Profile
from bench.results.store import write_atomically
from bench.show import draw
from bench.words import palette, units

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, ROW, EDGE = 9.6, 0.26, 1.15  # inches: the picture's width, a row's height, what surrounds the rows
STAGES = {"bind": "#88CCEE", "run": "#C8C8C8", "synchronize": "#AA4499", "fetch": "#DDCC77"}
CALLS = {
    "launch": "#E07B39",
    "copy": "#4477AA",
    "alloc": "#CC6677",
    "sync": "#AA4499",
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
        found.append((profile_parts.label(key), [span(i, charts.PARTS[key]) for i in own]))
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
    hidden = [key for key in HOST.values() if key not in tints and charts.PARTS[key] in seen[""]]
    made += [(charts.PARTS[key], profile_parts.label(key)) for key in hidden]
    made += [(palette.MUTED, "step without a kernel")] if palette.MUTED in seen[""] else []
    made += [(colour, CALL_LABELS[name]) for name, colour in CALLS.items() if colour in seen[calls]]
    return made + [(colour, name) for name, colour in STAGES.items() if colour in seen[stages]]


def figure(
    profile: Profile, cases: Sequence[tuple[CaseProfile, Events]], among: Sequence[CaseProfile] = ()
) -> Figure | None:
    """All cases one over the other on one time axis, each from the beginning of its pass. among: all cases
    of the profile, so that an operator has one colour in all of its pictures."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    keys = charts.keys_of(among or [made for made, _ in cases])
    keys += [k for _, e in cases for a in e.activities if (k := profile_parts.activity_key(a)) not in keys]
    tints = charts.colours(list(dict.fromkeys(keys)))
    shown = [(made, rows(events, tints), middle_pass(events)) for made, events in cases]
    shown = [(made, its, mark) for made, its, mark in shown if its and mark is not None]
    if not shown:
        return None
    shown_rows = [row for _, its, _ in shown for row in its]
    with rc_context(dict[Any, Any](draw.STYLE)):
        count = sum(len(its) + 1 for _, its, _ in shown)
        made = Figure(figsize=(WIDTH, EDGE + ROW * count), layout="constrained")
        axes = made.add_subplot()
        place, ticks, names = 0.0, [], []
        for case, its, mark in shown:
            assert mark is not None
            words = f"{case.case.words}: {units.duration(mark.time_ns)}"
            axes.text(0, place, f" {words}", va="center", size=8.5, weight="bold", color=palette.INK)
            place += 1
            for name, spans in its:
                axes.broken_barh(
                    [(start, lasts) for start, lasts, _ in spans],
                    (place - 0.4, 0.8),
                    facecolors=[colour for *_, colour in spans],
                    linewidth=0,
                )
                ticks.append(place)
                names.append(name)
                place += 1
        axes.set_ylim(place - 0.4, -0.6)
        axes.set_xlim(0, max(mark.time_ns for *_, mark in shown if mark is not None) * 1.01)
        axes.set_yticks(ticks, names)
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: units.duration(ns) if ns else "0"))
        axes.grid(True, axis="x")
        axes.set_title(f"One pass of {profile.job.model}")
        patches = [Patch(color=colour, label=label) for colour, label in legend(shown_rows, tints)]
        made.legend(handles=patches, loc="outside lower center", ncols=6, fontsize=7.5, frameon=False)
    return made


def render(
    profile: Profile,
    cases: Sequence[tuple[CaseProfile, Events]],
    form: str,
    among: Sequence[CaseProfile] = (),
) -> bytes:
    """The picture of `figure` in a format of bench.show.draw's, b"" where no case has a pass."""
    from matplotlib import rc_context

    made = figure(profile, cases, among)
    if made is None:
        return b""
    data = io.BytesIO()
    with rc_context(dict[Any, Any](draw.STYLE)):
        made.savefig(data, format=form, dpi=draw.DPI, metadata=draw.METADATA.get(form))
    return data.getvalue()


def write(
    profile: Profile, cases: Sequence[tuple[CaseProfile, Events]], folder: Path, formats: Sequence[str]
) -> list[Path]:
    """A picture for each batch size, in each format: `profile-timeline`, or where there are several
    `profile-timeline-b16`. The files written, none where no case has a pass."""
    written = []
    among = [made for made, _ in cases]
    batches = list(dict.fromkeys(made.case.batch for made in among))
    for batch in batches:
        shown = [(made, events) for made, events in cases if made.case.batch == batch]
        stem = "profile-timeline" if len(batches) == 1 else f"profile-timeline-b{batch}"
        for form in formats:
            if data := render(profile, shown, form, among):
                written.append(folder / f"{stem}.{form}")
                write_atomically(written[-1], data)
    return written
