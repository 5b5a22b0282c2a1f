"""The exception tree of the whole program, kept in the lowest layer so that every layer can raise from it.

KernelscopeError              one sentence for the user: what failed, on what, what would work
├── InputError                bad input: a file, a name, a size (exit code 2)
│   ├── ModelError            a model file that is missing, broken or not ONNX
│   └── DataError             a data set that is missing, broken or cannot be downloaded
├── UnsupportedError          a node, model or precision that a backend refuses, with the reason
├── UnavailableError          a backend that cannot run on this machine, with the reason
├── TooShortError             a pass that what starting it takes leaves no time of
├── KernelError               a rung that does not parse, compile or launch
│   └── CrashedError          the process that it ran in is gone
└── OutOfMemoryError          memory (host or device) did not suffice
"""

from __future__ import annotations

from types import TracebackType


class KernelscopeError(Exception):
    """Base of every error the user is told about in one sentence; anything else is a bug of ours."""


class InputError(KernelscopeError):
    """Bad input from the user."""


class ModelError(InputError):
    """A model file is missing, truncated, not ONNX, or of an opset that is not known."""


class DataError(InputError):
    """A data set is missing, broken, or cannot be had without a network."""


class UnsupportedError(KernelscopeError):
    """A backend refuses a node, a batch size or a precision; the text names it and what is supported."""


class UnavailableError(KernelscopeError):
    """A backend cannot run on this machine; the text says why and what would help."""


class TooShortError(KernelscopeError):
    """What starting a pass takes is nearly all that was measured of it: what is left is no time of its
    own."""


class KernelError(KernelscopeError):
    """A rung does not parse, does not compile, or failed to launch."""


class CrashedError(KernelError):
    """The process that a kernel ran in has ended by itself, or can no longer be understood."""


class OutOfMemoryError(KernelscopeError):
    """Host or device memory did not suffice; the text says for what."""


def system_words(error: OSError) -> str:
    """Why the system refused, for the end of a sentence of ours: "no space left on device"."""
    return (error.strerror or str(error)).lower()


def one_line(error: BaseException) -> str:
    """What a library said, for the end of a sentence of ours: its first line, else the error's name."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


class Translated:
    """Round what a library does: its exceptions become errors of ours, one sentence about `what`. Those that
    are ours already, and those that `ours` has no words for, go on as they are.

    No generator: a pass of a few microseconds enters two of them, and a generator costs it a microsecond.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, KernelscopeError):
            ours = self.ours(error)
            if ours is not None:
                raise ours from error

    def ours(self, error: Exception) -> KernelscopeError | None:
        """What is raised in the place of a library's exception; None: that one itself."""
        raise NotImplementedError

    def ran_out(self, said: str) -> OutOfMemoryError:
        """For `ours`: memory did not suffice, in the words of who asked for it."""
        return OutOfMemoryError(f"memory did not suffice for {self._what}: {said}")
