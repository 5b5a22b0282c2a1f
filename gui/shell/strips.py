"""The strip below the pages: the progress of a run, readings of the machine."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from PySide6.QtCore import QObject, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from bench.run import nvml
from bench.words import units
from bench.words.units import clock, left
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.sessions.session import Ended, Standing
from gui.widgets.controls import Elided, Label, Progress, push_button


class ProgressStrip(QWidget):
    """Where the run stands: the case, how many of how many, the time left; with Pause and Cancel."""

    pause = Signal()
    resume = Signal()
    cancel = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._standing = Standing()
        self._ready, self._tells = "", True
        self.words = Elided()
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

    def show_ready(self, words: str, tells: bool = True) -> None:
        """What the page in front can do next, in a sentence: said while nothing runs. tells: whether how the
        last comparison ended belongs to this page."""
        self._ready, self._tells = words, tells
        self.show_standing(self._standing)

    def show_standing(self, standing: Standing) -> None:
        self._standing = standing
        active = standing.active
        for widget in (self.bar, self.numbers, self.left, self.pause_button, self.cancel_button):
            widget.setVisible(active)
        words = _progress_words(standing) if active or self._tells else ""
        self.words.setText(words or self._ready)
        if not active:
            return
        self.bar.show_part(standing.done + standing.part, standing.total)
        self.numbers.setText(f"{standing.done:,} / {standing.total:,}" if standing.total else "")
        self.left.setText(left(standing.left) if standing.left is not None else "")
        paused = standing.phase in ("paused", "pausing")
        self.pause_button.setText("Go on" if paused else "Pause")
        self.pause_button.setEnabled(standing.phase != "cancelling")
        self.cancel_button.setEnabled(standing.phase != "cancelling")

    def _on_pause(self) -> None:
        (self.resume if self._standing.phase in ("paused", "pausing") else self.pause).emit()


def _progress_words(standing: Standing) -> str:
    """Where a run stands or how it ended, "" before the first."""
    match standing.phase:
        case "idle":
            return outcome(standing.ended) if standing.ended else ""
        case "pausing":
            return f"Pausing after this pass: {standing.words}"
        case "paused":
            return "Paused. The current case starts again when you continue."
        case "cancelling":
            return f"Cancelling after this pass: {standing.words}"
    return standing.words[:1].upper() + standing.words[1:]


def outcome(ended: Ended) -> str:
    """How a run ended: "18 of 18 cases ok in 0:35, run kept in runs/…"."""
    if not ended.total:
        return f"Nothing was measured; the run's log is kept in {ended.folder}"
    counts = dict(ended.counts)
    ok = counts.pop("ok", 0)
    rest = "".join(f", {count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    words = f"{ok:,} of {ended.total:,} cases ok{rest} in {clock(ended.seconds)}, run kept in {ended.folder}"
    return f"Cancelled: {words}" if ended.cancelled else words


PERIOD_S = 0.5
NOW = "this machine now: "  # a run that is shown may have been measured elsewhere
KEPT = 60  # readings in a sparkline: half a minute


@dataclass(frozen=True)
class Gauge:
    """One reading. value: None if the machine does not say; top: the top of its scale, None for the
    largest value seen."""

    name: str
    value: float | None
    text: str
    top: float | None = None


@dataclass(frozen=True)
class MachineReading:
    """All readings at one moment. held_back: why the device throttles, in words, or ""."""

    device: str
    gauges: tuple[Gauge, ...]
    held_back: str = ""


class MachineSampler(QObject):
    """Reads the machine in a thread and emits the readings: the GPU by NVML, or the CPU's load if there is
    no GPU."""

    read = Signal(object)

    def __init__(self, parent: QObject | None = None, period_s: float = PERIOD_S) -> None:
        super().__init__(parent)
        self._period_s = period_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="machine strip", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)

    def _work(self) -> None:
        import psutil

        gpu = nvml.Gpu.first()
        name = gpu.name if gpu is not None else f"CPU, {units.count(psutil.cpu_count() or 1, 'thread')}"
        psutil.cpu_percent(None)  # the first answer is meaningless
        while not self._end.wait(self._period_s):
            if gpu is not None:
                self.read.emit(gpu_reading(name, gpu.read(), gpu.default_clock_mhz))
            else:
                memory = psutil.virtual_memory()
                load = psutil.cpu_percent(None)
                used = memory.total - memory.available
                self.read.emit(cpu_reading(name, load, used, memory.total))


def gpu_reading(name: str, seen: nvml.Reading, clock_mhz: float | None) -> MachineReading:
    """The figures of NVML as gauges."""

    def text(value: float | None, unit: str) -> str:
        return f"{value:.0f} {unit}" if value is not None else "–"

    used = seen.memory_used_nbytes
    return MachineReading(
        device=name,
        gauges=(
            Gauge("SM", seen.sm_clock_mhz, text(seen.sm_clock_mhz, "MHz"), clock_mhz),
            Gauge("power", seen.power_w, text(seen.power_w, "W")),
            Gauge("", seen.temperature_c, text(seen.temperature_c, "°C"), 100.0),
            Gauge("memory", used, units.nbytes(used) if used is not None else "–"),
        ),
        held_back=", ".join(seen.reasons),
    )


def cpu_reading(name: str, load_percent: float, used_nbytes: int, total_nbytes: int) -> MachineReading:
    return MachineReading(
        device=name,
        gauges=(
            Gauge("load", load_percent, f"{load_percent:.0f} %", 100.0),
            Gauge("memory", used_nbytes, units.nbytes(used_nbytes), float(total_nbytes)),
        ),
    )


class Sparkline(QWidget):
    """The last half minute of one reading."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self._values: deque[float | None] = deque(maxlen=KEPT)
        self._top: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Last half minute")

    def sizeHint(self) -> QSize:
        return QSize(56, 18)

    def add(self, value: float | None, top: float | None) -> None:
        self._values.append(value)
        self._top = top
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        known = [v for v in self._values if v is not None]
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theming.theme.line), 1))
        base = self.height() - 1.5
        painter.drawLine(QPointF(0, base), QPointF(self.width(), base))
        if len(known) < 2:
            return
        top = max([*known, self._top or 0.0]) or 1.0
        step = self.width() / (KEPT - 1)
        start = KEPT - len(self._values)
        points = [
            QPointF((start + i) * step, base - 1 - (v / top) * (self.height() - 5))
            for i, v in enumerate(self._values)
            if v is not None
        ]
        painter.setPen(QPen(QColor(self._theming.theme.accent), 1.2))
        painter.drawPolyline(QPolygonF(points))


