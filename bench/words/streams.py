"""Standard output and error in all their states: closed, full, gone (`| head`), or of an encoding that lacks
half of the characters; and Ctrl-C when nobody waits for it. None of these ends in a traceback."""

from __future__ import annotations

import _thread
import contextlib
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType

from bench.words.exits import CANCELLED
from kernels.errors import system_words

# Whose frames say that a module is being loaded; after how long a Ctrl-C that could not be heard comes again.
_IMPORTING, _AGAIN_S = "<frozen importlib._bootstrap>", 0.02
PATIENT = 2  # times that `counted_interrupts` only counts Ctrl-C
# What writing to a stream comes to; of a file it would have the file's name, or whoever writes it tells.
_OF_STREAMS = (errno.EPIPE, errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT, errno.EFBIG)


def lenient() -> None:
    """What a stream cannot encode is shown as "?" (on standard error as its escape). A stream that is closed
    is replaced by one that discards everything."""
    for name, errors in (("stdout", "replace"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # for the whole process
        elif hasattr(stream, "reconfigure") and stream.errors != errors:
            stream.reconfigure(errors=errors)


def flush() -> None:
    """Write all that was printed, while an error can still be reported. Raises OSError."""
    sys.stdout.flush()


def gone(error: OSError) -> str | None:
    """If an error is standard output's own: a sentence about it, "" where nobody reads it; from then on
    output is discarded. None for any other error."""
    if error.filename is not None or error.errno not in _OF_STREAMS:
        return None
    _nowhere()
    if error.errno == errno.EPIPE:
        return ""
    return f"standard output cannot be written: {system_words(error)}"


def last_words(status: int) -> int:
    """Write what is left, and return the exit status. Ctrl-C no longer has an effect."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except OSError as error:
        if reason := gone(error):
            print(reason, file=sys.stderr)
        status = status or 1
    return status


def quiet_interrupts() -> None:
    """Ctrl-C where nobody waits for it ends the process with one word. While a module is loaded it waits
    until that is done: a native library may crash if an exception interrupts its start. Where it comes in the
    middle of a finalizer or a callback, whose errors Python drops, it comes again."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            os.write(2, b"cancelled\n")
            os._exit(CANCELLED)
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook
    sys.unraisablehook = _dropped
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as a shell has it of what runs behind it
        signal.signal(signal.SIGINT, _interrupted)


@contextlib.contextmanager
def counted_interrupts() -> Iterator[Callable[[], int]]:
    """In this context Ctrl-C raises nothing, but for the third one and those after it, for whoever waits for
    something that never comes (a terminal that was stopped). The function that is given says how often it was
    pressed so far.

    For work that must not be torn between any two of its steps. KeyboardInterrupt may come right after a lock
    was taken, say: then nobody ever releases it. In a thread other than the main one nothing changes, and
    where Ctrl-C is ignored it stays so: the function then says 0.
    """
    presses = 0

    def count(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if presses > PATIENT:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: 0
        return
    signal.signal(signal.SIGINT, count)
    try:
        yield lambda: presses
    finally:
        signal.signal(signal.SIGINT, before)


def _dropped(what: sys.UnraisableHookArgs) -> None:
    """In place of sys.unraisablehook."""
    if issubclass(what.exc_type, KeyboardInterrupt):
        _soon()
    else:
        sys.__unraisablehook__(what)


_raised = 0  # times that `_interrupted` has raised KeyboardInterrupt


def _interrupted(number: int, frame: FrameType | None) -> None:
    global _raised
    later, at = False, frame
    while at is not None:
        if at.f_code is _soon.__code__:
            return  # it comes again
        # What is raised within the hook would be dropped as well.
        later |= at.f_code.co_filename == _IMPORTING or at.f_code is _dropped.__code__
        at = at.f_back
    if later:
        _soon()
        return
    _raised += 1
    raise KeyboardInterrupt


def _soon() -> None:
    """Have Ctrl-C once more."""
    threading.Thread(target=_again, args=(_raised,), daemon=True).start()


def _again(before: int) -> None:
    """Until it is raised: one that comes just before a wait begins, say, is not heard. before: how often it
    had been raised."""
    while True:
        time.sleep(_AGAIN_S)
        if _raised != before:
            return
        counted = signal.getsignal(signal.SIGINT) is not _interrupted  # once, by whoever does something else
        if hasattr(signal, "pthread_kill"):  # which ends a wait, too
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:
            _thread.interrupt_main()
        if counted:
            return


def _nowhere() -> None:
    """Discard standard output, also what is not written yet."""
    try:
        descriptor = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
    except (OSError, ValueError):  # it is none of the system's
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the whole process
