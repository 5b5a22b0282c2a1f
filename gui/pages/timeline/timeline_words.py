"""What a timeline says of an event, its colours, and names that fit. Nothing of Qt but colours."""

from __future__ import annotations

from html import escape

from PySide6.QtGui import QColor

from bench.results import api_calls as profile_api
from bench.results import kernel_names as profile_names
from bench.results import parts as profile_parts
from bench.results.events import Activity, ApiCall, Counters, Event, HostSpan, Mark
from bench.views.charts.profile_charts import PARTS
from bench.words import palette, units
from gui.base.theme import Theme
from gui.sessions.timeline_lanes import CALL, MARK
from gui.widgets.colour_scale import blend

# Operators → the categories that every chart has them in; what is not named is "other".
_OPERATORS = {
    "conv": ("Conv", "ConvTranspose", "FusedConv"),
    "pool": ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
    "fc": ("Gemm", "MatMul", "FusedGemm", "FusedMatMul"),
}
# What stands beside each other in the models here differs; any other operator has one of them, by its name.
_OTHER_OPERATORS = {
    "Softmax": "#999933",
    "LogSoftmax": "#999933",
    "LRN": "#B8860B",
    "Relu": "#6B8E23",
    "Tanh": "#A0764A",
    "Sigmoid": "#7A7A3A",
    "Add": "#C07850",
    "Concat": "#8C8CC0",
    "Flatten": "#5F9EA0",
    "Reshape": "#5F9EA0",
    "Transpose": "#9C6B98",
    "ReorderInput": "#B59ACB",
    "ReorderOutput": "#D0A5A5",
}
_SPANS = {
    "pass": "#4477AA",
    "warm-up": "#77AADD",
    "create": "#882255",
    "close": "#AA7766",
    "bind": PARTS["h2d"],
    "run": palette.CATEGORIES["compute"][1],
    "synchronize": PARTS["sync"],
    "fetch": PARTS["d2h"],
}
_CALLS = {
    "launch": "launch",
    "copy": "d2d",
    "alloc": "alloc",
    "sync": "sync",
    "load": "profiler",
    "other": "api",
}
_PHASES = ("#332288", "#882255", "#CC6677", "#DDCC77", "#999933", "#44AA99", "#88CCEE", "#AA4499", "#117733")


def colour(key: str, theme: Theme) -> QColor:
    """The colour of a key of gui.sessions.timeline_lanes or bench.results.parts; lighter where it would
    sink into a dark paper.
    """
    found = QColor(_plain(key))
    if theme.dark and found.lightnessF() < 0.45:
        return blend((found.name(), "#FFFFFF"), 0.3)
    return found


def _plain(key: str) -> str:
    if key.startswith(CALL):
        key = _CALLS.get(key.removeprefix(CALL), "api")
    if key.startswith(MARK):
        name = key.removeprefix(MARK)
        return _SPANS.get(name) or _PHASES[sum(name.encode()) % len(_PHASES)]
    if key.startswith(profile_parts.OP):
        name = key.removeprefix(profile_parts.OP).partition("+")[0]  # of several operators in one, the first
        category = next((c for c, names in _OPERATORS.items() if name in names), "")
        if category:
            return palette.CATEGORIES[category][1]
        if not name:
            return palette.CATEGORIES["compute"][1]
        tones = list(dict.fromkeys(_OTHER_OPERATORS.values()))
        return _OTHER_OPERATORS.get(name) or tones[sum(name.encode()) % len(tones)]
    return PARTS.get(key, "#777777")


def short(event: Event) -> str:
    """The name in a bar."""
    if isinstance(event, Activity):
        if event.kind == "kernel":
            return profile_names.short(event.name)
        return f"{event.name} {units.nbytes(event.nbytes)}" if event.nbytes else event.name
    if isinstance(event, ApiCall):
        return profile_api.bare(event.name)
    if isinstance(event, HostSpan) and event.op_type and event.op_type != event.name:
        return f"{event.op_type} {event.name}"
    if isinstance(event, Mark) and event.kind == "window" and event.run is not None:
        return f"{event.name} {event.run + 1}"
    return event.name


Facts = list[tuple[str, str]]  # what, and its value