class MachineStrip(QWidget):
    """What the machine does now, updated twice a second. `start` begins the readings."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.sampler = MachineSampler(self)
        self.sampler.read.connect(self.show_reading)
        self._device = Elided()
        self._device.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self._held_back = Label(role="warning")
        self._gauges: list[tuple[Label, Sparkline]] = []
        self._layout = filled(
            QHBoxLayout(self), self._device, self._held_back, margins=(8, 2, 8, 2), spacing=6
        )
        self._held_back.hide()

    @property
    def text(self) -> str:
        return "  ".join(
            [self._device.text(), *(label.text() for label, _ in self._gauges), self._held_back.text()]
        )

    def start(self) -> None:
        self.sampler.start()

    def stop(self) -> None:
        self.sampler.stop()

    def show_reading(self, reading: MachineReading) -> None:
        self._device.setText(f"{NOW}{reading.device}")
        while len(self._gauges) < len(reading.gauges):
            label, line = Label(), Sparkline(self._theming)
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self._layout.insertWidget(self._layout.count() - 1, label)
            self._layout.insertWidget(self._layout.count() - 1, line)
            self._gauges.append((label, line))
        for gauge, (label, line) in zip(reading.gauges, self._gauges, strict=True):
            label.setText(f"{gauge.name} {gauge.text}".strip())
            # A longer figure must not move its neighbours.
            label.setMinimumWidth(max(label.minimumWidth(), label.sizeHint().width()))
            line.add(gauge.value, gauge.top)
        self._held_back.setText(f"⚠ {reading.held_back}" if reading.held_back else "")
        self._held_back.setVisible(bool(reading.held_back))
