"""Windows on the offscreen platform, with settings of their own and a worker that replays its lines."""

import gc
import inspect
import linecache
import os
import re
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QEvent, QSettings
from PySide6.QtWidgets import QApplication, QMenu

from bench.run import beforehand
from gui.base import faults
from gui.base.boxes import SIZE
from gui.base.theme import Theming
from gui.sessions.processes import ChildProcess
from gui.shell.app import collect_due
from gui.shell.main_window import MainWindow
from tests import sampling
from tests.gui import forked
from tests.gui.shared import as_found

FAKE = Path(__file__).parent / "fake_worker.py"
HERE = str(FAKE.parent) + os.sep
# Of a wait and of a test: what a machine may need that does ten other things. Only what fails takes as long;
# the variable PATIENCE_MS makes it fail sooner.
PATIENCE_MS = int(os.environ.get("PATIENCE_MS", 180_000))
TEST_S = 600


# What a screen with one keyboard does otherwise than the offscreen platform.
OF_A_SCREEN = re.compile(
    "mouse|key(click|press)|hover|drag|drop|clipboard|focus|menu|screen(?!shots)|geometry", re.IGNORECASE
)


# Of these tests CI runs one in so many on a screen as well: others at each commit.
ONE_IN = 5
# Of the tests that open a window a run of all tests takes one in so many, others at each commit, and those
# near a change first (tests/sampling.py): all of them would take a third of the time there is.
OPENED = 5


