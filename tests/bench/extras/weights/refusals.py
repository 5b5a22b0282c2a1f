"""What a refusal is: one sentence, in time, in memory, and without a trace."""

from __future__ import annotations

import contextlib
import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels.errors import InputError


@contextlib.contextmanager
def refused(saying: str, nbytes: int = 0, seconds: float = 20) -> Iterator[None]:
    """One sentence, no more memory than a few MB beside some copies of the file, and no model left behind."""
    began = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=saying) as caught:
            yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert peak < 32 * 2**20 + 6 * nbytes
    assert time.monotonic() - began < seconds, "refused, and not worn out"  # not a measure of speed
    folder = Path(os.environ["KERNELSCOPE_MODELS"])
    assert not folder.exists() or not list(folder.iterdir())
