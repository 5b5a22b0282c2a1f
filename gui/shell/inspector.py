"""Everything known of the selected measurement, in words and figures, ready to be copied."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QUrl, Signal
from PySide6.QtWidgets import QTextBrowser, QVBoxLayout, QWidget

from bench.results import doubt, rates
from bench.results.records import PREPARE_PHASES, ErrorStats, Layer, Measurement, StopReason
from bench.results.rows import Row, label
from bench.views.charts import breakdown
from bench.views.tables.comparison_tables import END_TO_END, WORDS
from bench.words import orders, palette, units
from gui.base.boxes import filled
from gui.base.scale import WIDE
from gui.base.theme import Theme, Theming
from gui.sessions.run_state import RunState
from gui.widgets.labels import TERM, open_term, with_links

Fact = tuple[str, str]
CHOSEN = {
    "timed": " (the fastest of ours, as timed on this machine)",
    "named": " (chosen by name)",
    "ladder": " (the ladder's highest)",
    "layout": " (for the layout in which its tensors travel)",
}
STOPS: dict[StopReason, str] = {
    "verdict": "the verdict was clear",
    "interval": "the interval was within 1 %",
    "exhausted": "more rounds would not have made the interval narrower",
    "budget": "the time budget was spent",
    "max_samples": "there were enough samples",
}
RIGHT = "right answers"  # what "ok" is said of: doubts of the time stand below it
EMPTY = "Select a point in a chart, a row of a table or a problem to see its details."


class Inspector(QWidget):
    """A view for gui.shell.redraw: dirty when the state or the selection has changed since it drew.
    `ladder_wanted` carries the Case and the Layer whose ladder is wanted.
    """

    ladder_wanted = Signal(object, object)

    def __init__(self, state: RunState, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._theming = theming
        self._drawn: object = None
        self._about = "case"
        self._text = QTextBrowser()
        self._text.setOpenLinks(False)
        self._text.anchorClicked.connect(self._on_link)
        self._text.setFrameShape(QTextBrowser.Shape.NoFrame)
        self._text.document().setDocumentMargin(WIDE)
        self._text.setAccessibleName("Details of the selected measurement")
        filled(QVBoxLayout(self), self._text, margins=(0, 0, 0, 0))
        state.selection_changed.connect(state.changed)
        theming.changed.connect(self._restyle)

    def tell_of(self, about: str) -> None:
        """What the page in front has selected: its "case", or the "layer" of one; "" where it has neither."""
        if about != self._about:
            self._about = about
            self._state.changed.emit()

    @property
    def text(self) -> str:
        """What is shown, without its form."""
        return self._text.toPlainText()

    @property
    def dirty(self) -> bool:
        return self._drawn != self._shown()

    def redraw(self) -> None:
        self._drawn = self._shown()
        measurement = self._state.measurement(self._state.case)
        html = page(measurement, self._state, self._theming.theme, self._about == "layer")
        if html != self._text.property("html"):
            at = self._text.verticalScrollBar().value()
            self._text.setProperty("html", html)
            self._text.setHtml(html)
            self._text.verticalScrollBar().setValue(at)

    def _shown(self) -> object:
        case = self._state.case
        row = id(self._state.row(case))
        return id(self._state.measurement(case)), row, case, self._state.layer, self._about

    def _on_link(self, link: QUrl) -> None:
        if link.scheme() == TERM:
            open_term(link.path())
            return
        measurement = self._state.measurement(self._state.case)
        layer = _layer_of(measurement, self._state.layer) if measurement is not None else None
        if measurement is not None and layer is not None:
            self.ladder_wanted.emit(measurement.case, layer)

    def _restyle(self) -> None:
        self._drawn = None
        self._state.changed.emit()


def page(measurement: Measurement | None, state: RunState, theme: Theme, layers: bool = False) -> str:
    """The inspector's page as HTML: of a measurement, or of the layer of it that is selected."""
    case = state.case
    if case is None:
        return f'<p style="color:{theme.muted}">{EMPTY}</p>'
    swatch = palette.backend(case.backend)
    head = (
        f'<h3 style="margin-bottom:0"><span style="color:{swatch}">■</span> '
        f"{escape(label(case.backend, case.precision))}</h3>"
        f'<div style="color:{theme.muted}">{escape(case.words)}</div>'
    )
    if measurement is None:
        return head + "<p>Not measured yet.</p>"
    row = state.row(case) or Row(measurement, case.model)
    parts = [head, _disposition(measurement, theme)]
    if row.doubts:
        told = "<br>".join(escape(f"{doubt.MARK.strip()} {text}") for text in row.doubts)
        parts.append(f'<p style="color:{theme.warning}">{told}</p>')
    if layers and state.layer and (layer := _layer_of(measurement, state.layer)) is not None:
        parts.append('<p><a href="ladder">Open in ladder</a></p>' if layer.nodes else "")
        parts.append(_section(f"Layer {layer.output}", layer_facts(layer), theme))
        return "".join(parts)
    parts += [_section(title, facts, theme) for title, facts in sections(row) if facts]
    return "".join(parts)


