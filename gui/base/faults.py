"""What goes wrong in the window: an exception that a slot raises is logged and shown in the banner.

Without this, PySide prints the traceback on standard error, where nobody looks. The log is a rotating
file in the user's log folder.
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
RECORDS = "kernelscope.records"  # the logger with which bench.results.results_file reports damaged lines
log = logging.getLogger("kernelscope.window")


def log_path() -> Path:
    """The file of the window's log."""
    return Path(platformdirs.user_log_path("kernelscope", appauthor=False)) / "window.log"


class Faults(QObject):
    """Handles every exception that nobody caught, in slots and in threads, once `install` was called."""

    raised = Signal(str)  # one sentence for the user; from any thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._records = _DamagedRecords(self)

    def report(self, error: BaseException) -> None:
        """Log an exception with its traceback, and emit `raised` with a sentence for the user."""
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
        """From now on, emit `raised` for damaged lines in files of records, until `deafen` is called."""
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
    """Passes on what bench.results.results_file says of damaged lines."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(logging.WARNING)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("%s", record.getMessage())
        with contextlib.suppress(RuntimeError):  # the window has closed meanwhile
            self._faults.raised.emit(record.getMessage())


def sentence(error: BaseException) -> str:
    """An exception as a sentence. A KernelscopeError is one already; anything else is called a fault of
    the program."""
    from kernels.errors import KernelscopeError

    if isinstance(error, KernelscopeError):
        return str(error)
    text = str(error).strip().splitlines()
    return f"Something went wrong in the window ({type(error).__name__}{': ' + text[0] if text else ''})"


def start_log(path: Path) -> None:
    """Log into a rotating file; if it cannot be written, log on standard error."""
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
