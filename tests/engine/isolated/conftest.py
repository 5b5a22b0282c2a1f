from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.isolated import pool
from kernels import confine


@pytest.fixture
def unkept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels may start processes and timers and signal others, as on a system without such walls."""
    monkeypatch.setenv(confine.OPEN, "1")
    _drop_spare()
    yield
    _drop_spare()


def _drop_spare() -> None:
    """One that lies ready was told what held before."""
    while pool._spare:
        pool._spare.pop().close()
