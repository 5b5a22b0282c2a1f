"""What a run comes to, in the largest letters of the page: of each model a line a comparison, with whether to
believe it, then what is said of all; a click leads to the points that a clause speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from bench.results.records import Case
from bench.results.rows import title
from bench.views.sentences.verdicts import CLOCK, Clause, Verdict
from bench.words import palette
from gui.base.boxes import ScrollArea, filled
from gui.base.letters import resized
from gui.base.theme import Theme, Theming
from gui.widgets.labels import Label

LARGER = 3.5  # points that a line is larger by than what stands around it
QWIDGETSIZE_MAX = (1 << 24) - 1
HIGH = 800  # pixels of a window; in a lower one lines are as large as what stands around them
MUCH = 800  # characters in all, beyond which they are but half as much larger
MOST = 0.34  # of the window's height, beyond which the strip scrolls
LOW_MOST = 0.05  # the same of a low window, where the page has no more to spare
REST = 440  # pixels of a low window's page that charts in one row, their legend and the table need
LOW_FIRST = 0.075  # of a low one's, for the first model's sentence where it is longer
KEPT = 3.4  # lines that each model has room for from the start
# Where every batch size has a verdict, and nothing is to be doubted.
RELIABLE = "\N{CHECK MARK}\N{NO-BREAK SPACE}reliable"
TIP = "Click a part of the sentence to go to its points, and again for the next of them"


class VerdictStrip(ScrollArea):
    """`picked` carries the Case of a point that a clause speaks of: of a clause that is clicked again, the
    next."""

    picked = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__("Verdict", False, parent)
        self._theming = theming
        self._shown: object = None
        self._roomy = True
        self._lines: list[_Line] = []
        self._inside = QWidget()
        self._layout = filled(QVBoxLayout(self._inside), margins=(4, 2, 4, 6), spacing=4)
        self.setWidget(self._inside)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theming.changed.connect(self._restyle)

    @property
    def texts(self) -> list[str]:
        """The lines as they are read."""
        return [line.words for line in self._lines]

    @property
    def lines(self) -> Sequence[QWidget]:
        return tuple(self._lines)

    def show_verdicts(self, found: Sequence[Verdict], model: str) -> None:
        """Show a line of each; `model`: whose charts stand below."""
        if (tuple(found), model) == self._shown:
            return
        foremost = self._shown[1] if isinstance(self._shown, tuple) else ""
        self._shown = (tuple(found), model)
        while len(self._lines) < len(found):
            line = _Line()
            line.asked.connect(self.picked)
            self._layout.addWidget(line)
            self._lines.append(line)
        for line in self._lines[len(found) :]:
            line.hide()
            line.deleteLater()
        del self._lines[len(found) :]
        low = self.window().height() < HIGH
        much = sum(len(verdict.line) for verdict in found) > MUCH
        larger = 0 if low else LARGER / 2 if much else LARGER
        for line, verdict in zip(self._lines, found, strict=True):
            line.setFont(resized(self.font(), more=larger))
            line.show_verdict(verdict, self._theming.theme)
        self._fit()
        if foremost != model:
            for line, verdict in zip(self._lines, found, strict=True):
                if verdict.model == model:
                    self.ensureWidgetVisible(line, 0, 0)

    def give(self, roomy: bool) -> None:
        """Whether what stands below needs little of a low window's height."""
        if roomy != self._roomy:
            self._roomy = roomy
            self._fit()

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if (page := self.parentWidget()) is not None:
            page.installEventFilter(self)  # once, however often it is said
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.parentWidget() and event.type() == QEvent.Type.Resize:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        """As high as its lines are at this width, up to what it may have of the window."""
        around = self._layout.contentsMargins()
        width = max(100, self.viewport().width() - around.left() - around.right())
        low = self.window().height() < HIGH
        wanted, ends = around.top(), [1]  # ends: of every line of text, which none is to be cut at
        for line in self._lines:
            # Room for some lines each from the start: the charts below move little while sentences grow.
            height = max(line.heightForWidth(width), round((1 if low else KEPT) * line.line_height))
            count = max(1, round(height / line.line_height))
            ends += [wanted + height * (number + 1) // count for number in range(count)]
            wanted += height + self._layout.spacing()
        wanted += around.bottom() - self._layout.spacing()
        whole = self.window().height() if self.window() is not self else QWIDGETSIZE_MAX
        room = round(MOST * whole)
        if whole < HIGH:
            page = self.parentWidget()
            spare = page.height() - REST if self._roomy and page is not None else 0
            first = around.top() + (self._lines[0].heightForWidth(width) if self._lines else 0)
            room = max(spare, round(LOW_MOST * whole), min(first, round(LOW_FIRST * whole)))
        self.setFixedHeight(wanted if wanted <= room else max(end for end in ends if end <= max(room, 1)))
        self.verticalScrollBar().setSingleStep(self._lines[0].line_height if self._lines else 1)

    def _restyle(self) -> None:
        shown, self._shown = self._shown, None
        if isinstance(shown, tuple):
            self.show_verdicts(*shown)


class _Line(Label):
    """One model's sentence; each clause that has points is a link to them."""

    asked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._clauses: tuple[Clause, ...] = ()
        self._hovered = ""
        self._last: Case | None = None
        self.words = ""
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.setToolTip(TIP)
        self.linkActivated.connect(self._on_link)
        self.linkHovered.connect(self._on_hovered)

    @property
    def line_height(self) -> int:
        return self.fontMetrics().lineSpacing()

    def show_verdict(self, found: Verdict, theme: Theme) -> None:
        self._clauses = found.clauses
        named = title(found.model) + f", {found.precision}" * bool(found.precision)
        self.words = found.line or f"{named}: nothing is measured yet."
        self.setAccessibleName(self.words)
        ink = theme.ink
        lines = [
            self._marked_up(found.clauses_of(who), theme, ink)
            + (f' &nbsp;<b style="color:{theme.good}">{RELIABLE}</b>' if found.reliable(who) else "")
            for who in found.contenders
        ]
        if rest := found.clauses_of(""):
            lines.append(self._marked_up(rest, theme, ink))
        lines = lines or ["nothing is measured yet."]
        of = f", {found.precision}" * bool(found.precision)
        clock = f'{of}<span style="color:{theme.muted}">{CLOCK}</span>' if found.clauses else of
        first = f"<b>{escape(title(found.model))}</b>{clock}: {lines[0]}"
        indent = self.fontMetrics().horizontalAdvance("nn")
        below = "".join(f'<div style="margin-left:{indent}px">{line}</div>' for line in lines[1:])
        self.setText(f'<div style="color:{ink}"><div>{first}</div>{below}</div>')

    def _marked_up(self, clauses: Sequence[Clause], theme: Theme, ink: str) -> str:
        """Clauses as HTML, each a link; what is doubtful in no colour that says that something is certain."""
        colours = {
            "faster": theme.good,
            "slower": theme.failed,
            "differ": theme.failed,
            "unclear": theme.warning,
            "doubtful": theme.warning,
            "answers": theme.good,
        }
        parts = []
        for number, clause in enumerate(clauses):
            before, stress, after = (
                clause.text.partition(clause.stress) if clause.stress else (clause.text, "", "")
            )
            # Names of backends stay on one line.
            unbroken = (part.replace("-", "\N{NON-BREAKING HYPHEN}") for part in (before, stress, after))
            before, stress, after = map(escape, unbroken)
            if clause.who and not number:  # in the colour of its line in the charts
                backend = clause.who.partition(" ")[0]
                before = f'<span style="color:{palette.backend(backend)}">\N{BLACK SQUARE}</span> {before}'
            if clause.kind == "doubtful":
                text = f'<span style="color:{theme.warning}">{before}{stress}{after}</span>'
            else:
                text = f'{before}<b style="color:{colours.get(clause.kind, ink)}">{stress}</b>{after}'
            if clause.cases:
                place = self._clauses.index(clause)
                text = f'<a href="{place}" style="color:{ink};text-decoration:none">{text}</a>'
            parts.append(escape(clause.before) * bool(number) + text)
        return "".join(parts)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if not self._hovered and event.button() == Qt.MouseButton.LeftButton:
            self._ask(next((clause for clause in self._clauses if clause.cases), None))

    def _on_hovered(self, link: str) -> None:
        self._hovered = link
        self.setCursor(Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.ArrowCursor)

    def _on_link(self, link: str) -> None:
        self._ask(self._clauses[int(link)])

    def _ask(self, clause: Clause | None) -> None:
        if clause is None or not clause.cases:
            return
        places = {case: place for place, case in enumerate(clause.cases)}
        place = places[self._last] + 1 if self._last in places else 0
        self._last = clause.cases[place % len(clause.cases)]
        self.asked.emit(self._last)
