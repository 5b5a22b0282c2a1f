"""What may be said of a changed file: an error of the program's own, in one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kernels.errors import KernelscopeError


@contextlib.contextmanager
def ours(*more: type[Exception]) -> Iterator[None]:
    """What the user is told in a sentence is no finding; one of several lines is one."""
    try:
        yield
    except KernelscopeError as error:
        if len(str(error).splitlines()) != 1:
            raise RuntimeError(f"a sentence of several lines: {error}") from error
    except more:
        pass
