"""What an exception makes of a case: its disposition and sentence, and whether the device outlived it."""

from __future__ import annotations

import traceback

from bench.results.records import Disposition, ErrorStats
from kernels.errors import (
    CrashedError,
    KernelscopeError,
    OutOfMemoryError,
    TooShortError,
    UnavailableError,
    UnsupportedError,
)


class Incorrect(Exception):
    """The answers are wrong: when that was seen, and how (`reason`, else as the errors say). Not timed, or
    its times not kept."""

    def __init__(self, error: ErrorStats | None, when: str, reason: str = "") -> None:
        super().__init__(f"{when}: {reason or (error.reason if error else '')}")
        self.error = error


class OnlyRight(Exception):
    """The answers are right, and that is all there is to know: the case has no times, for this reason."""


class Restart(Exception):
    """A device failed in this process and is not to be trusted by what follows; a new process is."""


def outcome(error: BaseException) -> tuple[Disposition, str]:
    """What an exception makes of a case, and the sentence for it."""
    match error:
        case Incorrect():
            return "incorrect", str(error)
        case OnlyRight():
            return "untimed", str(error)
        case UnsupportedError() | UnavailableError():
            return "unsupported", str(error)
        case OutOfMemoryError():
            return "out_of_memory", str(error)
        case MemoryError():
            return "out_of_memory", "the host's memory did not suffice; a smaller batch takes less"
        case CrashedError():
            return "crashed", str(error)
        case TooShortError():
            return "invalid", str(error)
        case KernelscopeError():
            return "failed", str(error)
        case _:
            text = str(error).strip().splitlines()
            return "failed", f"{type(error).__name__}: {text[0] if text else 'no message'}"


def is_bug(error: BaseException) -> bool:
    """Whether this is no outcome that the program knows, so that its traceback belongs into the log."""
    return not isinstance(error, KernelscopeError | Incorrect | OnlyRight | MemoryError)


def trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def broke_device(device: str, disposition: Disposition) -> bool:
    """Whether a case that ended so on `device` took the process's CUDA context with it.

    After an illegal access, a failed assertion or a launch that failed every later call fails; after a
    compile error or a launch shape that was refused none does. Only the driver knows which it was.
    """
    if device != "cuda" or disposition != "failed":
        return False
    from engine.cuda import rung as rung_cuda

    return rung_cuda.lost()
