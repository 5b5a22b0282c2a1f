"""What is to be exported of the page in front: in which formats, how wide, what stands on the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSettings, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from bench.charts import Chart
from bench.show.looks import WIDTHS, Look
from gui.base.boxes import filled
from gui.base.folders import ask_folder
from gui.base.scale import WIDE
from gui.widgets.labels import Label

FORMATS = {"png": "PNG", "svg": "SVG", "pdf": "PDF", "csv": "CSV, the numbers"}
SCALES = (1, 2, 3, 4)
DOTS = 150  # an inch, of PNG at scale 1
_PARTS = {"title": "&Title", "finding": "F&inding", "footer": "&Notes, machine and command"}


@dataclass(frozen=True)
class Wish:
    """charts: names, () for all there are; formats: keys of FORMATS; scale: of PNG."""

    charts: tuple[str, ...]
    formats: tuple[str, ...]
    look: Look
    scale: int
    folder: Path


class ExportForm(QDialog):
    """`wanted` carries a Wish. Choices are kept in the settings."""

    wanted = Signal(object)

    def __init__(
        self,
        settings: QSettings,
        what: str,
        charts: Sequence[Chart],
        folder: Path,
        scale: int,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setWindowTitle(f"Export {what}")
        self.charts = QComboBox()
        self.charts.addItem("Everything: all charts and tables", "")
        for chart in charts:
            self.charts.addItem(chart.title, chart.name)
        self.formats = {key: QCheckBox(words) for key, words in FORMATS.items()}
        self.width_of = QComboBox()
        for key, width in WIDTHS.items():
            self.width_of.addItem(width.words[:1].upper() + width.words[1:], key)
        self.parts = {key: QCheckBox(words) for key, words in _PARTS.items()}
        self.caption = QCheckBox("&Caption in a text file beside each picture")
        self.dots = QComboBox()
        for each in SCALES:
            self.dots.addItem(f"{each * DOTS} dots an inch", each)
        self.dots.setCurrentIndex(self.dots.findData(scale))
        self.folder = QLineEdit(str(folder))
        self.browse = QPushButton("&Browse…")
        self.browse.clicked.connect(self._on_browse)
        self.note = Label(
            "Pictures are on light paper in either theme. What failed or is doubtful stays marked."
        )
        self.note.setProperty("role", "muted")
        self.note.setWordWrap(True)
        self.export_button = QPushButton("&Export")
        self.export_button.setProperty("role", "primary")
        self.export_button.setDefault(True)
        self.export_button.clicked.connect(self._on_export)
        cancel = QPushButton("Cancel")
        cancel.clicked.connect(self.reject)
        self._lay_out(cancel)
        self._restore()
        self.width_of.currentIndexChanged.connect(self._on_width)
        for box in (*self.formats.values(), *self.parts.values()):
            box.toggled.connect(self._update)
        self.folder.textChanged.connect(self._update)
        self._update()

    def choose(self, chart: str) -> None:
        """One chart, by its name."""
        self.charts.setCurrentIndex(max(0, self.charts.findData(chart)))

    @property
    def wish(self) -> Wish:
        """What is chosen now."""
        name = self.charts.currentData()
        parts = {key: box.isChecked() for key, box in self.parts.items()}
        return Wish(
            charts=(name,) if name else (),
            formats=tuple(key for key, box in self.formats.items() if box.isChecked()),
            look=Look(self.width_of.currentData(), **parts, caption=self.caption.isChecked()),
            scale=self.dots.currentData(),
            folder=Path(self.folder.text().strip()).expanduser(),
        )

    # ------------------------------------------------------------------------------------------ the inside

    def _lay_out(self, cancel: QPushButton) -> None:
        form = QFormLayout()
        form.setVerticalSpacing(8)
        formats = QHBoxLayout()
        formats.setSpacing(WIDE)
        for box in self.formats.values():
            formats.addWidget(box)
        formats.addStretch(1)
        on = filled(QVBoxLayout(), *self.parts.values(), self.caption, margins=(0, 0, 0, 0), spacing=4)
        folder = filled(QHBoxLayout(), (self.folder, 1), self.browse, margins=(0, 0, 0, 0))
        for words, field in (
            ("&What", self.charts),
            ("As", formats),
            ("&Size", self.width_of),
            ("On the picture", on),
            ("&PNG", self.dots),
            ("&Into", folder),
        ):
            form.addRow(words, field)
        form.labelForField(folder).setBuddy(self.folder)  # type: ignore[attr-defined]
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.export_button)
        filled(QVBoxLayout(self), form, self.note, buttons, margins=(16, 16, 16, 16), spacing=12)
        self.folder.setMinimumWidth(320)

    def _restore(self) -> None:
        kept = str(self._settings.value("export/formats", "png,svg,pdf,csv")).split(",")
        for key, box in self.formats.items():
            box.setChecked(key in kept)
        self.width_of.setCurrentIndex(max(0, self.width_of.findData(self._settings.value("export/width"))))
        of = WIDTHS[self.width_of.currentData()]
        for key, box in self.parts.items():
            kept_part = self._settings.value(f"export/{key}")
            box.setChecked(str(kept_part) == "true" if kept_part is not None else bool(getattr(of, key)))
        kept_caption = self._settings.value("export/caption")
        self.caption.setChecked(str(kept_caption) == "true" if kept_caption is not None else True)

    def _on_width(self) -> None:
        """What usually stands on a picture of that size."""
        of = WIDTHS[self.width_of.currentData()]
        for key, box in self.parts.items():
            box.setChecked(bool(getattr(of, key)))

    def _update(self) -> None:
        wish = self.wish
        self.export_button.setEnabled(bool(wish.formats) and bool(self.folder.text().strip()))

    def _on_browse(self) -> None:
        if chosen := ask_folder(self, "Export into a folder", self.folder.text()):
            self.folder.setText(chosen)

    def _on_export(self) -> None:
        wish = self.wish
        self._settings.setValue("export/formats", ",".join(wish.formats))
        self._settings.setValue("export/width", wish.look.width)
        for key in (*self.parts, "caption"):
            self._settings.setValue(f"export/{key}", "true" if getattr(wish.look, key) else "false")
        self.accept()
        self.wanted.emit(wish)