def pytest_collection_modifyitems(items):
    known, on_a_screen = {}, []
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.timeout(TEST_S))
            if "qapp" in item.fixturenames:
                item.add_marker(pytest.mark.slow)
                if item.get_closest_marker("gpu") is None:
                    item.add_marker(pytest.mark.sampled(OPENED, "window"))
            if item.get_closest_marker("off_screen") is None and any(
                _on_a_screen(known, item.module, name) for name in (item.originalname, *item.fixturenames)
            ):
                item.add_marker(pytest.mark.on_a_screen)
                on_a_screen.append(item)
    for item in sampling.some("screen", on_a_screen, -(-len(on_a_screen) // ONE_IN)):
        item.add_marker(pytest.mark.screen_sample)


def _on_a_screen(known, module, name):
    """Whether a function of a module, or one that it calls, is about any of these."""
    made = inspect.unwrap(getattr(module, name, None))
    made = getattr(made, "_get_wrapped_function", lambda: made)()  # of a fixture
    if not inspect.isfunction(made) or not made.__code__.co_filename.startswith(HERE):
        return False
    if made not in known:
        known[made] = False  # where it calls itself
        home = sys.modules[made.__module__]
        within = [made.__code__, *(c for c in made.__code__.co_consts if inspect.iscode(c))]
        called = {name for code in within for name in code.co_names}
        lines = [line for code in within for *_, line in code.co_lines() if line]
        text = "".join(linecache.getlines(made.__code__.co_filename)[min(lines) - 1 : max(lines)])
        known[made] = OF_A_SCREEN.search(text) is not None or any(
            _on_a_screen(known, home, each) for each in called
        )
    return known[made]


@pytest.fixture(autouse=True, scope="module")
def _garbage_on_the_main_thread():
    """As in the program: what a test has left of Qt is not ended by a thread that reads a file. What is there
    after a module's tests stays, mostly modules that were loaded: no later search need go through it."""
    gc.disable()
    yield
    gc.collect()
    _end_menus()
    gc.freeze()
    gc.enable()


def _end_menus():
    """Each plot leaves menus behind that have no parent, and then the groups in them: each change of the
    theme would go through those of all modules before."""
    if not isinstance(QApplication.instance(), QApplication):
        return
    for left in (lambda it: type(it) is QMenu, lambda it: it.objectName().endswith("Group")):
        for widget in QApplication.topLevelWidgets():
            if widget.parent() is None and left(widget):
                widget.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(autouse=True, scope="session")
def _forked_processes(_brief_processes):
    """What the window starts begins with all loaded that it needs."""
    begun = ChildProcess.__init__

    def begin(self, command, *rest):
        begun(self, forked.command(list(command)), *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildProcess, "__init__", begin)
        yield


@pytest.fixture(autouse=True)
def _garbage_now_and_then():
    """Widgets that a test has closed are ended at once: no event loop runs between tests that would, and each
    change of the theme would go through those of all tests before."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    yield
    collect_due()


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch):
    """What is kept is read back by the same machine, which no power cut parts from what it wrote."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(autouse=True)
def _nobody_else_on_the_machine(monkeypatch):
    """What else runs where the tests do is none of theirs."""
    monkeypatch.setattr(beforehand, "look", beforehand.Looked)


class Patient(QtBot):
    """Its waits are never shorter than PATIENCE_MS. `waitExposed` and `waitActive` are for `with`: called
    alone they wait for nothing."""

    def waitUntil(self, callback, *, timeout=0):
        super().waitUntil(callback, timeout=max(timeout, PATIENCE_MS))

    def waitSignal(self, signal, *, timeout=0, **options):
        return super().waitSignal(signal, timeout=max(timeout, PATIENCE_MS), **options)

    def waitExposed(self, widget, *, timeout=0):
        return super().waitExposed(widget, timeout=max(timeout, PATIENCE_MS))

    def waitActive(self, widget, *, timeout=0):
        return super().waitActive(widget, timeout=max(timeout, PATIENCE_MS))


@pytest.fixture
def qtbot(qapp, request):
    return Patient(request)


@pytest.fixture
def fault_handler():
    return faults.Faults()


@pytest.fixture
def settings_file(tmp_path):
    return tmp_path / "window.ini"


def _window(folder, settings, plan=(), state="state", fault_handler=None):
    """A window that keeps all of its own below a folder."""
    theming = Theming("light")
    theming.apply()
    window = MainWindow(
        QSettings(str(settings), QSettings.Format.IniFormat),
        theming,
        command=[sys.executable, str(FAKE), str(folder / state), *plan] if plan else None,
        runs=folder / "runs",
        fault_handler=fault_handler,
    )
    if window.settings.value("geometry") is None:
        window.resize(SIZE)  # a small screen has made it a smaller one
    return window


@pytest.fixture
def make_window(qtbot, tmp_path, settings_file, fault_handler, monkeypatch):
    """make_window("ok", …): a window whose workers do what the words say, one after another. Without words
    its workers are the program's own."""
    monkeypatch.setattr(faults, "log_path", lambda: tmp_path / "window.log")
    windows = []

    def make(*plan, begin=True):
        window = _window(tmp_path, settings_file, plan, f"state{len(windows)}", fault_handler)
        windows.append(window)
        qtbot.addWidget(window, before_close_func=lambda w: w.session.quit())
        with qtbot.waitExposed(window):
            window.show()
        if begin:
            window.session.warm_up()
            qtbot.waitUntil(lambda: bool(window.backends) or plan[:1] == ("mute",))
        return window

    yield make
    for window in windows:
        window.end()


@pytest.fixture(scope="module")
def make_shared_window(qapp, tmp_path_factory):
    """As `make_window`, for all tests of a module that leave a window as they found it: what lends it to them
    sees to that by tests.gui.shared.as_found. Nothing is started in it."""
    windows = []

    def make():
        folder = tmp_path_factory.mktemp("shared")
        window = _window(folder, folder / "window.ini", ("mute",))
        windows.append(window)
        return window

    yield make
    for window in windows:
        window.end()
        window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def run_to_end(qtbot):
    """Run a job in a window and wait until everything measured is shown."""

    def run(window, job):
        with qtbot.waitSignal(window.session.ended):
            window.start(job)
        window.redraw.flush()
        return {m.case.key: m for m in window.state.measurements}

    return run


@pytest.fixture
def same_window(shared):
    """The window that a module's tests share (its fixture `shared`), for those that leave it as it was."""
    with as_found(shared):
        yield shared
