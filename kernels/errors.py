"""The exception tree of the whole program, kept in the lowest layer so that every layer can raise from it.

KernelscopeError              one sentence for the user: what failed, on what, what would work
├── InputError                bad input: a file, a name, a size (exit code 2)
│   ├── ModelError            a model file that is missing, broken or not ONNX
│   └── DataError             a data set that is missing, broken or cannot be downloaded
├── UnsupportedError          a node, model or precision that a backend refuses, with the reason
├── UnavailableError          a backend that cannot run on this machine, with the reason
├── KernelError               a rung that does not parse, compile or launch
│   └── CrashedError          the process that it ran in is gone
└── OutOfMemoryError          memory (host or device) did not suffice
"""

from __future__ import annotations


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