def facts(event: Event, zero_ns: int) -> Facts:
    """All that is known of an event; times count from `zero_ns`."""
    found = [
        ("time", units.duration(event.time_ns, 4)),
        ("starts at", f"{(event.start_ns - zero_ns) / 1e6:,.4f} ms"),
    ]
    match event:
        case Activity():
            found += _of_activity(event)
        case ApiCall():
            found += _known(
                ("into", f"the {event.domain}"),
                ("thread", str(event.thread)),
                (f"{event.memory} memory".strip(), units.nbytes(event.nbytes) if event.nbytes else ""),
                ("waited for", event.waited_for),
                ("returned", f"error {event.code}" if event.code else ""),
            )
        case HostSpan():
            inside = event.kind == "inside"
            found += _known(
                ("stream", str(event.stream)) if inside else ("thread", str(event.thread)),
                ("told by", "clock stamps inside the kernel that does it" * inside),
                ("by", event.provider),
                ("rung", event.rung),
            )
            found += [*_copied(event), *_nodes(event)]
        case Mark():
            had = units.duration(event.cpu_ns, 4) if event.cpu_ns is not None else ""
            found += _known(("its thread had a core for", had), ("", event.text))
    return found


def _known(*facts: tuple[str, str]) -> Facts:
    """Those that there is something to say of."""
    return [(what, value) for what, value in facts if value]


def _of_activity(event: Activity) -> Facts:
    found = [("stream", str(event.stream))]
    if event.grid and event.block:
        shared = event.static_shared_nbytes + event.dynamic_shared_nbytes
        found += [
            ("grid", _shape(event.grid)),
            ("block", _shape(event.block)),
            ("registers", f"{event.registers} a thread"),
            ("shared memory", f"{units.nbytes(shared)} a block" if shared else "none"),
        ]
    found += _copied(event)
    way = f"{event.from_memory or 'unknown'} to {event.to_memory or 'unknown'}"
    found += _known(
        ("memory", way if event.from_memory or event.to_memory else ""),
        ("CUDA graph", f"{event.graph}, node {event.graph_node}" if event.graph else ""),
    )
    return [*found, *(_counted(event.counters) if event.counters is not None else ()), *_nodes(event)]


def _copied(event: Activity | HostSpan) -> Facts:
    rate = event.bytes_per_s
    return _known(
        ("bytes", f"{event.nbytes:,} ({units.nbytes(event.nbytes)})" if event.nbytes else ""),
        ("rate", f"{rate / 1e9:,.2f} GB/s" if rate is not None else ""),
    )


def _counted(counters: Counters) -> Facts:
    """What the hardware counted in another pass, each kernel alone."""
    moved, sectors, scattered = counters.dram_nbytes, counters.sectors_a_load, counters.scattered
    warps = counters.warps_share
    return _known(
        ("DRAM bytes counted", f"{moved:,.0f} ({units.nbytes(moved)})" if moved is not None else ""),
        ("sectors a load", f"{sectors:.2f}" if sectors is not None else ""),
        ("sectors of side by side", units.times(scattered) if scattered is not None else ""),
        ("warps there", units.percent(warps, 1) if warps is not None else ""),
    )


def _nodes(event: Activity | HostSpan) -> Facts:
    return _known(
        ("operator", event.op_type),
        ("nodes" if len(event.nodes) > 1 else "node", ", ".join(event.nodes)),
        ("pass", str(event.run + 1) if event.run is not None else ""),
    )


def _shape(size: tuple[int, int, int]) -> str:
    return " × ".join(f"{n:,}" for n in size)


def full_name(event: Event) -> str:
    return profile_names.demangled(event.name) if isinstance(event, Activity) else event.name


def html(event: Event, zero_ns: int, theme: Theme) -> str:
    """The facts as a small table for a read-out."""
    name = full_name(event)
    head = escape(name if len(name) <= 160 else f"{name[:159]}…")
    lines = "".join(
        f'<tr><td style="color:{theme.muted}">{escape(what)}&nbsp;</td><td>{escape(value)}</td></tr>'
        for what, value in facts(event, zero_ns)
    )
    return f"<b>{head}</b><table cellspacing=0>{lines}</table>"
