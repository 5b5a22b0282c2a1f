"""Which steps of a pass begin early, by what trying them tells."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.cuda.replays.overlap import Begun, fastest


def measured(
    gains: dict[int, float], together: dict[Begun, float] | None = None
) -> Callable[..., list[float]]:
    """A pass of 100 with steps that gain (or cost) so much where they begin early, pairs more or less."""

    def time(*ways: Begun) -> list[float]:
        return [
            100.0
            - sum(gains[step] for step in way)
            - sum(more for pair, more in (together or {}).items() if pair <= way)
            for way in ways
        ]

    return time


@pytest.mark.parametrize(
    ("gains", "best"),
    [
        ({0: 2.0, 2: 3.0, 5: 1.0}, {0, 2, 5}),
        ({0: 2.0, 2: -9.0, 5: 1.0}, {0, 5}),
        ({0: -2.0, 2: -9.0, 5: 1.0}, {5}),
        ({0: -2.0, 2: -9.0}, set()),
        ({3: 4.0}, {3}),
        ({3: -4.0}, set()),
        ({}, set()),
    ],
)
def test_those_begin_early_that_gain_by_it(gains: dict[int, float], best: set[int]) -> None:
    assert fastest(list(gains), measured(gains)) == best


def test_what_one_gains_may_rest_on_another() -> None:
    # 0 gains only once 1 waits for its turn, which is known after 0 was looked at.
    gains = {0: 1.0, 1: -3.0, 2: 5.0}
    assert fastest([0, 1, 2], measured(gains, {frozenset({0, 1}): -4.0})) == {0, 2}


def test_a_way_that_cannot_be_captured_and_one_within_the_noise_are_not_taken() -> None:
    def broken(*ways: Begun) -> list[float]:
        return [float("inf") if 1 in way else 100.0 - 2 * len(way) for way in ways]

    assert fastest([0, 1, 2], broken) == {0, 2}
    assert fastest([0, 1], measured({0: 0.1, 1: 0.2})) == set()
