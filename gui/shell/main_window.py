"""The window: it connects the form, pages, inspector, problems, progress and machine strip, and computes
nothing. Its menus, and how it redraws.

Menus come from the modules of gui/menus, so a new group of actions is one file with `ORDER` and
`add_to(window, actions)`. A separator stands between the groups of two modules in a menu. They may use
the window's `state`, `session`, `theming`, `settings`, `form`, `menu_actions`, `tabs`, `pages`,
`redraw`, `tell(sentence)` and `start(job)`.

Data only mark the state as changed. At most 25 times a second, a few rows are derived and the visible
views that are out of date are drawn. A view that draws slowly is drawn less often, so that most of the
time is left for the user.
"""

from __future__ import annotations

import functools
import gc
import importlib
import pkgutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from PySide6.QtCore import QEvent, QObject, QSettings, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QMainWindow,
    QMenu,
)

from bench.results import note, rows
from bench.results.messages import Log
from bench.results.records import BackendInfo, Job
from bench.results.store import RUNS
from bench.run import elsewhere
from gui.base import faults
from gui.base.background import timer
from gui.base.boxes import SIZE, as_column, as_row, keep_sizes, placed, put_on_screen, restore_sizes, tabbed
from gui.base.theme import Theming
from gui.form.job_form import JobForm
from gui.pages.page import Page, page_types
from gui.sessions.comparison_session import ComparisonSession, RunState
from gui.sessions.session import Session, Standing
from gui.sessions.where import Where
from gui.shell.docks import Docks, Inspector, Problems
from gui.shell.model_files import DropTarget, ModelFiles
from gui.shell.notices import BUSY, MACHINE, Banner
from gui.shell.remedies import Remedies
from gui.shell.room import Room
from gui.shell.strips import MachineStrip, ProgressStrip
from gui.widgets.question import ask
from gui.widgets.table_view import keep_columns
from kernels.errors import KernelscopeError

if TYPE_CHECKING:
    from gui.menus.help import Help
    from gui.menus.ladder import LadderActions
    from gui.menus.preferences import Preferences
    from gui.menus.timeline import ProfileActions
    from gui.shell.library import Library
PERIOD_MS = 40
DERIVE_S = 0.008  # of each period, for rows
TURN_S = 0.02  # after which no further view is drawn in one turn
FLUSHES = 50  # turns after which a view that is still dirty is left so
SHARE = 0.25  # of the time, at most, that one view may take to draw


class Redrawable(Protocol):
    """What can be redrawn: a Page, the inspector, a list."""

    @property
    def dirty(self) -> bool: ...
    def redraw(self) -> None: ...
    def isVisible(self) -> bool: ...


