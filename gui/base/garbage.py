"""Garbage is looked for on the GUI thread alone.

Python looks for it in whichever thread happens to allocate. In one that reads a file this would end objects
of Qt outside their thread: a timer of such an object goes on firing for what is no longer there.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

PERIOD_MS = 500


class Collector(QObject):
    """While it lives, Python's own collections are off, and it does what is due of them; until `stop`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=PERIOD_MS)
        self._timer.timeout.connect(collect_due)
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()
        gc.enable()


def collect_due() -> None:
    """Collect the oldest generation that is due by Python's own thresholds, and those younger."""
    counts, limits = gc.get_count(), gc.get_threshold()
    due = [g for g, (count, limit) in enumerate(zip(counts, limits, strict=True)) if 0 < limit < count]
    if due:
        gc.collect(due[-1])
