"""What stands beside the pages: the form, the inspector and the problems, each if the page in front can
use it.

The form folds away once a run is shown, and comes back when the user asks for it. The inspector is
visible while something is selected that the page describes. In a narrow window it is a tab beside the
form, so that the pages keep their room. What the user closed stays closed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from html import escape
from typing import NamedTuple

from PySide6.QtCore import QSettings, Qt, QUrl, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTextBrowser, QVBoxLayout, QWidget

from bench.results import doubt, rates
from bench.results.kinds import case_words
from bench.results.messages import Log
from bench.results.records import PREPARE_PHASES, Case, ErrorStats, Layer, Measurement, StopReason, stem
from bench.results.rows import Row, label
from bench.views.charts import breakdown
from bench.views.remedies import CHANGES, Doubt
from bench.views.remedies import WORDS as WORDS_OF
from bench.views.tables.comparison_tables import END_TO_END, WORDS
from bench.views.tables.table import Column, Table
from bench.words import orders, palette, units
from gui.base.boxes import as_row, filled
from gui.base.theme import TIGHT, WIDE, Theme, Theming, scaled
from gui.base.wording import in_window
from gui.sessions.comparison_session import RunState
from gui.widgets.controls import TERM, open_term, push_button, with_links
from gui.widgets.table_view import TableView

NARROW = 1180  # pixels of the window, below which the inspector has no place of its own
TINY = 820  # below which a page has no room beside the form
WIDTHS = (290, 270)  # of the form and the inspector at first
PROBLEMS_HEIGHT = 140

_AREA = Qt.DockWidgetArea


class Dock(QDockWidget):
    """A dock. `turned` carries whether the user opened or closed it."""

    turned = Signal(bool)

    def __init__(self, title: str, window: QMainWindow) -> None:
        super().__init__(title, window)
        self.wanted = True  # by the user
        self.toggleViewAction().triggered.connect(self._on_triggered)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self._turn(False)

    def _on_triggered(self, on: bool) -> None:
        if on:
            self._turn(True)

    def _turn(self, on: bool) -> None:
        self.wanted = on
        self.turned.emit(on)


class Docks:
    """The docks of a window. folded: whether the inspector is a tab because the window is narrow;
    form_shown: is called with whether the form is visible."""

    def __init__(
        self, window: QMainWindow, theming: Theming, form: QWidget, inspector: QWidget, problems: QWidget
    ) -> None:
        self._window, self._theming = window, theming
        self.folded = False
        self.away = False  # the form, since a run is shown
        self.cramped = False  # the form, for want of room
        self._tiny = False
        self._zoom = theming.zoom
        theming.changed.connect(self._on_theme)
        self.form_shown: Callable[[bool], None] = lambda visible: None
        self.form = self._dock("Comparison", form, _AREA.LeftDockWidgetArea)
        self.inspector = self._dock("Inspector", inspector, _AREA.RightDockWidgetArea)
        self.problems = self._dock("Problems", problems, _AREA.BottomDockWidgetArea)
        self.problems.hide()
        self.inspector.hide()
        self.form.turned.connect(self._on_form)
        window.setCorner(Qt.Corner.BottomLeftCorner, _AREA.LeftDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, _AREA.RightDockWidgetArea)
        self._give_widths()
        window.resizeDocks([self.problems], [PROBLEMS_HEIGHT], Qt.Orientation.Vertical)

    def place(self, form: bool, inspector: bool) -> None:
        """Show the docks that the page in front can use. inspector: whether something is selected."""
        form = form and self.form.wanted and not self.away and not self.cramped
        inspector = inspector and self.inspector.wanted
        for dock, wanted in ((self.form, form), (self.inspector, inspector)):
            if dock.isHidden() == wanted:
                dock.setVisible(wanted)
        self.form_shown(form)

    def fold_form(self) -> None:
        """Hide the form, because a run is shown and the pages need the room."""
        self.away = True

    def open_form(self) -> None:
        """Show the form, as if the user had asked for it."""
        self.form.wanted, self.away, self.cramped = True, False, False
        self.form.show()
        self.form_shown(True)

    def fit(self, width: int) -> bool:
        """Adapt to the window's width: below NARROW the inspector becomes a tab, below TINY the form is
        hidden until the user asks for it. A dock that the user moved stays there. Returns whether the
        form was hidden or shown again."""
        tiny, narrow = width < scaled(TINY), width < scaled(NARROW)
        turned, self._tiny = tiny != self._tiny, tiny
        if turned:
            self.cramped = tiny
        if narrow != self.folded:
            self._fold_inspector(narrow)
        return turned

    def restore(self, settings: QSettings) -> None:
        """Restore what `keep` stored."""
        if settings.value("layout") is not None:
            self.folded = str(settings.value("folded", "false")).lower() == "true"
            if self.folded:  # a tab that was hidden at the end is not restored as a tab
                self._window.tabifyDockWidget(self.form, self.inspector)
        for name, dock in self._own().items():
            dock.wanted = str(settings.value(f"docks/{name}", "true")).lower() == "true"

    def keep(self, settings: QSettings) -> None:
        settings.setValue("folded", self.folded)
        for name, dock in self._own().items():
            settings.setValue(f"docks/{name}", dock.wanted)

    # ------------------------------------------------------------------------------------------ the inside

    def _fold_inspector(self, narrow: bool) -> None:
        window = self._window
        if narrow:
            beside = window.dockWidgetArea(self.inspector) == _AREA.RightDockWidgetArea
            if beside and not self.inspector.isFloating():
                self.folded = True
                hidden = self.inspector.isHidden()
                window.tabifyDockWidget(self.form, self.inspector)
                self.inspector.setVisible(not hidden)
                self.form.raise_()
        else:
            self.folded = False
            beside = window.dockWidgetArea(self.inspector) == window.dockWidgetArea(self.form)
            if beside and not self.inspector.isFloating():
                hidden = self.inspector.isHidden()
                window.addDockWidget(_AREA.RightDockWidgetArea, self.inspector)
                self.inspector.setVisible(not hidden)
                self._give_widths()

    def _own(self) -> dict[str, Dock]:
        """The docks that the user opens and closes."""
        return {"form": self.form, "inspector": self.inspector}

    def _on_form(self, on: bool) -> None:
        if on:
            self.away = self.cramped = False
        self.form_shown(on)

    def _give_widths(self) -> None:
        wide = [scaled(width) for width in WIDTHS]
        self._window.resizeDocks([self.form, self.inspector], wide, Qt.Orientation.Horizontal)

    def _on_theme(self) -> None:
        """Larger text takes wider docks."""
        if self._zoom != self._theming.zoom:
            self._zoom = self._theming.zoom
            self.fit(self._window.width())
            self._give_widths()

    def _dock(self, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> Dock:
        dock = Dock(title, self._window)
        dock.setObjectName(title.lower())
        dock.setWidget(widget)
        features = QDockWidget.DockWidgetFeature
        dock.setFeatures(features.DockWidgetClosable | features.DockWidgetMovable)
        self._window.addDockWidget(area, dock)
        return dock


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
RIGHT = "right answers"  # "ok" is about the answers; doubts about the time are listed below
EMPTY = "Select a point in a chart, a row of a table or a problem to see its details."


class Inspector(QWidget):
    """Shows all that is known of the selected measurement. Redrawn by gui.shell.main_window when the state
    or the selection has changed. `ladder_wanted` carries the Case and the Layer whose ladder is wanted."""

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
        """Say what the page in front selects: a "case", the "layer" of one, or "" for neither."""
        if about != self._about:
            self._about = about
            self._state.changed.emit()

    @property
    def text(self) -> str:
        """The text that is shown."""
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
    """The inspector's page as HTML: a measurement, or its selected layer."""
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
        doubts = "<br>".join(escape(f"{doubt.MARK.strip()} {in_window(text)}") for text in row.doubts)
        parts.append(f'<p style="color:{theme.warning}">{doubts}</p>')
    if layers and state.layer and (layer := _layer_of(measurement, state.layer)) is not None:
        parts.append('<p><a href="ladder">Open in ladder</a></p>' if layer.nodes else "")
        parts.append(_section(f"Layer {layer.output}", layer_facts(layer), theme))
        return "".join(parts)
    parts += [_section(title, facts, theme) for title, facts in sections(row) if facts]
    return "".join(parts)


