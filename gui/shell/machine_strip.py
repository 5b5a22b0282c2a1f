"""What the machine does right now, twice a second: the GPU by NVML, or the CPU's load where there is none."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from PySide6.QtCore import QObject, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from bench.run import nvml
from bench.words import units
from gui.base.boxes import filled
from gui.base.theme import Theming
from gui.widgets.labels import Elided, Label

PERIOD_S = 0.5
NOW = "this machine now: "  # a run that is shown may have been measured elsewhere
KEPT = 60  # readings in a sparkline: half a minute


@dataclass(frozen=True)
class Gauge:
    """One figure: name, value (None: the machine would not say), text, the scale's top (None: as seen)."""

    name: str
    value: float | None
    text: str
    top: float | None = None


@dataclass(frozen=True)
class MachineReading:
    """The machine at one moment; held_back: why the device throttles, in words, or ""."""

    device: str
    gauges: tuple[Gauge, ...]
    held_back: str = ""


class MachineSampler(QObject):
    """A thread that reads and emits; `stop` ends it."""

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
    """NVML's figures as gauges."""

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
    """The last half minute of one figure."""

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
    """Shows readings; `start` begins to take them."""

    def __init__(self, theming: Theming, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theming = theming
        self.sampler = MachineSampler(self)
        self.sampler.read.connect(self.show_reading)
        self._device = Elided()
        self._device.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self._held = Label(role="warning")
        self._gauges: list[tuple[Label, Sparkline]] = []
        self._layout = filled(QHBoxLayout(self), self._device, self._held, margins=(8, 2, 8, 2), spacing=6)
        self._held.hide()

    @property
    def text(self) -> str:
        return "  ".join(
            [self._device.text(), *(label.text() for label, _ in self._gauges), self._held.text()]
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
            # A figure that gains a digit must not push its neighbours about.
            label.setMinimumWidth(max(label.minimumWidth(), label.sizeHint().width()))
            line.add(gauge.value, gauge.top)
        self._held.setText(f"⚠ {reading.held_back}" if reading.held_back else "")
        self._held.setVisible(bool(reading.held_back))
