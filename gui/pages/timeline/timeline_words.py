"""What a timeline says of an event, its colours, and names that fit. Nothing of Qt but colours."""

from __future__ import annotations

from html import escape

from PySide6.QtGui import QColor

from bench.profile import api as profile_api
from bench.profile import parts as profile_parts
from bench.profile.events import Activity, ApiCall, Counters, Event, HostSpan, Mark
from bench.profile.show import names as profile_names
from bench.profile.show.profile_common import PARTS
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
    """The colour of a key of gui.sessions.timeline_lanes or bench.profile.parts; lighter where it would
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


def facts(event: Event, zero_ns: int) -> list[tuple[str, str]]:
    """(what, value) of all that is known of an event; times count from `zero_ns`."""
    found = [
        ("time", units.duration(event.time_ns, 4)),
        ("starts at", f"{(event.start_ns - zero_ns) / 1e6:,.4f} ms"),
    ]
    if isinstance(event, Activity):
        found += _of_activity(event)
    elif isinstance(event, ApiCall):
        found += [("into", f"the {event.domain}"), ("thread", str(event.thread))]
        if event.nbytes:
            found.append((f"{event.memory} memory".strip(), units.nbytes(event.nbytes)))
        if event.waited_for:
            found.append(("waited for", event.waited_for))
        if event.code:
            found.append(("returned", f"error {event.code}"))
    elif isinstance(event, HostSpan):
        if event.kind == "inside":
            found.append(("stream", str(event.stream)))
            found.append(("told by", "clock stamps inside the kernel that does it"))
        else:
            found.append(("thread", str(event.thread)))
        found += [(k, v) for k, v in (("by", event.provider), ("rung", event.rung)) if v]
        found += _copied(event)
        found += _nodes(event)
    elif isinstance(event, Mark):
        if event.cpu_ns is not None:
            found.append(("its thread had a core for", units.duration(event.cpu_ns, 4)))
        if event.text:
            found.append(("", event.text))
    return found


def _of_activity(event: Activity) -> list[tuple[str, str]]:
    found = [("stream", str(event.stream))]
    if event.grid and event.block:
        found.append(("grid", _shape(event.grid)))
        found.append(("block", _shape(event.block)))
        found.append(("registers", f"{event.registers} a thread"))
        shared = event.static_shared_nbytes + event.dynamic_shared_nbytes
        found.append(("shared memory", f"{units.nbytes(shared)} a block" if shared else "none"))
    found += _copied(event)
    if event.from_memory or event.to_memory:
        found.append(("memory", f"{event.from_memory or 'unknown'} to {event.to_memory or 'unknown'}"))
    if event.graph:
        found.append(("CUDA graph", f"{event.graph}, node {event.graph_node}"))
    if event.counters is not None:
        found += _counted(event.counters)
    return [*found, *_nodes(event)]


def _copied(event: Activity | HostSpan) -> list[tuple[str, str]]:
    found = [("bytes", f"{event.nbytes:,} ({units.nbytes(event.nbytes)})")] if event.nbytes else []
    if (rate := event.bytes_per_s) is not None:
        found.append(("rate", f"{rate / 1e9:,.2f} GB/s"))
    return found


def _counted(counters: Counters) -> list[tuple[str, str]]:
    """What the hardware counted in another pass, each kernel alone."""
    found = []
    if (moved := counters.dram_nbytes) is not None:
        found.append(("DRAM bytes counted", f"{moved:,.0f} ({units.nbytes(moved)})"))
    if (sectors := counters.sectors_a_load) is not None:
        found.append(("sectors a load", f"{sectors:.2f}"))
    if (scattered := counters.scattered) is not None:
        found.append(("sectors of side by side", units.times(scattered)))
    if counters.warps_share is not None:
        found.append(("warps there", units.percent(counters.warps_share, 1)))
    return found


def _nodes(event: Activity | HostSpan) -> list[tuple[str, str]]:
    found = [("operator", event.op_type)] if event.op_type else []
    if event.nodes:
        found.append(("nodes" if len(event.nodes) > 1 else "node", ", ".join(event.nodes)))
    if event.run is not None:
        found.append(("pass", str(event.run + 1)))
    return found


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