def sections(row: Row) -> list[tuple[str, list[Fact]]]:
    """Titles with their facts (name, value), in order. A section may be empty."""
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
    """A fact of a session, as people read it: bytes with their unit, a time without its zone."""
    words = name.removesuffix("_nbytes").replace("_", " ")
    if name.endswith("_nbytes") and value.isdigit():
        return words, units.nbytes(int(value))
    return words, value.replace("T", " ")[:19] if name.endswith("_at") else value


def _known(*facts: Fact) -> list[Fact]:
    """The facts that have a value."""
    return [(name, value) for name, value in facts if value]


def layer_facts(layer: Layer) -> list[Fact]:
    """The facts of a layer."""
    time_ns, errors = layer.time_ns, (("isolated", layer.isolated), ("propagated", layer.propagated))
    return [
        ("nodes", ", ".join(layer.nodes)),
        ("operator", layer.op_type),
        ("shape", " × ".join(map(str, layer.shape))),
        ("parameters", f"{layer.parameters:,}"),
        ("work", units.si(layer.flops, "FLOP")),
        *_known(
            ("data", units.nbytes(layer.nbytes) if layer.nbytes else ""),  # 0: not known
            ("kernel", layer.rung and layer.rung + CHOSEN.get(layer.chosen, "")),
            ("time", f"{units.duration(time_ns)} ({layer.clock} clock)" if time_ns is not None else ""),
            ("rate", units.si(layer.flops / time_ns * 1e9, "FLOP/s") if time_ns is not None else ""),
        ),
        *((f"{kind}: {name}", value) for kind, error in errors for name, value in error_facts(error)),
    ]


