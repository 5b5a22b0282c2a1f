"""What the buttons of the list of problems do: the run starts again with the setting that mends a doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject

from bench.results import trust
from bench.results.records import Job
from bench.run import beforehand
from bench.views import remedies
from bench.views.remedies import Doubt, Remedy
from gui.base.background import Background, timer

if TYPE_CHECKING:
    from gui.shell.main_window import MainWindow

LOOK_MS = 1000  # between two looks at a machine that is waited for
QUIET_LOOKS = 3  # in a row, after which the machine is called quiet
START_NOW = "Start now"
QUIET = "quiet"  # the matter of what is said while it waits


class Remedies(QObject):
    """Starts a run again. While it waits for a quiet machine, the banner says so; who dismisses that message
    ends the waiting."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._background = Background(window.tell, self)
        self._job: Job | None = None  # that waits for a quiet machine
        self._quiet = 0  # looks in a row that saw nothing
        self._said = ""
        self._again = timer(self, LOOK_MS, self._look)
        window.closing.connect(self._forget)

    @property
    def waiting(self) -> bool:
        return self._job is not None

    def begin(self, doubt: Doubt, remedy: Remedy) -> None:
        """Measure the model of a doubt again, as the remedy says."""
        window = self._window
        if window.session.active:
            window.tell("A run is active; cancel it or wait for its end.")
            return
        run, folder = window.state.run, window.state.folder
        job = remedies.again(run.job, doubt, remedy)
        able = {info.name for info in window.backends if not info.unavailable}
        backends = tuple(name for name in job.backends if name in able) or job.backends
        job = msgspec.structs.replace(job, backends=backends)
        foreign = trust.doubt(folder, job.kernel_dirs) if folder is not None else ""
        if foreign:
            window.doubt(foreign, lambda: self._go(job, remedy))
        else:
            self._go(job, remedy)

    def _go(self, job: Job, remedy: Remedy) -> None:
        if remedy != "quiet" or self._window.session.on:  # how busy a machine elsewhere is nobody knows here
            self._forget()
            self._window.start(job)
            return
        self._job, self._quiet = job, 0
        self._say("The run starts as soon as the machine is quiet.")
        self._look()

    def _look(self) -> None:
        if self._job is not None:
            self._background.start("look for quiet", beforehand.look, self._on_looked)

    def _on_looked(self, machine: beforehand.Looked) -> None:
        job, window = self._job, self._window
        if job is None or window.session.active or self._said not in window.banner.text:
            self._forget()  # the user went on without it, or took the message away
            return
        self._quiet = 0 if machine.sentences else self._quiet + 1
        if self._quiet >= QUIET_LOOKS:
            self._start()
            return
        busy = machine.sentences[0].partition(":")[0] if machine.sentences else ""
        self._say("The run starts as soon as the machine is quiet." + f" Now: {busy}." * bool(busy))
        self._again.start()

    def _say(self, text: str) -> None:
        if text != self._said or not self._window.banner.text:
            self._said = text
            self._window.banner.ask(text, START_NOW, self._start, QUIET)

    def _start(self) -> None:
        job = self._job
        if job is not None:
            self._forget()
            self._window.start(job)

    def _forget(self) -> None:
        self._job, self._said = None, ""
        self._again.stop()
        self._window.banner.replace(QUIET, ())
