"""Times of named parts: kept for whoever asks, by name, and for nobody else."""

from __future__ import annotations

import pytest

from kernels.spans import recorded, span


@span("doubling")
def doubled(value: int) -> int:
    """Twice the value."""
    return 2 * value


@span("failing")
def failing() -> None:
    raise ValueError("as it does")


def test_spans_are_kept_while_they_are_asked_for() -> None:
    doubled(1)
    with recorded("doubling") as spans:
        assert doubled(2) == 4
    doubled(3)
    (one,) = spans
    assert (one.name, one.result) == ("doubling", 4)
    assert one.start_ns <= one.end_ns
    assert doubled.__doc__ == "Twice the value."


def test_only_the_names_that_are_asked_for_are_kept() -> None:
    with recorded("something else") as spans:
        doubled(2)
    assert spans == []


def test_a_call_that_raises_is_a_span_without_a_result() -> None:
    with recorded("failing", "doubling") as spans, pytest.raises(ValueError, match="as it does"):
        failing()
    assert [(one.name, one.result) for one in spans] == [("failing", None)]


def test_who_asks_inside_another_gets_its_own_and_the_other_goes_on() -> None:
    with recorded("doubling") as outer:
        with recorded("doubling") as inner:
            doubled(1)
        doubled(2)
    assert ([one.result for one in inner], [one.result for one in outer]) == ([2], [4])
