"""Trains of ONNX Runtime's passes: those of a captured graph begin when all of them are queued, and no more
of them are queued at once than a driver's queue holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from engine.ort import trains
from engine.ort.trains import PIECE, OrtTrains


class Clocked:
    """Where CuPy's events are: each reads how many passes were launched."""

    def __init__(self) -> None:
        self.launched = 0
        self.cuda = SimpleNamespace(Event=self._event, get_elapsed_time=self._elapsed)

    def launch(self) -> None:
        self.launched += 1

    def _event(self) -> Any:
        event = SimpleNamespace(at=0, synchronize=lambda: None)
        event.record = lambda stream: setattr(event, "at", self.launched)
        return event

    @staticmethod
    def _elapsed(start: Any, stop: Any) -> float:
        """Milliseconds: 50 µs a pass."""
        return 0.05 * (stop.at - start.at)


def timed(captured: bool, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Clocked, int, list[int]]:
    clocked = Clocked()
    held: list[int] = []

    @contextlib.contextmanager
    def held_back(stream: object) -> Iterator[None]:
        before = clocked.launched
        yield
        held.append(clocked.launched - before)

    monkeypatch.setattr(trains.cuda_runtime, "held_back", held_back)
    stream: Any = contextlib.nullcontext()
    staging: Any = None
    made = OrtTrains(clocked, None, stream, staging, clocked.launch, {}, {}, dict, captured)
    made.refusal = "the type of an input"  # nothing of a device is here that could stir
    return clocked, made.time(count), held


@pytest.mark.parametrize("count", [1, 24, PIECE, 2 * PIECE + 88])
def test_passes_of_a_captured_graph_begin_when_all_are_queued(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocked, found, held = timed(True, count, monkeypatch)
    assert clocked.launched == count == sum(held)
    assert max(held) <= PIECE
    assert found == 50_000 * count


def test_passes_that_wait_for_the_device_are_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clocked, found, held = timed(False, 600, monkeypatch)
    assert (clocked.launched, found, held) == (600, 600 * 50_000, [])