def sections(row: Row) -> list[tuple[str, list[Fact]]]:
    """Titles with their facts (name, value), in the order shown; a section may be empty."""
    m = row.measurement
    return [
        ("Forward pass alone", _times(row)),
        ("Phases, once", _phases(m, PREPARE_PHASES)),
        ("One pass, host to host, copies included", _parts(m)),
        ("End to end", _end_to_end(row)),
        ("Accuracy", _accuracy(m)),
        ("Output against the float64 oracle", error_facts(m.accuracy.output if m.accuracy else None)),
        ("Session", [_fact(name, value) for name, value in m.facts.items()]),
        ("Memory", [(kind.replace("_", " "), units.nbytes(size)) for kind, size in m.memory.items()]),
        ("Device meanwhile", _telemetry(m)),
        ("Validity", _validity(m)),
    ]


def _fact(name: str, value: str) -> Fact:
    """What a session tells, as people read it: bytes with their unit, a moment without its zone."""
    words = name.removesuffix("_nbytes").replace("_", " ")
    if name.endswith("_nbytes") and value.isdigit():
        return words, units.nbytes(int(value))
    return words, value.replace("T", " ")[:19] if name.endswith("_at") else value


def _known(*facts: Fact) -> list[Fact]:
    """Those that there is something to say of."""
    return [(name, value) for name, value in facts if value]


def layer_facts(layer: Layer) -> list[Fact]:
    time_ns, errors = layer.time_ns, (("isolated", layer.isolated), ("propagated", layer.propagated))
    return [
        ("nodes", ", ".join(layer.nodes)),
        ("operator", layer.op_type),
        ("shape", " × ".join(map(str, layer.shape))),
        ("parameters", f"{layer.parameters:,}"),
        ("work", units.si(layer.flops, "FLOP")),
        ("data", units.nbytes(layer.nbytes)),
        *_known(
            ("kernel", layer.rung and layer.rung + CHOSEN.get(layer.chosen, "")),
            ("time", f"{units.duration(time_ns)} ({layer.clock} clock)" if time_ns is not None else ""),
            ("rate", units.si(layer.flops / time_ns * 1e9, "FLOP/s") if time_ns is not None else ""),
        ),
        *((f"{kind}: {name}", value) for kind, error in errors for name, value in error_facts(error)),
    ]


def error_facts(error: ErrorStats | None) -> list[Fact]:
    if error is None:
        return []
    return _known(
        ("relative L2 error", f"{error.rel_l2:.2e} (bound {error.bound:.0e})"),
        ("largest error", f"{error.max_abs:.2e}"),
        ("mean error", f"{error.mean_abs:.2e}"),
        ("largest, relative", f"{error.max_rel:.2e}"),
        ("relative to the reference's error", units.times(error.ratio) if error.ratio is not None else ""),
        ("judged", "within bounds" if error.ok else error.reason or "out of bounds"),
    )


def _times(row: Row) -> list[Fact]:
    m, median_ns = row.measurement, row.median_ns

    def own(text: str) -> str:
        return doubt.marked(text, row.own_doubts)

    facts: list[Fact] = []
    if median_ns is not None:
        interval = "not known from one sample"
        if row.low_ns is not None and row.high_ns is not None:
            interval = f"{units.duration(row.low_ns)} to {units.duration(row.high_ns)}"
        facts += [
            ("median", own(units.duration(median_ns))),
            ("95 % interval", interval),
            ("an image", own(units.duration(median_ns / row.case.batch))),
            ("throughput", own(f"{units.si(row.images_per_s or 0)} images/s")),
        ]
    if row.speedup is not None:
        told = orders.cell(row.verdict, row.speedup, row.speedup_low, row.speedup_high)
        told = doubt.marked(told, row.speedup_doubts)
        why = orders.reason(row.undecided) if row.undecided else ""
        facts += _known((f"against {m.reference}", f"{told}, by paired rounds"), ("why", why))
    first_ns = m.first_run_ns
    return facts + _known(("first run, once", own(units.duration(first_ns)) if first_ns is not None else ""))


