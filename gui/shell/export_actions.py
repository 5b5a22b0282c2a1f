"""What can be exported of the run shown, asked for from the menu or on a chart; gui.sessions.export does
it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QActionGroup, QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QMenu

from bench.charts import Chart
from gui.base.folders import ask_folder
from gui.form.export_form import SCALES, ExportForm, Wish
from gui.pages.page import Exported
from gui.sessions.export import Exporter, Order
from gui.shell.export_strip import ExportStrip
from gui.shell.library import reveal

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow

FORMATS = {"png": "PNG", "svg": "SVG", "pdf": "PDF", "csv": "CSV"}
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
            action = QAction(f"&{scale}×", made, checkable=True)
            action.setToolTip(f"{scale * 150} dots an inch")
            action.triggered.connect(lambda _=False, scale=scale: self.set_scale(scale))
            group.addAction(action)
            made.addAction(action)

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

    # ------------------------------------------------------------------------------------------ the orders

    def ask_chart(self, chart: Chart, kind: str = "png") -> None:
        """Ask for a file and export one chart; the file's ending may choose another format than `kind`."""
        if self._run() is None:
            return
        offered = self._folder() / f"{chart.name}.{kind}"
        name, chosen = QFileDialog.getSaveFileName(
            self._window, "Export a chart", str(offered), ";;".join(_FILTERS.values()), _FILTERS[kind]
        )
        if name:
            self.export_chart(chart, _with_ending(Path(name), chosen))

    def export_chart(self, chart: Chart, path: Path) -> None:
        """One chart into a file, in the format of its ending."""
        if (run := self._run()) is not None:
            self._keep_folder(path.parent)
            words = f"{chart.title.partition(': ')[2] or chart.title}"
            self.exporter.start(Order(self._one(run, chart, path, self._scale), words, path))

    def ask(self, chart: str = "") -> None:
        """Ask what is wanted of the page in front (a chart of it), in which form, and export it."""
        subject = self._window.page.exported()
        if subject.folder is None:
            self._window.tell(
                f"There is nothing to export yet: this page exports {subject.what}; run or open one first."
            )
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
            *(self._over() if subject.folder == self._window.state.folder else ()),
        )  # fmt: skip
        each = len(wish.formats) + (wish.look.caption and bool(pictures))
        count = len(wish.charts or subject.charts) * each
        named = {chart.name: chart.title for chart in subject.charts}
        what = named[wish.charts[0]] if wish.charts else f"all of {subject.what}"
        self.exporter.start(Order(arguments, what, wish.folder, expected=count))

    def ask_report(self) -> None:
        """Ask for a file and write the report of the page in front into it, all in one HTML file."""
        subject = self._window.page.exported()
        if subject.folder is None:
            self._window.tell(
                f"There is nothing to report yet: {subject.what} has to be run or opened first."
            )
            return
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
        run = self._run()
        if run is None:
            return
        chosen = ask_folder(self._window, "Copy the run into a folder", str(self._folder()))
        if chosen:
            self.export_run(Path(chosen))

    def export_run(self, folder: Path) -> None:
        """The whole run as a folder of its own name in `folder`."""
        if (run := self._run()) is not None:
            self._keep_folder(folder)
            target = folder / run.name
            self.exporter.start(Order(("runs", "copy", str(run), str(target)), "the run", target))

    def copy_image(self, chart: Chart) -> None:
        """Draw a chart and put the picture on the clipboard."""
        run = self._run()
        if run is None:
            return
        folder = tempfile.TemporaryDirectory(prefix="kernelscope-")
        path = Path(folder.name) / f"{chart.name}.png"

        def then() -> None:
            image = QImage(str(path))
            folder.cleanup()
            QGuiApplication.clipboard().setImage(image)
            self.strip.say("Copied the chart as an image")

        self.exporter.start(Order(self._one(run, chart, path, self._scale), "an image", path, then))

    # ------------------------------------------------------------------------------------------ the inside

    def _one(self, run: Path, chart: Chart, path: Path, scale: int) -> tuple[str, ...]:
        named = ("export", str(run), "--chart", chart.name, "--file", str(path), "--scale", str(scale))
        return (*named, *self._over())

    def _over(self) -> tuple[str, ...]:
        overlays = self._window.state.overlays
        return tuple(word for other in overlays for word in ("--over", str(other.folder.absolute())))

    def _run(self) -> Path | None:
        """The folder of the run shown; None, and told, where there is nothing to export."""
        state = self._window.state
        if state.folder is None or state.empty:
            self._window.tell("There is nothing to export yet: run a comparison (F5) or open a run.")
            return None
        return state.folder.absolute()

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
