"""The window: job form, pages, inspector, problems, progress, machine strip; wires them, computes nothing.

What the groups of actions in gui/menus may use: `state`, `session`, `theming`, `settings`, `form`,
`menu_actions`, `tabs`, `pages`, `redraw`, `tell(sentence)`, `start(job)`.
"""

from __future__ import annotations

import functools
import gc
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSettings, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QMainWindow,
    QMessageBox,
    QTabWidget,
)

from bench.results import rows
from bench.results.messages import Hello, Log
from bench.results.records import BackendInfo, Job
from bench.results.store import RUNS
from gui.base import faults
from gui.base.boxes import as_column, as_row, keep_sizes, restore_sizes
from gui.base.placing import SIZE, placed, put_on_screen
from gui.base.theme import Theming
from gui.form.job_form import JobForm
from gui.pages.page import Page, page_types
from gui.sessions.comparison_session import ComparisonSession
from gui.sessions.run_state import RunState
from gui.sessions.session import Session, Standing
from gui.shell.actions import Actions
from gui.shell.banner import Banner
from gui.shell.docks import Docks
from gui.shell.drop_target import DropTarget
from gui.shell.inspector import Inspector
from gui.shell.machine_strip import MachineStrip
from gui.shell.model_files import ModelFiles
from gui.shell.problems import Problems
from gui.shell.progress_strip import ProgressStrip
from gui.shell.redraw import Redraw
from gui.shell.room import Room
from kernels.errors import KernelscopeError

if TYPE_CHECKING:
    from gui.menus.help import Help
    from gui.menus.ladder import LadderActions
    from gui.menus.timeline import ProfileActions
    from gui.shell.library import Library

TOUR_SEEN = "tour/seen"  # the setting that keeps the tour from coming by itself
TRUST = "Run these kernels"
LATER_MS = 500  # after which it is seen whether a run is still on


