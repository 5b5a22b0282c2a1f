"""Which timed passes are looked at: as many as there is time for, and those of warm-ups least often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.measure.answers import timed_pass
from bench.measure.answers.timed_pass import KEPT, KEPT_NBYTES, LOOKED_AT, SELDOM, Seen
from engine.stirring import Stirring, Witness

SIZE = 64
SPEC = ((SIZE,), np.dtype(np.float32))
STIRRING = Stirring({"x": np.arange(SIZE, dtype=np.float32)}, {"y": SPEC})


def seen(number: int, wrong: bool = False, rough: bool = False) -> Seen:
    """A pass of y = 2 x."""
    found = 2 * STIRRING.inputs_of(number)["x"] + wrong
    return STIRRING, Witness(number, {"y": (np.arange(SIZE), found)}, rough)


def looks(kept: list[Seen], again: Callable[[Any], Any] | None = None, **how: Any) -> list[bool]:
    """Of each pass that was looked at, whether it was wrong."""
    again = again or (lambda inputs: {"y": 2 * inputs["x"]})
    return [bool(look.wrong) for look in timed_pass.looks(kept, again, "fp32", **how)]


def test_every_pass_is_looked_at_where_there_is_time() -> None:
    kept = [seen(k, wrong=k == 17) for k in range(40)]
    assert sum(looks(kept, seconds=60.0)) == 1
    assert len(looks(kept, seconds=60.0)) == 40
    assert len(looks(kept, seconds=1e-9)) == LOOKED_AT
    assert len(looks(kept)) == LOOKED_AT
    assert len(looks(kept[:2])) == 2


def test_one_wrong_train_in_a_few_is_found_surely() -> None:
    """Whichever it is, by the least that is looked at in the ten checks of a short ladder."""
    for begin, period in ((0, 2), (1, 2), (0, 3), (2, 3)):
        kept = [seen(k, wrong=k % period == begin) for k in range(12)]
        missed = sum(not any(any(looks(kept)) for _ in range(10)) for _ in range(20))
        assert missed == 0, (begin, period)


def test_passes_of_a_warm_up_are_drawn_less_often() -> None:
    kept = [seen(0), *(seen(k, wrong=True, rough=True) for k in range(20)), *(seen(k) for k in range(20))]
    rough = sum(sum(looks(kept)) for _ in range(200)) / (200 * (LOOKED_AT - 1))
    assert rough == pytest.approx(1 / (1 + SELDOM), abs=0.1)


def test_no_more_are_kept_than_there_is_room_for() -> None:
    kept = [seen(k) for k in range(2 * KEPT)]
    left = timed_pass.thinned([*kept])
    assert len(left) == KEPT
    assert min(one[1].number for one in left) < KEPT / 2 < 1.5 * KEPT < max(one[1].number for one in left)
    values = np.broadcast_to(np.float32(0), (KEPT_NBYTES // 10,))  # four bytes each
    large = [(STIRRING, Witness(k, {"y": (np.arange(1), values)})) for k in range(3)]
    assert len(timed_pass.thinned([*large])) == 2
    assert len(timed_pass.thinned([*large[:1]])) == 1
