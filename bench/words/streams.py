"""Standard output and error as they may be: closed, full, gone (`| head`), of an encoding that lacks half of
the characters; and Ctrl-C at a moment when nobody waits for it. None of it ends in a traceback."""

from __future__ import annotations

import _thread
import errno
import os
import signal
import sys
import threading
from types import FrameType, TracebackType

from kernels.errors import system_words

CANCELLED = 130
# Whose frames say that a module is being loaded; after how long a Ctrl-C meanwhile is heard again.
_IMPORTING, _AGAIN_S = "<frozen importlib._bootstrap>", 0.02
# What writing to a stream comes to; of a file it would have the file's name, or whoever writes it tells.
_OF_STREAMS = (errno.EPIPE, errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT, errno.EFBIG)


def lenient() -> None:
    """What a stream cannot show is shown as "?" (or as its escape, on standard error); one that was closed
    before we came takes all and keeps nothing."""
    for name, errors in (("stdout", "replace"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # for the whole process
        elif hasattr(stream, "reconfigure") and stream.errors != errors:
            stream.reconfigure(errors=errors)


def flush() -> None:
    """Have all that was printed written, while what hinders it can still be told. Raises OSError."""
    sys.stdout.flush()


def gone(error: OSError) -> str | None:
    """Where an error is standard output's own: a sentence, "" where there is nobody to tell. From then on
    what is printed goes nowhere. None for any other error."""
    if error.filename is not None or error.errno not in _OF_STREAMS:
        return None
    _nowhere()
    if error.errno == errno.EPIPE:
        return ""
    return f"standard output cannot be written: {system_words(error)}"


def last_words(status: int) -> int:
    """The exit status, once all is said: what is left to write is written, or not, and Ctrl-C changes
    nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except OSError as error:
        if reason := gone(error):
            print(reason, file=sys.stderr)
        status = status or 1
    return status


def quiet_interrupts() -> None:
    """Ctrl-C where nobody waits for it ends the process in a word; while a module is loaded, it waits until
    that is done: in the midst of its start a native library may answer an exception by a crash."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            os.write(2, b"cancelled\n")
            os._exit(CANCELLED)
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as a shell has it of what runs behind it
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(number: int, frame: FrameType | None) -> None:
    at = frame
    while at is not None:
        if at.f_code.co_filename == _IMPORTING:
            later = threading.Timer(_AGAIN_S, _again)
            later.daemon = True
            later.start()
            return
        at = at.f_back
    raise KeyboardInterrupt


def _again() -> None:
    if hasattr(signal, "pthread_kill"):  # which ends a wait, too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _nowhere() -> None:
    """Have standard output go nowhere, also what still waits to be written."""
    try:
        descriptor = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
    except (OSError, ValueError):  # it is none of the system's
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the whole process
