"""The cold start told apart, a waterfall a backend: what follows on what, from the process to the
steady state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from bench.profile.events import Mark
from bench.profile.records import CaseProfile
from bench.words import palette, units
from gui.base.theme import Theming
from gui.pages.timeline.timeline_words import colour
from gui.sessions.timeline_lanes import MARK

LINE, HEAD, NAMES = 20, 26, 200


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
        return QSize(560, sum(LINE if step.mark is not None else HEAD for step in self.steps) + 10)

    def paintEvent(self, _: QPaintEvent) -> None:
        theme, painter = self._theming.theme, QPainter(self)
        painter.fillRect(self.rect(), QColor(theme.paper))
        metrics = QFontMetricsF(self.font())
        bold = QFont(self.font())
        bold.setBold(True)
        widest = max((metrics.horizontalAdvance(self._figures(s)) for s in self.steps), default=0.0)
        room = max(60.0, self.width() - NAMES - min(widest, 0.4 * self.width()) - 20)
        end = max((step.mark.end_ns for step in self.steps if step.mark is not None), default=1)
        y = 4.0
        for step in self.steps:
            if step.mark is None:
                painter.setFont(bold)
                painter.setPen(QColor(theme.ink))
                painter.fillRect(QRectF(8, y + 8, 10, 10), QColor(palette.backend(step.backend)))
                head = QRectF(24, y, self.width() - 30, HEAD)
                painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, step.title)
                painter.setFont(self.font())
                y += HEAD
                continue
            name = QRectF(24, y, NAMES - 30, LINE)
            painter.setPen(QColor(theme.ink))
            words = metrics.elidedText(step.title, Qt.TextElideMode.ElideRight, name.width())
            painter.drawText(name, Qt.AlignmentFlag.AlignVCenter, words)
            x = NAMES + step.mark.start_ns / end * room
            wide = max(1.5, step.mark.time_ns / end * room)
            painter.fillRect(QRectF(x, y + 3, wide, LINE - 6), colour(MARK + step.title, theme))
            painter.setPen(QColor(theme.muted))
            at = QRectF(x + wide + 6, y, max(0.0, self.width() - x - wide - 10), LINE)
            words = metrics.elidedText(self._figures(step), Qt.TextElideMode.ElideRight, at.width())
            painter.drawText(at, Qt.AlignmentFlag.AlignVCenter, words)
            y += LINE

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
            bottom += LINE if step.mark is not None else HEAD
            if y < bottom:
                return step
        return None
