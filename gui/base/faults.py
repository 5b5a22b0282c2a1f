"""One place for what goes wrong in the window: a slot that raises is shown in the banner and logged.

Without this PySide prints the traceback on standard error, where nobody looks, and goes on. The log is a
rotating file in the user's log folder.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

import platformdirs
from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

LOG_NBYTES = 1_000_000
LOG_FILES = 3
RECORDS = "kernelscope.records"  # what bench.results.results_file tells of damaged lines
log = logging.getLogger("kernelscope.window")


def log_path() -> Path:
    """Where the window's log is written."""
    return Path(platformdirs.user_log_path("kernelscope", appauthor=False)) / "window.log"


class Faults(QObject):
    """`install` makes this the handler of every exception nobody caught, in slots and in threads."""

    raised = Signal(str)  # one sentence for the user; from any thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._records = _DamagedRecords(self)

    def report(self, error: BaseException) -> None:
        """Log with its traceback, and tell."""
        log.error("%s", "".join(traceback.format_exception(error)).rstrip())
        self.raised.emit(sentence(error))

    def install(self, log_file: Path | None = None) -> None:
        if log_file is not None:
            start_log(log_file)
        sys.excepthook = self._hook
        threading.excepthook = lambda args: self._hook(args.exc_type, args.exc_value, args.exc_traceback)
        qInstallMessageHandler(self._qt)

    def uninstall(self) -> None:
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        qInstallMessageHandler(None)

    def listen(self) -> None:
        """Tell what is wrong with records that are read, until `deafen`."""
        logging.getLogger(RECORDS).addHandler(self._records)

    def deafen(self) -> None:
        logging.getLogger(RECORDS).removeHandler(self._records)

    def _hook(
        self, kind: type[BaseException], value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if value is None:
            value = kind()
        if isinstance(value, KeyboardInterrupt):
            sys.__excepthook__(kind, value, trace)
            return
        self.report(value)

    @staticmethod
    def _qt(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        levels = {
            QtMsgType.QtDebugMsg: logging.DEBUG,
            QtMsgType.QtInfoMsg: logging.INFO,
            QtMsgType.QtWarningMsg: logging.WARNING,
        }
        log.log(levels.get(kind, logging.ERROR), "Qt: %s", message)


class _DamagedRecords(logging.Handler):
    """What is wrong with a record that was read in part."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(logging.WARNING)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("%s", record.getMessage())
        with contextlib.suppress(RuntimeError):  # the window has closed meanwhile
            self._faults.raised.emit(record.getMessage())


def sentence(error: BaseException) -> str:
    """An error of ours is a sentence already; anything else is a fault of the program, and says so."""
    from kernels.errors import KernelscopeError

    if isinstance(error, KernelscopeError):
        return str(error)
    text = str(error).strip().splitlines()
    return f"Something went wrong in the window ({type(error).__name__}{': ' + text[0] if text else ''})"


def start_log(path: Path) -> None:
    """Log into a rotating file; where it cannot be written, on standard error alone."""
    for old in list(log.handlers):
        log.removeHandler(old)
        old.close()
    handler: logging.Handler
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=LOG_NBYTES, backupCount=LOG_FILES - 1, encoding="utf-8", delay=True
        )
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