class MainWindow(QMainWindow):
    """`command`: another worker than ours (tests). Show it, then `begin`. `begun`: the user has it now;
    `closing`: it goes; `run_dropped`: the folder of a run was dropped on it."""

    library: Library  # of gui.menus.runs
    ladders: LadderActions  # gui.menus.ladder
    profiles: ProfileActions  # gui.menus.timeline
    helper: Help  # gui.menus.help
    begun = Signal()
    run_dropped = Signal(Path)
    closing = Signal()

    def __init__(
        self,
        settings: QSettings,
        theming: Theming,
        command: Sequence[str] | None = None,
        runs: Path = RUNS,
        fault_handler: faults.Faults | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName("main")
        self.setWindowTitle("Kernelscope")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(False)
        self.settings = settings
        self.theming = theming
        self.backends: tuple[BackendInfo, ...] = ()
        self.state = RunState(self)
        self.session = ComparisonSession(self.state, self, command, runs)
        self.redraw = Redraw(self.state, self)
        self._ended = False
        self._opened_problems = False  # the list of problems came up by itself
        self._any_problems = False
        self.sessions: list[Session] = []  # of every kind
        # What shows a folder of a kind that has a page of its own (False: behind the page in front), by the
        # kind's name.
        self.showers: dict[str, Callable[..., None]] = {}
        # What goes on with a folder of a kind, by the kind's name. Raises InputError.
        self.resumers: dict[str, Callable[..., None]] = {self.session.kind.name: self.session.go_on}
        self._build()
        self.join(self.session)
        self.menu_actions = Actions(self)
        self.menu_actions.collect()
        self.room = Room(self, self._docks)
        self.drop_target = DropTarget(self, theming)
        self.drop_target.run_dropped.connect(self.run_dropped)
        for page in self.pages:
            page.built.connect(self.drop_target.take_over)
        self._connect(fault_handler)
        self._restore()

    def begin(self) -> None:
        """Start what runs beside the window: a worker in waiting, the machine's readings."""
        self.session.warm_up()
        self.machine.start()
        self.begun.emit()
        # While the user looks at the form there is time to build the page that a run will fill.
        QTimer.singleShot(200, self, self._prepare_page)

    def tell(self, text: str) -> None:
        """Say a sentence that the user should read, without stopping him."""
        faults.log.info("told: %s", text)
        self.banner.show_message(text)

    def tell_of_machine(self, sentences: Sequence[str]) -> None:
        """Say what speaks against measuring now, in place of what was said of an earlier run."""
        for sentence in sentences:
            faults.log.info("told: %s", sentence)
        self.banner.replace("machine", sentences)

    def doubt(self, reason: str, run: Callable[[], None]) -> None:
        """Say why kernels of somebody else's are not run, with a button that runs them."""
        faults.log.info("doubted: %s", reason)
        self.banner.ask(f"{reason[:1].upper()}{reason[1:]}. Read them before you run them.", TRUST, run)

    def join(self, session: Session) -> None:
        """One more that measures: while one does, no other begins."""
        for other in self.sessions:
            other.blockers.append(session.occupied)
            session.blockers.append(other.occupied)
        self.sessions.append(session)
        session.told.connect(self.tell)
        session.looked.connect(self.tell_of_machine)
        session.doubted.connect(self.doubt)
        session.logged.connect(self._on_log)
        self.closing.connect(session.quit)

    def start(self, job: Job, folder: Path | None = None) -> None:
        """Run a job; what is wrong with it is told."""
        if self.session.active:
            self.tell("A run is active; cancel it or wait for its end.")
            return
        try:
            self.session.start(job, folder)
        except KernelscopeError as error:
            self.tell(str(error))

    def open_models(self, paths: Sequence[str] = ()) -> None:
        """Put .onnx files into the form, once each was looked at; without paths, ask for them."""
        if paths:
            self.model_files.open(paths)
        else:
            self.model_files.ask_open()

    def end(self) -> None:
        """Close without asking; what was measured is kept."""
        self._ended = True
        self.close()

    @property
    def page(self) -> Page:
        """The page in front."""
        page = self.tabs.currentWidget()
        assert isinstance(page, Page)
        return page

    # ------------------------------------------------------------------------------------------ events

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._docks.fit(self.width()):
            self.room.arrange()
        self.room.fit_foot()

    def closeEvent(self, event: QCloseEvent) -> None:
        running = next((session.busy_words for session in self.sessions if session.writing), "")
        if running and not self._ended and not self._may_end(running):
            event.ignore()
            return
        self._ended = True
        self._keep()
        self.closing.emit()
        self.machine.stop()
        event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        # Also of what is no model: the drop says so.
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.open_models([url.toLocalFile() for url in event.mimeData().urls()])
        event.acceptProposedAction()

    # ------------------------------------------------------------------------------------------ building

    def _build(self) -> None:
        self.banner = Banner()
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.pages = [page(self.state, self.theming) for page in page_types()]
        for page in self.pages:
            page.built.connect(functools.partial(restore_sizes, self.settings))
            page.restore(self.settings)
            self.tabs.addTab(page, page.title)
        centre = as_column(self.banner, (self.tabs, 1), spacing=4)
        self.setCentralWidget(centre)

        self.form = JobForm(self.settings)
        self.inspector = Inspector(self.state, self.theming)
        self.problems = Problems(self.state)
        self._docks = docks = Docks(self, self.form, self.inspector, self.problems)
        self.form_dock, self.inspector_dock, self.problems_dock = docks.form, docks.inspector, docks.problems
        for dock in (docks.form, docks.inspector, docks.problems):
            dock.visibilityChanged.connect(self.redraw.wake)

        self.progress = ProgressStrip()
        self.machine = MachineStrip(self.theming)
        divider = QFrame()
        divider.setFrameShape(QFrame.Shape.VLine)
        divider.setFrameShadow(QFrame.Shadow.Plain)
        divider.setProperty("role", "divider")
        strip = as_row((self.progress, 1), divider, self.machine)
        strip.setMinimumHeight(self.progress.cancel_button.sizeHint().height() + 6)  # also while it is hidden
        self.statusBar().addWidget(strip, 1)
        self.statusBar().setSizeGripEnabled(False)
        self.redraw.add(*self.pages, self.inspector)
        self.redraw.add(_Always(self.problems))

    def _connect(self, fault_handler: faults.Faults | None) -> None:
        self.form.run_wanted.connect(self.start)
        self.form.open_wanted.connect(self.open_models)
        self.model_files = ModelFiles(self)
        self.session.stands.connect(self._on_standing)
        self.session.greeted.connect(self._on_hello)
        self.progress.pause.connect(self.session.pause)
        self.progress.resume.connect(self.session.resume)
        self.progress.cancel.connect(self.session.cancel)
        self.problems.counted.connect(self._on_problems)
        self.state.replaced.connect(self._on_replaced)
        self.tabs.currentChanged.connect(lambda _: self.redraw.wake())
        if fault_handler is not None:
            fault_handler.raised.connect(self.banner.show_message)
            fault_handler.listen()
            self.closing.connect(fault_handler.deafen)

    # ------------------------------------------------------------------------------------------ the inside

    def _restore(self) -> None:
        place = placed(SIZE, self.screen().availableGeometry())
        self._docks.fit(place.width())
        self.resize(place.size())
        self.move(
            place.topLeft()
        )  # of its frame: a geometry would be without, and the title bar off the screen
        geometry, layout = self.settings.value("geometry"), self.settings.value("layout")
        if geometry is not None:
            self.restoreGeometry(geometry)
        if layout is not None:
            self.restoreState(layout)
            self.problems_dock.hide()  # there is none yet
        self._docks.restore(self.settings)
        self.room.arrange()
        put_on_screen(self)

    def _keep(self) -> None:
        self.form.save()
        self.settings.setValue("geometry", self.saveGeometry())
        self.settings.setValue("layout", self.saveState())
        self._docks.keep(self.settings)
        keep_sizes(self.settings, self.tabs)
        for page in self.pages:
            page.keep(self.settings)
        self.settings.setValue("theme", self.theming.choice)
        self.settings.sync()

    def _may_end(self, running: str) -> bool:
        later = ", and the run can be continued later" if self.session.active else ""
        answer = QMessageBox.question(
            self,
            running,
            f"End it? What was measured is kept{later}.",
            QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No,
            QMessageBox.StandardButton.Yes,
        )
        return answer == QMessageBox.StandardButton.Yes

    def _prepare_page(self) -> None:
        if self._ended:
            return
        self.page.prepare()
        early = [step for page in self.pages if page is not self.page for step in page.early()]
        ahead = deque([*self.page.ahead(), rows.warm_up])
        self._go_through(ahead, deque([*early, _settle_memory]))

    def _go_through(
        self, steps: deque[Callable[[], object]], later: deque[Callable[[], object]] | None = None
    ) -> None:
        """One step after another, the user's events between them; those of `later` while nothing is measured:
        what streams in is shown at once, and a page that nobody looks at takes long to build."""
        if self._ended:
            return
        if steps:
            steps.popleft()()
        elif later and not any(session.active for session in self.sessions):
            later.popleft()()
        if steps or later:
            wait = 10 if steps or not self.session.active else LATER_MS
            QTimer.singleShot(wait, self, lambda: self._go_through(steps, later))

    def _on_standing(self, standing: Standing) -> None:
        self.progress.show_standing(standing)
        self.form.set_busy(standing.active)
        for name, enabled in (
            ("run", not standing.active),
            ("pause", standing.active and standing.phase != "cancelling"),
            ("cancel", standing.active and standing.phase != "cancelling"),
        ):
            self.menu_actions.by_name[name].setEnabled(enabled)
        paused = standing.phase in ("paused", "pausing")
        self.menu_actions.by_name["pause"].setText("&Go on" if paused else "&Pause")

    def _on_hello(self, hello: Hello) -> None:
        self.backends = hello.environment.backends
        self.form.show_backends(self.backends)

    def _on_log(self, message: Log) -> None:
        faults.log.info("worker %s: %s", message.level, message.text)
        self.problems.logged(message)

    def _on_problems(self, count: int) -> None:
        self.problems_dock.setWindowTitle(f"Problems ({count})" if count else "Problems")
        first, self._any_problems = count > 0 and not self._any_problems, count > 0
        if first and self.problems_dock.isHidden():  # closed again, it stays closed
            self.problems_dock.show()
            self._opened_problems = True
        elif not count and self._opened_problems:  # the pages have better use for the room
            self.problems_dock.hide()
            self._opened_problems = False

    def _on_replaced(self) -> None:
        where = f": {self.state.folder.name}" if self.state.folder is not None else ""
        self.setWindowTitle(f"Kernelscope{where}")


def _settle_memory() -> None:
    # What is loaded by now stays: a full collection that looks through all of it takes 40 ms.
    gc.collect()
    gc.freeze()


class _Always:
    """A view that is kept up to date also while it is hidden: the problems decide whether they are shown."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    @property
    def dirty(self) -> bool:
        return self._problems.dirty

    def redraw(self) -> None:
        self._problems.redraw()

    def isVisible(self) -> bool:
        return True
