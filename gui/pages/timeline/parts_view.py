"""Where a pass's time goes: a bar a case, divided among parts that add up to the pass; beside it the pass
without a profiler. And the cold start, a waterfall a backend, from the process to the steady state."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from bench.results import parts as profile_parts
from bench.results.events import Mark
from bench.results.profile_records import CaseProfile
from bench.words import palette, units
from gui.base.letters import resized, write
from gui.base.theme import Theming
from gui.pages.timeline.timeline_words import colour
from gui.sessions.timeline_lanes import MARK
from gui.widgets.colour_scale import ink_on

LINE = 30  # of a case
BAR = 18
TITLES, FIGURES = 176, 330  # pixels on the left and on the right
PLAIN = 0.06  # the share of a bar from which a part has its name in it


@dataclass(frozen=True)
class PartsBar:
    """A case as a bar, in ns a pass: its parts, their sum (the mean of the profiled passes), the median of
    these and that of passes without a profiler (None where there are none)."""

    case: CaseProfile
    title: str
    parts: tuple[tuple[str, float], ...]
    wall: float
    median: float | None
    plain: float | None

    @property
    def figures(self) -> str:
        """What the profiler cost is a difference of medians; none that is negative is laid to it."""
        wall = units.duration(self.wall)
        if self.plain is None or self.median is None:
            return wall
        median, plain = units.duration(self.median), units.duration(self.plain)
        head = wall if wall == median else f"{wall}, median {median}"
        if self.median < self.plain:
            return f"{head}; {plain} without a profiler"
        return f"{head} = {plain} + {units.duration(self.median - self.plain)} profiler"


def bars(found: Sequence[CaseProfile], window: str = "pass") -> list[PartsBar]:
    """Of the cases that have this window divided (bench.results.parts.WINDOWS), by batch, then backend as in
    the profile."""
    made = []
    for case in found:
        divided = case.breakdown(window)
        if divided is None or not divided.wall_ns:
            continue
        plain = statistics.median(case.pass_ns) if case.pass_ns and window == "pass" else None
        median = statistics.median(case.profiled_ns) if case.profiled_ns and window == "pass" else None
        parts = tuple((share.key, share.time_ns / divided.passes) for share in divided.parts if share.time_ns)
        title = f"{case.case.backend}, batch {case.case.batch:,}"
        made.append(PartsBar(case, title, parts, divided.wall, median, plain))
    return made


class PartsView(QWidget):
    """`picked` carries the CaseProfile of the bar that was clicked."""

    picked = Signal(object)

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.bars: list[PartsBar] = []
        self.relative = True
        self._legend: list[str] = []
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Where the time goes")
        theming.changed.connect(self.update)

    def show_cases(self, found: Sequence[CaseProfile], window: str, relative: bool) -> None:
        """relative: every bar as long as the others, so that shares compare; else as long as its pass."""
        self.bars, self.relative = bars(found, window), relative
        totals: dict[str, float] = {}
        for bar in self.bars:
            for key, time_ns in bar.parts:
                totals[key] = totals.get(key, 0.0) + time_ns / bar.wall
        self._legend = sorted(totals, key=lambda key: (_place(key), -totals[key]))
        self.setAccessibleDescription("; ".join(f"{bar.title}: {bar.figures}" for bar in self.bars))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(620, self.heightForWidth(max(620, self.width())))

    def minimumSizeHint(self) -> QSize:
        return QSize(TITLES + FIGURES + 120, self.heightForWidth(max(620, self.width())))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        lines = len(self._entries(float(width)))
        return LINE * len(self.bars) + 12 + lines * (self.fontMetrics().height() + 6)

    # ---------------------------------------------------------------------------------------------- painting

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theming.theme.paper))
        metrics = QFontMetricsF(self.font())
        for index, bar in enumerate(self.bars):
            self._paint_bar(painter, metrics, bar, index * LINE + 6)
        self._paint_legend(painter, metrics, len(self.bars) * LINE + 12)

    def _paint_bar(self, painter: QPainter, metrics: QFontMetricsF, bar: PartsBar, y: float) -> None:
        theme = self._theming.theme
        painter.fillRect(QRectF(8, y + 4, 10, 10), QColor(palette.backend(bar.case.case.backend)))
        write(painter, QRectF(24, y, TITLES - 28, BAR), bar.title, theme.ink)
        for key, rect, share in self._rects(bar, y):
            fill = colour(key, theme)
            painter.fillRect(rect, fill)
            painter.setPen(QPen(QColor(theme.paper), 1))
            painter.drawLine(rect.topRight(), rect.bottomRight())
            name = profile_parts.label(key)
            if share >= PLAIN and metrics.horizontalAdvance(name) < rect.width() - 6:
                painter.setPen(ink_on(fill))
                painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, name)
        if bar.plain is not None:
            x = TITLES + bar.plain * self._scale(bar)
            if x <= self.width() - FIGURES + 4:
                painter.setPen(QPen(QColor(theme.ink), 2))
                painter.drawLine(QPointF(x, y - 3), QPointF(x, y + BAR + 3))
        place = QRectF(self.width() - FIGURES + 8, y, FIGURES - 12, BAR)
        write(painter, place, bar.figures, theme.muted)

    def _paint_legend(self, painter: QPainter, metrics: QFontMetricsF, top: float) -> None:
        theme, step = self._theming.theme, self.fontMetrics().height() + 6
        for row, entries in enumerate(self._entries(float(self.width()))):
            for x, key in entries:
                y = top + row * step
                if key:
                    painter.fillRect(QRectF(x, y + 3, 10, 10), colour(key, theme))
                else:
                    painter.setPen(QPen(QColor(theme.ink), 2))
                    painter.drawLine(QPointF(x + 5, y + 1), QPointF(x + 5, y + 15))
                painter.setPen(QColor(theme.ink))
                painter.drawText(QPointF(x + 15, y + metrics.ascent()), self._label(key))

    def _label(self, key: str) -> str:
        return profile_parts.label(key) if key else "the pass without a profiler"

    def _entries(self, width: float) -> list[list[tuple[float, str]]]:
        """The legend's lines: (x, key); "" stands for the mark of the unprofiled pass."""
        metrics = QFontMetricsF(self.font())
        lines: list[list[tuple[float, str]]] = [[]]
        x = 8.0
        keys = [*self._legend, *([""] if any(bar.plain is not None for bar in self.bars) else [])]
        for key in keys:
            wide = 15 + metrics.horizontalAdvance(self._label(key)) + 18
            if x + wide > width and lines[-1]:
                lines.append([])
                x = 8.0
            lines[-1].append((x, key))
            x += wide
        return lines

    # ---------------------------------------------------------------------------------------------- pointing

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        found = self._at(event.position())
        if found is None:
            QToolTip.hideText()
            return
        bar, key = found
        total = bar.wall or 1.0
        lines = [f"<b>{escape(bar.title)}</b>", escape(bar.figures)]
        for name, time_ns in bar.parts:
            line = (
                f"{profile_parts.label(name)}: {units.duration(time_ns)}, {units.percent(time_ns / total, 1)}"
            )
            lines.append(f"<b>{escape(line)}</b>" if name == key else escape(line))
        QToolTip.showText(event.globalPosition().toPoint(), "<br>".join(lines), self)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        found = self._at(event.position())
        if found is not None and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(found[0].case)

    def leaveEvent(self, event: QEvent) -> None:
        QToolTip.hideText()
        super().leaveEvent(event)

    def _at(self, at: QPointF) -> tuple[PartsBar, str] | None:
        index = int(at.y() // LINE)
        if not 0 <= index < len(self.bars):
            return None
        bar = self.bars[index]
        key = next((k for k, rect, _ in self._rects(bar, index * LINE + 6) if rect.contains(at)), "")
        return bar, key

    def _scale(self, bar: PartsBar) -> float:
        """Pixels a nanosecond of a bar."""
        room = max(40.0, self.width() - TITLES - FIGURES)
        most = max(
            (max(b.wall, b.plain or 0.0) for b in ([bar] if self.relative else self.bars)), default=1.0
        )
        return room / (most or 1.0)

    def _rects(self, bar: PartsBar, y: float) -> list[tuple[str, QRectF, float]]:
        """(key, where, share of the bar) of each part."""
        found, at, scale = [], 0.0, self._scale(bar)
        for key, time_ns in bar.parts:
            rect = QRectF(TITLES + at * scale, y, time_ns * scale, BAR)
            found.append((key, rect, time_ns / (bar.wall or 1.0)))
            at += time_ns
        return found


def _place(key: str) -> int:
    """Operators first, then the others as bench.results.parts has them."""
    others = profile_parts.OTHERS
    return 1 + others.index(key) if key in others else 0


STEP, HEAD, NAMES = 20, 26, 200  # pixels of a phase, of a title, of the names


@dataclass(frozen=True)
class ColdStep:
    """A line: a case's title (mark is None), or a phase of it."""

    title: str
    backend: str
    mark: Mark | None = None


def steps(found: Sequence[CaseProfile]) -> list[ColdStep]:
    """Case by case its phases in order of their start."""
    made: list[ColdStep] = []
    for case in found:
        if not case.cold:
            continue
        end = max(mark.end_ns for mark in case.cold)
        title = f"{case.case.backend}, batch {case.case.batch:,}: {units.duration(end)} to the steady state"
        made.append(ColdStep(title, case.case.backend))
        ordered = sorted(case.cold, key=lambda mark: (mark.start_ns, -mark.end_ns))
        made += [ColdStep(mark.name, case.case.backend, mark) for mark in ordered]
    return made


class ColdView(QWidget):
    """`show_cases` fills it; all cases are drawn on one axis."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.steps: list[ColdStep] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Cold start")
        theming.changed.connect(self.update)

    def show_cases(self, found: Sequence[CaseProfile]) -> None:
        self.steps = steps(found)
        words = [
            f"{s.title} {units.duration(s.mark.time_ns)}" if s.mark is not None else s.title
            for s in self.steps
        ]
        self.setAccessibleDescription("; ".join(words))
        self.setMinimumHeight(self.sizeHint().height())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(560, sum(STEP if step.mark is not None else HEAD for step in self.steps) + 10)

    def paintEvent(self, _: QPaintEvent) -> None:
        theme, painter = self._theming.theme, QPainter(self)
        painter.fillRect(self.rect(), QColor(theme.paper))
        metrics = QFontMetricsF(self.font())
        bold = resized(self.font(), bold=True)
        widest = max((metrics.horizontalAdvance(self._figures(s)) for s in self.steps), default=0.0)
        room = max(60.0, self.width() - NAMES - min(widest, 0.4 * self.width()) - 20)
        end = max((step.mark.end_ns for step in self.steps if step.mark is not None), default=1)
        y = 4.0
        for step in self.steps:
            if step.mark is None:
                painter.setFont(bold)
                painter.fillRect(QRectF(8, y + 8, 10, 10), QColor(palette.backend(step.backend)))
                write(painter, QRectF(24, y, self.width() - 30, HEAD), step.title, theme.ink)
                painter.setFont(self.font())
                y += HEAD
                continue
            write(painter, QRectF(24, y, NAMES - 30, STEP), step.title, theme.ink)
            x = NAMES + step.mark.start_ns / end * room
            wide = max(1.5, step.mark.time_ns / end * room)
            painter.fillRect(QRectF(x, y + 3, wide, STEP - 6), colour(MARK + step.title, theme))
            at = QRectF(x + wide + 6, y, max(0.0, self.width() - x - wide - 10), STEP)
            write(painter, at, self._figures(step), theme.muted)
            y += STEP

    def event(self, event: object) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QHelpEvent.Type.ToolTip:
            step = self._at(event.pos().y())
            words = (
                f"{step.title}: {self._figures(step)}" if step is not None and step.mark is not None else ""
            )
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)  # type: ignore[arg-type]  # an event

    def _figures(self, step: ColdStep) -> str:
        if step.mark is None:
            return ""
        return f"{units.duration(step.mark.time_ns)}{f': {step.mark.text}' if step.mark.text else ''}"

    def _at(self, y: int) -> ColdStep | None:
        bottom = 4
        for step in self.steps:
            bottom += STEP if step.mark is not None else HEAD
            if y < bottom:
                return step
        return None