def _phases(m: Measurement, names: Sequence[str]) -> list[Fact]:
    return [(name, units.duration(m.phases[name])) for name in names if name in m.phases]


def _parts(m: Measurement) -> list[Fact]:
    """The parts that its bar in the chart is made of, and their sum."""
    facts = []
    split = breakdown.split(m)
    if split is not None:
        for key, ns in split.parts_ns.items():
            share = units.percent(ns / split.total_ns, 1)
            facts.append((palette.CATEGORIES[key][0], f"{units.duration(ns)} ({share})"))
        facts.append(("host to host", doubt.marked(units.duration(split.total_ns), doubt.own(m))))
    facts += [(f"data set, {name}", units.duration(ns)) for name, ns in m.dataset_ns.items()]
    return facts


def _end_to_end(row: Row) -> list[Fact]:
    """Host images to host answers, several batches in flight: another clock than that of a forward pass."""
    m, found = row.measurement, row.end_to_end
    if found is None:
        return _known(("not measured", m.end_to_end.refused if m.end_to_end is not None else ""))
    return _known(*((c.heading.removeprefix("end to end: "), c.shown(row)) for c in END_TO_END[3:]))


def _accuracy(m: Measurement) -> list[Fact]:
    found = m.accuracy
    if found is None:
        return []

    def rate(value: float | None) -> str:
        if value is None:
            return ""
        low, high = rates.interval(value, found.images)
        return f"{units.percent(value)} ({units.percent(low)} to {units.percent(high)})"

    agreement = units.percent(found.agreement) if found.agreement is not None else ""
    return _known(
        ("images", f"{found.images:,}" + ("" if found.labelled else ", without labels")),
        ("top-1", rate(found.top1)),
        ("top-5", rate(found.top5)),
        ("none", found.refused),
        ("but", found.hint),
        *(("images", note) for note in found.notes),
        (f"as {found.reference}" if found.reference else "agreement", agreement),
    )


def _telemetry(m: Measurement) -> list[Fact]:
    seen = m.telemetry

    def span(values: Sequence[float], unit: str) -> str:
        if not values:
            return ""
        low, high = f"{min(values):.0f}", f"{max(values):.0f}"
        return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"

    used = seen.memory_used_nbytes
    return _known(
        ("device", seen.device),
        ("SM clock", span(seen.sm_clock_mhz, "MHz")),
        ("power", span(seen.power_w, "W")),
        ("temperature", span(seen.temperature_c, "°C")),
        ("held back by", ", ".join(seen.throttle)),
        ("CPU load", f"{seen.cpu_percent:.0f} %" if seen.cpu_percent is not None else ""),
        ("memory in use", units.nbytes(used) if used is not None else ""),
    )


def _validity(m: Measurement) -> list[Fact]:
    each = f", each of {m.runs_per_sample:,} passes" if m.runs_per_sample > 1 else ""
    several = f" of {count} instances" if (count := len(set(m.instances))) > 1 else ""
    samples = f"{len(m.samples_ns):,} in {max(1, len(m.rounds))} rounds{several}{each}"
    validity = m.validity
    return _known(
        ("samples", samples if m.samples_ns else ""),
        ("stopped because", STOPS[validity.stop_reason] if validity.stop_reason else ""),
        ("retries", str(validity.retries) if validity.retries else ""),
        *(("warning", text) for text in validity.warnings),
        ("measured", m.started_at.replace("T", " ")[:19]),
    )


def _layer_of(m: Measurement, output: str) -> Layer | None:
    return next((layer for layer in m.layers if layer.output == output), None)


def _disposition(m: Measurement, theme: Theme) -> str:
    good = m.disposition == "ok"
    words = RIGHT if good else WORDS.get(m.disposition, m.disposition)
    reason = f": {escape(m.reason)}" if m.reason else ""
    mark, colour = ("✓", theme.good) if good else ("✕", theme.failed)
    return f'<p style="color:{colour}"><b>{mark} {words}</b>{reason}</p>'


def _section(title: str, facts: Sequence[Fact], theme: Theme) -> str:
    rows = "".join(
        f'<tr><td style="color:{theme.muted};padding-right:10px">{with_links(name, colour=theme.muted)}</td>'
        f"<td>{escape(value)}</td></tr>"
        for name, value in facts
    )
    head = f"<b>{with_links(title, colour=theme.ink)}</b>"
    return f'<p style="margin-bottom:2px;margin-top:10px">{head}</p><table>{rows}</table>'
