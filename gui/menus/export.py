"""File: exports of what the page in front shows; and of each chart, on the chart itself. What is wanted is
asked for in a form, how it goes stands in the status bar."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QSettings, Signal
from PySide6.QtGui import QActionGroup, QGuiApplication, QImage
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from bench.views.charts.definitions import Chart
from bench.views.drawing.looks import WIDTHS, Look
from gui.base.boxes import filled
from gui.base.scale import WIDE
from gui.pages.page import Exported
from gui.sessions.export import Exporter, ExportStanding, Order
from gui.shell.actions import Actions
from gui.shell.library import reveal
from gui.shell.main_window import MainWindow
from gui.widgets.combo import Combo
from gui.widgets.controls import Progress, ask_folder, new_action, push_button, tool_button
from gui.widgets.labels import Label

ORDER = 30


def add_to(window: MainWindow, actions: Actions) -> None:
    exports = ExportActions(window)
    actions.add("file", "export-all", "&Export…", exports.ask, "Ctrl+E")
    charts = actions.submenu("file", "Export a &chart")
    exports.scale_menu(charts)
    charts.addSeparator()
    charts.aboutToShow.connect(lambda: _offer(window, exports, charts))
    actions.add("file", "export-report", "Export a report (&HTML)…", exports.ask_report)
    actions.add("file", "export-run", "Export the &whole run…", exports.ask_run, "Ctrl+Shift+E")
    for page in window.pages:
        page.chart_menu.connect(exports.chart_menu)


def _offer(window: MainWindow, exports: ExportActions, menu: QMenu) -> None:
    """The charts of the page in front, as they are now, after the sizes of PNG and a separator."""
    for action in menu.actions()[2:]:
        menu.removeAction(action)
        action.deleteLater()
    # One without panels is a picture that is made with all the others.
    for chart in (chart for chart in window.page.exported().charts if chart.panels):
        action = new_action(menu, f"{chart.title}…", lambda _=False, chart=chart: exports.ask_chart(chart))
        menu.addAction(action)
    if len(menu.actions()) == 2:
        menu.addAction("No chart yet").setEnabled(False)


class ExportStrip(QWidget):
    """Hidden until there is something to say. `folder_wanted` carries the folder to open."""

    folder_wanted = Signal(Path)
    cancel_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._folder = Path()
        self.words = Label()
        self.bar = Progress(70, 12)
        self.cancel_button = tool_button(
            "Cancel",
            self.cancel_wanted,
            name="Cancel the export",
            tip="End the export; files that are made stay",
        )
        self.folder_button = tool_button("Open folder", lambda: self.folder_wanted.emit(self._folder))
        self.close_button = tool_button(
            "✕", self.hide, flat=True, tip="Dismiss", name="Dismiss the result of the export"
        )
        filled(
            QHBoxLayout(self),
            self.words,
            self.bar,
            self.cancel_button,
            self.folder_button,
            self.close_button,
            margins=(8, 0, 4, 0),
        )
        self.hide()

    def show_standing(self, standing: ExportStanding) -> None:
        files = f", {_files(standing.files)}" if standing.files else ""
        more = f"; {standing.waiting} more to come" if standing.waiting else ""
        self.words.setText(f"Exporting {standing.order.what}{files}{more}")
        self.bar.show_part(min(standing.files, standing.order.expected), standing.order.expected)
        self._show(True)

    def show_made(self, order: Order, files: Sequence[Path]) -> None:
        if order.then is not None:  # made for somebody else, who says so
            self.hide()
            return
        self._folder = order.where if order.where.is_dir() else order.where.parent
        name = order.where.name
        text = f"Exported {order.what} to {name}"
        self.words.setText(f"{text} ({_files(len(files))})" if len(files) > 1 else text)
        self.words.setToolTip(str(order.where))
        self._show(False)

    def say(self, text: str) -> None:
        """A result without a folder."""
        self.words.setText(text)
        self._show(False)
        self.folder_button.hide()

    def _show(self, busy: bool) -> None:
        self.bar.setVisible(busy)
        self.cancel_button.setVisible(busy)
        self.folder_button.setVisible(not busy)
        self.close_button.setVisible(not busy)
        self.show()


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"


_FILTERS = {
    "png": "PNG picture (*.png)",
    "svg": "SVG drawing (*.svg)",
    "pdf": "PDF page (*.pdf)",
    "csv": "CSV, the numbers (*.csv)",
}
REPORT = "Web page, all in one file (*.html)"
_SCALE, _FOLDER = "export/scale", "export/folder"


class ExportActions(QObject):
    """One a window. Wherever a file is asked for, the last folder used is offered."""

    def __init__(self, window: MainWindow, exporter: Exporter | None = None) -> None:
        super().__init__(window)
        self._window = window
        self.exporter = exporter or Exporter(self)
        self.strip = ExportStrip()
        window.statusBar().addPermanentWidget(self.strip)
        self.strip.hide()
        self.strip.folder_wanted.connect(reveal)
        self.exporter.stands.connect(self.strip.show_standing)
        self.exporter.made.connect(self.strip.show_made)
        self.exporter.failed.connect(self._on_failed)
        self.exporter.cancelled.connect(self.strip.say)
        self.strip.cancel_wanted.connect(self.exporter.cancel)
        self.form: ExportForm | None = None
        application = QGuiApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.exporter.quit)
        kept = str(window.settings.value(_SCALE, 2))
        self._scale = int(kept) if kept.isdigit() and int(kept) in SCALES else 2

    @property
    def scale(self) -> int:
        """Of PNG: 1 gives 150 dots an inch."""
        return self._scale

    def set_scale(self, scale: int) -> None:
        self._scale = scale
        self._window.settings.setValue(_SCALE, scale)

    def scale_menu(self, menu: QMenu) -> QMenu:
        """The sizes of PNG to choose from, as a menu of `menu`."""
        made = menu.addMenu("PNG si&ze")
        group = QActionGroup(made)
        for scale in SCALES:
            action = group.addAction(made.addAction(f"&{scale}×"))
            action.setCheckable(True)
            action.setToolTip(f"{scale * DOTS} dots an inch")
            action.triggered.connect(lambda _=False, scale=scale: self.set_scale(scale))

        def check() -> None:
            for action, scale in zip(group.actions(), SCALES, strict=True):
                action.setChecked(scale == self._scale)

        made.aboutToShow.connect(check)
        check()
        return made

    def chart_menu(self, menu: QMenu, chart: Chart) -> None:
        """Add to a chart's context menu what can be exported of it."""
        menu.addSeparator()
        menu.addAction("E&xport…").triggered.connect(lambda: self.ask(chart.name))
        for kind, words in FORMATS.items():
            text = f"Export as &{words}…" if kind != "csv" else "Export n&umbers as CSV…"
            action = menu.addAction(text)
            action.triggered.connect(lambda _=False, kind=kind: self.ask_chart(chart, kind))
        self.scale_menu(menu)
        menu.addAction("Copy as &image").triggered.connect(lambda: self.copy_image(chart))
        menu.addAction("&Show the folder").triggered.connect(self.show_folder)

    # ------------------------------------------------------------------------------------------ the orders

    def ask_chart(self, chart: Chart, kind: str = "png") -> None:
        """Ask for a file and export one chart; the file's ending may choose another format than `kind`."""
        if self._subject() is None:
            return
        offered = self._folder() / f"{chart.name}.{kind}"
        name, chosen = QFileDialog.getSaveFileName(
            self._window, "Export a chart", str(offered), ";;".join(_FILTERS.values()), _FILTERS[kind]
        )
        if name:
            self.export_chart(chart, _with_ending(Path(name), chosen))

    def export_chart(self, chart: Chart, path: Path) -> None:
        """One chart into a file, in the format of its ending."""
        if (subject := self._subject()) is not None:
            self._keep_folder(path.parent)
            words = f"{chart.title.partition(': ')[2] or chart.title}"
            self.exporter.start(Order(self._one(subject, chart, path), words, path))

    def ask(self, chart: str = "") -> None:
        """Ask what is wanted of the page in front (a chart of it), in which form, and export it."""
        subject = self._subject()
        if subject is None:
            return
        if self.form is not None:
            self.form.close()
        window = self._window
        form = ExportForm(
            window.settings, subject.what, subject.charts, self._folder(), self._scale, parent=window
        )
        form.wanted.connect(lambda wish: self.export(subject, wish))
        form.finished.connect(self._on_form_closed)
        self.form = form
        form.choose(chart)
        form.open()

    def export(self, subject: Exported, wish: Wish) -> None:
        """What was wished for of a run, a ladder or a profile."""
        assert subject.folder is not None
        self.set_scale(wish.scale)
        self._keep_folder(wish.folder)
        pictures = [kind for kind in wish.formats if kind != "csv"]
        tables = not wish.charts and "csv" in wish.formats
        on = [
            f"--{'' if getattr(wish.look, part) else 'no-'}{part}"
            for part in ("title", "finding", "footer", "caption")
        ]
        arguments = (
            "export", str(subject.folder.absolute()), "--charts", ",".join(wish.formats),
            *(word for name in wish.charts for word in ("--chart", name)), *(["--csv"] if tables else []),
            "--width", wish.look.width, *on, "--scale", str(wish.scale), "--out", str(wish.folder),
            *self._over(subject),
        )  # fmt: skip
        each = len(wish.formats) + (wish.look.caption and bool(pictures))
        count = len(wish.charts or subject.charts) * each
        named = {chart.name: chart.title for chart in subject.charts}
        what = named[wish.charts[0]] if wish.charts else f"all of {subject.what}"
        self.exporter.start(Order(arguments, what, wish.folder, expected=count))

    def ask_report(self) -> None:
        """Ask for a file and write the report of the page in front into it, all in one HTML file."""
        subject = self._subject()
        if subject is None:
            return
        assert subject.folder is not None
        offered = self._folder() / f"{subject.folder.absolute().name}.html"
        name, _ = QFileDialog.getSaveFileName(
            self._window, f"Export a report of {subject.what}", str(offered), REPORT
        )
        if name:
            path = Path(name)
            self.export_report(subject, path if path.suffix else path.with_name(f"{path.name}.html"))

    def export_report(self, subject: Exported, path: Path) -> None:
        """The report of a run, a ladder or a profile, in the form of the file's ending."""
        assert subject.folder is not None
        self._keep_folder(path.parent)
        arguments = ("runs", "report", str(subject.folder.absolute()), "--out", str(path))
        self.exporter.start(Order(arguments, f"a report of {subject.what}", path, expected=1))

    def ask_run(self) -> None:
        """Ask for a folder and copy the whole run into it."""
        if self._subject() is None:
            return
        chosen = ask_folder(self._window, "Copy the run into a folder", str(self._folder()))
        if chosen:
            self.export_run(Path(chosen))

    def export_run(self, folder: Path) -> None:
        """The whole run as a folder of its own name in `folder`."""
        if (subject := self._subject()) is not None and subject.folder is not None:
            self._keep_folder(folder)
            run = subject.folder.absolute()
            order = ("runs", "copy", str(run), str(folder / run.name))
            self.exporter.start(Order(order, "the run", folder / run.name))

    def show_folder(self) -> None:
        """The folder that the page in front is of, in the system's file manager."""
        if (subject := self._subject()) is not None and subject.folder is not None:
            reveal(subject.folder)

    def copy_image(self, chart: Chart) -> None:
        """Draw a chart and put the picture on the clipboard."""
        subject = self._subject()
        if subject is None:
            return
        folder = tempfile.TemporaryDirectory(prefix="kernelscope-")
        path = Path(folder.name) / f"{chart.name}.png"

        def then() -> None:
            image = QImage(str(path))
            folder.cleanup()
            QGuiApplication.clipboard().setImage(image)
            self.strip.say("Copied the chart as an image")

        self.exporter.start(Order(self._one(subject, chart, path), "an image", path, then))

    # ------------------------------------------------------------------------------------------ the inside

    def _one(self, subject: Exported, chart: Chart, path: Path) -> tuple[str, ...]:
        """The command that draws one chart into a file."""
        assert subject.folder is not None
        words = ("export", str(subject.folder.absolute()), "--chart", chart.name, "--file", str(path))
        return (*words, "--scale", str(self._scale), *self._over(subject))

    def _over(self, subject: Exported) -> tuple[str, ...]:
        """The runs that are laid over the comparison shown."""
        overlays = self._window.state.overlays if subject.folder == self._window.state.folder else ()
        return tuple(word for other in overlays for word in ("--over", str(other.folder.absolute())))

    def _subject(self) -> Exported | None:
        """What the page in front exports; None, and told, where there is nothing yet."""
        subject = self._window.page.exported()
        if subject.folder is not None:
            return subject
        self._window.tell(
            f"There is nothing to export yet: this page exports {subject.what}; run or open one first (F5 "
            "runs the comparison)."
        )
        return None

    def _folder(self) -> Path:
        kept = Path(str(self._window.settings.value(_FOLDER, "")))
        return kept if kept.is_absolute() and kept.is_dir() else Path.home()

    def _keep_folder(self, folder: Path) -> None:
        self._window.settings.setValue(_FOLDER, str(folder.absolute()))

    def _on_form_closed(self) -> None:
        form, self.form = self.form, None
        if form is not None:
            form.deleteLater()

    def _on_failed(self, sentence: str) -> None:
        self.strip.hide()
        self._window.tell(sentence)


