from __future__ import annotations

import pytest

from tests.bench import brief


@pytest.fixture
def as_long_as_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of those who cheat are told by times, which a short warm-up leaves too rough for that."""
    monkeypatch.setenv("PYTHONPATH", brief.left_out())