def error_facts(error: ErrorStats | None) -> list[Fact]:
    """The facts of an error, [] if there is none."""
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
        order = orders.cell(row.verdict, row.speedup, row.speedup_low, row.speedup_high)
        order = doubt.marked(order, row.speedup_doubts)
        why = orders.reason(row.undecided) if row.undecided else ""
        facts += _known((f"against {m.reference}", f"{order}, by paired rounds"), ("why", why))
    first_ns = m.first_run_ns
    return facts + _known(("first run, once", own(units.duration(first_ns)) if first_ns is not None else ""))


def _phases(m: Measurement, names: Sequence[str]) -> list[Fact]:
    return [(name, units.duration(m.phases[name])) for name in names if name in m.phases]


def _parts(m: Measurement) -> list[Fact]:
    """The parts of a pass, as in the bar of its chart, and their sum."""
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
    """The figures from host images to host answers, with several batches in flight. Their clock is not
    that of a forward pass."""
    m, end_to_end = row.measurement, row.end_to_end
    if end_to_end is None:
        return _known(("not measured", m.end_to_end.refused if m.end_to_end is not None else ""))
    return _known(*((c.heading.removeprefix("end to end: "), c.shown(row)) for c in END_TO_END[3:]))


def _accuracy(m: Measurement) -> list[Fact]:
    accuracy = m.accuracy
    if accuracy is None:
        return []

    def rate(value: float | None) -> str:
        if value is None:
            return ""
        low, high = rates.interval(value, accuracy.images)
        return f"{units.percent(value)} ({units.percent(low)} to {units.percent(high)})"

    agreement = units.percent(accuracy.agreement) if accuracy.agreement is not None else ""
    images = f"{accuracy.images:,}" + ("" if accuracy.labelled else ", without labels")
    return _known(
        ("images", images if accuracy.images else ""),
        ("top-1", rate(accuracy.top1)),
        ("top-5", rate(accuracy.top5)),
        ("none", accuracy.refused),
        ("but", accuracy.hint),
        *(("images", note) for note in accuracy.notes),
        (f"as {accuracy.reference}" if accuracy.reference else "agreement", agreement),
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
    reason = f": {escape(in_window(m.reason))}" if m.reason else ""
    mark, colour = ("✓", theme.good) if good else ("✕", theme.failed)
    return f'<p style="color:{colour}"><b>{mark} {words}</b>{reason}</p>'


def _section(title: str, facts: Sequence[Fact], theme: Theme) -> str:
    rows = "".join(
        f'<tr><td style="color:{theme.muted};padding-right:10px">{with_links(name, colour=theme.muted)}</td>'
        f"<td>{escape(in_window(value))}</td></tr>"
        for name, value in facts
    )
    head = f"<b>{with_links(title, colour=theme.ink)}</b>"
    return f'<p style="margin-bottom:2px;margin-top:10px">{head}</p><table>{rows}</table>'


MOST_LOGGED = 200


class Problem(NamedTuple):
    """A row. where: the case in words, or who reports it; case: None if it is about no case; doubt: that it
    is about, None if it is a failure or a warning."""

    where: str
    what: str
    reason: str
    case: Case | None = None
    doubt: Doubt | None = None

    @property
    def remedy(self) -> str:
        """What mends it, in words."""
        return ", ".join(WORDS_OF[each] for each in self.doubt.remedies) if self.doubt is not None else ""


PROBLEM_COLUMNS = tuple(Column[Problem](name, title=title, left=True) for name, title in (
    ("where", "Case"), ("what", "What"), ("reason", "Reason"), ("remedy", "Remedy"),
))  # fmt: skip
REMEDY = len(PROBLEM_COLUMNS) - 1


class Problems(TableView):
    """The list of what went wrong: failed cases, and warnings of the worker; then what is to be doubted, with
    what mends it as buttons. `counted` carries on each change the number of rows, first without the doubts,
    then with them. `remedy_wanted` carries a Doubt and the remedy that was chosen."""

    counted = Signal(int, int)
    remedy_wanted = Signal(object, str)
    widest = 480
    row_margin = 13  # a button has room

    def __init__(self, state: RunState, parent: QWidget | None = None) -> None:
        super().__init__("Problems", parent=parent)
        self._state = state
        self._drawn = -1
        self._shown: dict[str, Measurement] = {}
        self._problems: list[Problem] = []
        self._doubts: tuple[Problem, ...] = ()
        self.horizontalHeader().setStretchLastSection(True)
        self.picked.connect(self._on_picked)
        state.replaced.connect(self._clear)
        self._add()

    @property
    def dirty(self) -> bool:
        return self._drawn != self._state.version

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """The rows as text."""
        return [problem[:3] for problem in (*self._problems, *self._doubts)]

    def redraw(self) -> None:
        self._drawn = self._state.version
        failed = [m for m in self._state.measurements if m.disposition not in ("ok", "cancelled")]
        new = [m for m in failed if self._shown.get(m.case.key) is not m]
        self._shown |= {m.case.key: m for m in new}
        # Refused cases are listed, too: nothing else says why their points are missing.
        lines = [(case_words(m.case), WORDS.get(m.disposition, m.disposition), m.reason, m.case) for m in new]
        doubts = tuple(
            Problem(f"{stem(each.model)}: {each.who}", each.what, each.why, each.cases[0], each)
            for each in self._state.doubts()
        )
        changed, self._doubts = doubts != self._doubts, doubts
        self._add(*(Problem(*each) for each in lines), changed=changed)

    def logged(self, message: Log) -> None:
        """Add a warning or an error of the worker."""
        if message.level in ("warning", "error") and len(self._problems) < MOST_LOGGED:
            self._add(Problem("worker", message.level, message.text))

    def key(self, row: Problem) -> Hashable:
        return row

    def tip(self, row: Problem, column: Column[Problem]) -> str:
        return row.reason

    def hides(self, column: Column[Problem]) -> bool:
        return False

    def _add(self, *problems: Problem, changed: bool = False) -> None:
        self._problems += problems
        if problems or changed or len(self.source.rows) != len(self._problems) + len(self._doubts):
            self.show_table(Table(PROBLEM_COLUMNS, (*self._problems, *self._doubts)))
            self.counted.emit(len(self._problems), len(self._problems) + len(self._doubts))

    def show_table(self, table: Table[Problem]) -> None:
        super().show_table(table)
        self._place_buttons()  # a row that the filter had left out has none

    def _place_buttons(self) -> None:
        """A button for each remedy, in place of its words."""
        for place, problem in enumerate(self.source.rows):
            at, doubt = self.source.index(place, REMEDY), problem.doubt
            if doubt is None or not doubt.remedies or self.indexWidget(at) is not None:
                continue
            buttons = [
                push_button(
                    WORDS_OF[each],
                    lambda _=False, doubt=doubt, each=each: self.remedy_wanted.emit(doubt, each),
                    tip=f"Measure {stem(doubt.model)} again: {CHANGES[each]}",
                    role="small",
                )
                for each in doubt.remedies
            ]
            row = as_row(*buttons, 1, spacing=TIGHT)
            row.setAutoFillBackground(True)  # it hides the words
            self.setIndexWidget(at, row)
        self._fit()

    def _clear(self) -> None:
        self._problems, self._doubts, self._shown, self._drawn = [], (), {}, -1
        self._add()

    def _on_picked(self, problem: Problem) -> None:
        if problem.case is not None:
            self._state.select(problem.case)