class Redraw(QObject):
    """The redraw timer. `add` adds views; `wake` starts it when a view may be out of date (each change of
    the state does)."""

    def __init__(
        self,
        state: RunState,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(parent)
        self._state = state
        self._clock = clock
        self._views: list[Redrawable] = []
        self._not_before: dict[int, float] = {}
        self._timer = timer(self, PERIOD_MS, self._tick, repeats=True)
        state.changed.connect(self.wake)

    def add(self, *views: Redrawable) -> None:
        self._views += views
        for view in views:
            if isinstance(view, QObject):  # when a window closes, its pages may be deleted before this timer
                view.destroyed.connect(partial(self._forget, view))
        self.wake()

    def _forget(self, gone: Redrawable) -> None:
        self._views = [view for view in self._views if view is not gone]

    def wake(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def flush(self) -> None:
        """Derive and draw everything that is visible, now (before a picture is taken; in tests)."""
        while not self._state.up_to_date:
            self._state.work(1.0)
        for _ in range(FLUSHES):  # a view may draw a part at a time
            for view in self._dirty():
                view.redraw()

    def _tick(self) -> None:
        end_of_turn, drawn = self._clock() + TURN_S, False
        self._state.work(DERIVE_S)
        dirty = self._dirty()
        for view in dirty:
            now = self._clock()
            if now < self._not_before.get(id(view), 0.0):
                continue
            if drawn and now > end_of_turn:  # keys and clicks come first; the others are drawn next time
                break
            drawn = True
            try:
                view.redraw()
            finally:
                # Also if drawing failed: such a page must not be drawn 25 times a second.
                end = self._clock()
                self._not_before[id(view)] = end + (end - now) * (1 / SHARE - 1)
        if not dirty and self._state.up_to_date:
            self._timer.stop()

    def _dirty(self) -> Sequence[Redrawable]:
        return [view for view in self._views if view.isVisible() and view.dirty]


MENUS = {"file": "&File", "run": "&Run", "view": "&View", "help": "&Help"}


class Actions:
    """The window's menus, and all actions by name."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._group = ""
        self._group_of: dict[str, str] = {}
        self.menus: dict[str, QMenu] = {key: window.menuBar().addMenu(text) for key, text in MENUS.items()}
        self.by_name: dict[str, QAction] = {}

    def add(
        self,
        menu: str,
        name: str,
        text: str,
        slot: Callable[[], object],
        shortcut: str | QKeySequence.StandardKey | Sequence[str] | None = None,
        tip: str = "",
        enabled: bool = True,
    ) -> QAction:
        """Add an action at the end of a menu (a key of MENUS). text: "&" stands before its marked letter;
        name: its key in `by_name`; shortcut: one, or a list of several."""
        action = QAction(text, self._window)
        action.setObjectName(name)
        if isinstance(shortcut, QKeySequence.StandardKey):
            action.setShortcuts(QKeySequence.keyBindings(shortcut))
        elif isinstance(shortcut, str):
            action.setShortcut(QKeySequence(shortcut))
        elif shortcut is not None:
            action.setShortcuts([QKeySequence(keys) for keys in shortcut])
        if tip:
            action.setToolTip(tip)
        action.setEnabled(enabled)
        action.triggered.connect(lambda checked=False: slot())
        self.by_name[name] = action
        self.place(menu, action)
        return action

    def place(self, menu: str, action: QAction) -> None:
        """Add an action that was made elsewhere (for example by a dock) at the end of a menu."""
        target = self.menus[menu]
        if self._group_of.get(menu, self._group) != self._group:
            target.addSeparator()
        self._group_of[menu] = self._group
        target.addAction(action)

    def submenu(self, menu: str, text: str) -> QMenu:
        """Add a menu at the end of a menu."""
        submenu = QMenu(text, self._window)
        self.place(menu, submenu.menuAction())
        return submenu

    def every(self, menu: QMenu) -> list[QAction]:
        """All actions of a menu and of the menus inside it."""
        actions: list[QAction] = []
        for action in menu.actions():
            inner = action.menu()
            actions += self.every(inner) if isinstance(inner, QMenu) else [action]
        return actions

    def collect(self) -> None:
        """Let every module of gui/menus add its actions."""
        import gui.menus

        modules = [
            importlib.import_module(f"gui.menus.{info.name}")
            for info in pkgutil.iter_modules(gui.menus.__path__)
        ]
        for module in sorted(modules, key=lambda module: (module.ORDER, module.__name__)):
            self._group = module.__name__
            module.add_to(self._window, self)


P = TypeVar("P", bound=Page)
TOUR_SEEN = "tour/seen"  # the setting that keeps the tour from coming by itself
TRUST = "Run these kernels"
END, STAY = "End and close", "Keep running"
LATER_MS = 500  # after which it is seen whether a run is still on


class MainWindow(QMainWindow):
    """The window. Show it, then call `begin`. command: another worker (for tests). `begun`: the user sees
    it now; `closing`: it closes; `run_dropped` carries the folder of a run that was dropped on it."""

    library: Library  # of gui.menus.runs
    ladders: LadderActions  # gui.menus.ladder
    profiles: ProfileActions  # gui.menus.timeline
    helper: Help  # gui.menus.help
    preferences: Preferences  # gui.menus.preferences
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
        self.where = Where(settings, self)
        self.state = RunState(self)
        self.session = ComparisonSession(self.state, self, command, runs)
        self.redraw = Redraw(self.state, self)
        self._ended = False
        self._opened_problems = False  # the list of problems was opened by the program
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
        if self.where.backends:
            self.where.can_run.emit(self.where.backends)
        self._restore()

    def begin(self) -> None:
        """Start what runs beside the window: a waiting worker, and the readings of the machine."""
        self.session.warm_up()
        self.machine.start()
        self.begun.emit()
        # While the user looks at the form there is time to build the page that a run will fill.
        QTimer.singleShot(200, self, self._prepare_page)

    def tell(self, text: str, severity: str = "info") -> None:
        """Show a sentence in a notice. It blocks nothing. severity: of gui.shell.notices.SIGNS. What says
        that something is measured goes when that has ended."""
        faults.log.info("told: %s", text)
        busy = any(session.active and session.busy_words in text for session in self.sessions)
        if busy:
            self.banner.replace(BUSY, [text])
        else:
            self.banner.show_message(text, severity)

    def tell_of_machine(self, sentences: Sequence[str]) -> None:
        """Show what disturbs measuring now. It replaces what was said at an earlier run."""
        for sentence in sentences:
            faults.log.info("told: %s", sentence)
        self.banner.replace(MACHINE, sentences)

    def tell_how_to_add(self) -> None:
        """Say how another machine is added. ssh may ask for a password or a host's key, which needs a
        terminal."""
        command = elsewhere.ADDING
        self.banner.ask(
            f"To add a machine that ssh reaches, type in a terminal: {command}\nlab is what you call it, "
            "user@host what ssh calls it. The list has it as soon as you come back here.",
            "Copy the command",
            lambda: QApplication.clipboard().setText(command),
        )

    def doubt(self, reason: str, run: Callable[[], None]) -> None:
        """Say why kernels of somebody else are not run, with a button that runs them."""
        faults.log.info("doubted: %s", reason)
        words = f"{reason[:1].upper()}{reason[1:]}. Read them before you run them."
        self.banner.ask(words, TRUST, run, severity="warning")

    def join(self, session: Session) -> None:
        """Add a session: while one session measures, no other begins."""
        for other in self.sessions:
            other.blockers.append(session.occupied)
            session.blockers.append(other.occupied)
        self.sessions.append(session)
        session.follow(self.where)
        session.greeted.connect(lambda hello: self.where.see(session.on, hello.environment.backends))
        session.stands.connect(lambda _: self.where.lock(any(each.active for each in self.sessions)))
        session.stands.connect(lambda _: self._tell_ready())
        session.message.connect(lambda text: self.tell(text, "warning"))
        session.ended.connect(self._on_ended)
        session.looked.connect(self.tell_of_machine)
        session.doubted.connect(self.doubt)
        session.logged.connect(self._on_log)
        self.closing.connect(session.quit)

    def name_window(self) -> None:
        """Put the run's name into the title. Qt adds the program's."""
        folder = self.state.folder
        run = (note.read(folder).name or folder.absolute().name) if folder is not None else ""
        self.setWindowTitle(run or "Kernelscope")

    def start(self, job: Job, folder: Path | None = None) -> None:
        """Run a job. Errors are shown in the banner."""
        if self.session.active:
            self.tell(f"{self.session.busy_words}; cancel it or wait for its end.")
            return
        try:
            self.session.start(job, folder)
        except KernelscopeError as error:
            self.tell(str(error), "failed")

    def open_models(self, paths: Sequence[str] = ()) -> None:
        """Add .onnx files to the form, after each was looked at. Without paths, ask for them."""
        if paths:
            self.model_files.open(paths)
        else:
            self.model_files.ask_open()

    def end(self) -> None:
        """Close without asking. What was measured is kept."""
        self._ended = True
        self.close()

    @property
    def page(self) -> Page:
        """The page in front."""
        page = self.tabs.currentWidget()
        assert isinstance(page, Page)
        return page

    def page_of(self, kind: type[P]) -> P:
        """The page of this type."""
        return next(page for page in self.pages if isinstance(page, kind))

    # ------------------------------------------------------------------------------------------ events

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.where.look()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._docks.fit(self.width()):
            self.room.arrange()
        self.room.fit_foot()

    def closeEvent(self, event: QCloseEvent) -> None:
        running = next((session for session in self.sessions if session.writing), None)
        if running is not None and not self._ended and not self._may_end(running):
            event.ignore()
            return
        self._ended = True
        self._keep()
        self.closing.emit()
        self.machine.stop()
        event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        # Accept every file; the drop says if it is no model.
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.open_models([url.toLocalFile() for url in event.mimeData().urls()])
        event.acceptProposedAction()

    # ------------------------------------------------------------------------------------------ building

    def _build(self) -> None:
        self.tabs = tabbed({})
        self.pages = [page(self.state, self.theming) for page in page_types()]
        for page in self.pages:
            page.built.connect(functools.partial(restore_sizes, self.settings))
            page.built.connect(functools.partial(keep_columns, self.settings))
            page.restore(self.settings)
            self.tabs.addTab(page, page.title)
        centre = as_column((self.tabs, 1))
        self.setCentralWidget(centre)
        self.banner = Banner(centre, self.settings)

        self.form = JobForm(self.settings, self.where)
        self.inspector = Inspector(self.state, self.theming)
        self.problems = Problems(self.state)
        self._docks = docks = Docks(self, self.theming, self.form, self.inspector, self.problems)
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
        self.form.changed.connect(self._tell_ready)
        for page in self.pages:
            page.readied.connect(self._tell_ready)
        self.where.can_run.connect(self._on_can_run)
        self.form.where.add_wanted.connect(self.tell_how_to_add)
        self.progress.pause.connect(self.session.pause)
        self.progress.resume.connect(self.session.resume)
        self.progress.cancel.connect(self.session.cancel)
        self.problems.counted.connect(self._on_problems)
        self.remedies = Remedies(self)
        self.problems.remedy_wanted.connect(self.remedies.begin)
        self.state.replaced.connect(self._on_replaced)
        self.tabs.currentChanged.connect(self._on_page)
        self._on_page()
        if fault_handler is not None:
            fault_handler.raised.connect(self.banner.show_fault)
            fault_handler.listen()
            self.closing.connect(fault_handler.deafen)

    # ------------------------------------------------------------------------------------------ the inside

    def _restore(self) -> None:
        place = placed(SIZE, self.screen().availableGeometry())
        self._docks.fit(place.width())
        self.resize(place.size())
        self.move(place.topLeft())  # the position with the frame, so that the title bar is on the screen
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
        self.settings.sync()

    def _may_end(self, running: Session) -> bool:
        """Ask whether the window may close while this measures."""
        if running.on and running.kind.resumes:
            words = (
                f"What was measured is kept. If it goes on, {running.on} measures the rest, and Resume "
                "fetches it."
            )
            leave, end = f"Leave it running on {running.on}", "End it there and close"
            answer = ask(self, running.busy_words, words, (leave, end), STAY)
            running.leaves = answer == leave
            return answer != STAY
        later = " The run can be continued later." if running is self.session else ""
        words = f"What was measured is kept.{later}"
        return ask(self, running.busy_words, words, (END,), STAY) == END

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
        """Run steps one after another, with the user's events between them. The steps in `later` wait
        while something is measured: a page that nobody sees takes long to build."""
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

    def _on_ended(self) -> None:
        """Take back what was true while something was measured."""
        if not any(session.active for session in self.sessions):
            self.banner.replace(BUSY, ())
            self.banner.replace(MACHINE, ())

    def _on_can_run(self, backends: Sequence[BackendInfo]) -> None:
        self.backends = tuple(backends)
        self.form.show_backends(self.backends)

    def _on_log(self, message: Log) -> None:
        faults.log.info("worker %s: %s", message.level, message.text)
        self.problems.logged(message)

    def _on_problems(self, count: int, every: int) -> None:
        """count: without the doubts, which do not open the list: a badge on Compare counts them."""
        self.problems_dock.setWindowTitle(f"Problems ({every})" if every else "Problems")
        first, self._any_problems = count > 0 and not self._any_problems, count > 0
        if first and self.problems_dock.isHidden():  # closed again, it stays closed
            self.problems_dock.show()
            self._opened_problems = True
        elif not count and self._opened_problems:  # give the room to the pages
            self.problems_dock.hide()
            self._opened_problems = False

    def _on_page(self) -> None:
        self._tell_ready()
        self.redraw.wake()

    def _tell_ready(self) -> None:
        """Say in the strip what can be done next on the page in front, or why nothing can."""
        running = next((f"{each.busy_words}." for each in self.sessions if each.active), "")
        refused = self.form.refused if self.page.form else ""
        self.progress.show_ready(running or refused or self.page.ready, self.page.form and not running)

    def _on_replaced(self) -> None:
        self.name_window()


def _settle_memory() -> None:
    # All that is loaded now stays loaded. Without `freeze`, each full collection would take 40 ms for it.
    gc.collect()
    gc.freeze()


class _Always:
    """The problems as a view that is redrawn even while it is hidden: it decides itself whether it is
    shown."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    @property
    def dirty(self) -> bool:
        return self._problems.dirty

    def redraw(self) -> None:
        self._problems.redraw()

    def isVisible(self) -> bool:
        return True
