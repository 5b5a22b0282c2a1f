"""Where the run stands: the case in words, how many of how many, the time left; pause and cancel."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from bench.words.units import clock, left
from gui.base.boxes import filled
from gui.sessions.session import Ended, Standing
from gui.widgets.controls import Progress, push_button
from gui.widgets.labels import Elided, Label

IDLE = "Ready. F5 runs the comparison."


class ProgressStrip(QWidget):
    pause = Signal()
    resume = Signal()
    cancel = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._standing = Standing()
        self.words = Elided(IDLE)
        self.bar = Progress(160, 12)
        self.numbers = Label()
        self.left = Label(role="muted")
        self.pause_button = push_button(
            "Pause", tip="Pause after the current pass; its case starts again from the beginning later (F6)"
        )
        self.cancel_button = push_button("Cancel", tip="End the run and keep what was measured (Shift+F5)")
        for words in ("Pause", "Go on"):  # room for either from the start
            self.pause_button.setText(words)
            least = self.pause_button.sizeHint().expandedTo(self.pause_button.minimumSize())
            self.pause_button.setMinimumSize(least)
        self.cancel_button.setMinimumSize(self.cancel_button.sizeHint())
        self.pause_button.clicked.connect(self._on_pause)
        self.cancel_button.clicked.connect(self.cancel)
        filled(
            QHBoxLayout(self),
            (self.words, 1),
            self.bar,
            self.numbers,
            self.left,
            self.pause_button,
            self.cancel_button,
            margins=(8, 2, 8, 2),
        )
        self.show_standing(Standing())

    def show_standing(self, standing: Standing) -> None:
        self._standing = standing
        active = standing.active
        for widget in (self.bar, self.numbers, self.left, self.pause_button, self.cancel_button):
            widget.setVisible(active)
        self.words.setText(_words(standing))
        if not active:
            return
        self.bar.show_part(standing.done, standing.total)
        self.numbers.setText(f"{standing.done:,} / {standing.total:,}" if standing.total else "")
        self.left.setText(left(standing.left) if standing.left is not None else "")
        paused = standing.phase in ("paused", "pausing")
        self.pause_button.setText("Go on" if paused else "Pause")
        self.pause_button.setEnabled(standing.phase != "cancelling")
        self.cancel_button.setEnabled(standing.phase != "cancelling")

    def _on_pause(self) -> None:
        (self.resume if self._standing.phase in ("paused", "pausing") else self.pause).emit()


def _words(standing: Standing) -> str:
    match standing.phase:
        case "idle":
            return outcome(standing.ended) if standing.ended else IDLE
        case "pausing":
            return f"Pausing after this pass: {standing.words}"
        case "paused":
            return "Paused. The current case starts again when you continue."
        case "cancelling":
            return f"Cancelling after this pass: {standing.words}"
    return standing.words[:1].upper() + standing.words[1:]


def outcome(ended: Ended) -> str:
    """What came of a run: "18 of 18 cases ok in 0:35, run kept in runs/…"."""
    if not ended.total:
        return f"Nothing was measured; the run's log is kept in {ended.folder}"
    counts = dict(ended.counts)
    ok = counts.pop("ok", 0)
    rest = "".join(f", {count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    words = f"{ok:,} of {ended.total:,} cases ok{rest} in {clock(ended.seconds)}, run kept in {ended.folder}"
    return f"Cancelled: {words}" if ended.cancelled else words
