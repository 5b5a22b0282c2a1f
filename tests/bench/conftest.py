"""What tests measure in their own process is as brief as in those that they start (tests/bench/brief.py)."""

from __future__ import annotations

import pytest

from bench.measure import timing
from bench.measure.answers import renewed
from engine import probe
from engine.machine import host
from tests.bench import brief

LONG = "as_long_as_the_program"


@pytest.fixture(autouse=True)
def _brief(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU's times are what tests on one are about."""
    if LONG not in request.fixturenames and request.node.get_closest_marker("gpu") is None:
        brief.shorten_rules(timing, monkeypatch.setattr)
        brief.shorten_turns(renewed, monkeypatch.setattr)
        brief.shorten_probes(probe, monkeypatch.setattr)
        brief.shorten_flushes(host, monkeypatch.setattr)


@pytest.fixture
def as_long_as_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of those who cheat are told by times, which a short warm-up leaves too rough for that."""
    monkeypatch.setenv("PYTHONPATH", brief.left_out())