def _with_ending(path: Path, chosen: str) -> Path:
    """The file the user means: with the ending of the chosen filter where he typed none of ours."""
    if path.suffix.lower().lstrip(".") in FORMATS:
        return path
    kind = next((kind for kind, words in _FILTERS.items() if words == chosen), "png")
    return path.with_name(f"{path.name}.{kind}")


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
        self.charts, self.width_of, self.dots = Combo(), Combo(), Combo()
        everything = {"": "Everything: all charts and tables"}
        self.charts.offer(everything | {chart.name: chart.title for chart in charts})
        self.width_of.offer({key: width.words[:1].upper() + width.words[1:] for key, width in WIDTHS.items()})
        self.dots.offer({each: f"{each * DOTS} dots an inch" for each in SCALES}, scale)
        self.formats = {key: QCheckBox(words) for key, words in FORMATS.items()}
        self.parts = {key: QCheckBox(words) for key, words in _PARTS.items()}
        self.caption = QCheckBox("&Caption in a text file beside each picture")
        self.folder = QLineEdit(str(folder))
        self.browse = push_button("&Browse…", self._on_browse)
        self.note = Label(
            "Pictures are on light paper in either theme. What failed or is doubtful stays marked.",
            role="muted",
            wrap=True,
        )
        self.export_button = push_button("&Export", self._on_export, role="primary")
        self.export_button.setDefault(True)
        cancel = push_button("Cancel", self.reject)
        self._lay_out(cancel)
        self._restore()
        self.width_of.currentIndexChanged.connect(self._on_width)
        for box in (*self.formats.values(), *self.parts.values()):
            box.toggled.connect(self._update)
        self.folder.textChanged.connect(self._update)
        self._update()

    def choose(self, chart: str) -> None:
        """One chart, by its name."""
        self.charts.choose(chart)

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
        formats = filled(QHBoxLayout(), *self.formats.values(), 1, spacing=WIDE)
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
        buttons = filled(QHBoxLayout(), 1, cancel, self.export_button)
        filled(QVBoxLayout(self), form, self.note, buttons, margins=(16, 16, 16, 16), spacing=12)
        self.folder.setMinimumWidth(320)

    def _restore(self) -> None:
        kept = str(self._settings.value("export/formats", "png,svg,pdf,csv")).split(",")
        for key, box in self.formats.items():
            box.setChecked(key in kept)
        self.width_of.choose(self._settings.value("export/width"))
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
