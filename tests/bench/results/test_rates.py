"""Bounds of counted rates: those that tables of the binomial distribution give."""

import math

import pytest

from bench.results import rates


@pytest.mark.parametrize("of", [1, 10, 40, 1000])
def test_none_and_all_have_the_bounds_that_are_known_in_closed_form(of: int) -> None:
    assert rates.at_least(0, of) == 0.0
    assert rates.at_most(of, of) == 1.0
    assert rates.at_most(0, of) == pytest.approx(1 - 0.05 ** (1 / of))
    assert rates.at_least(of, of) == pytest.approx(0.05 ** (1 / of))


@pytest.mark.parametrize(("hits", "of"), [(1, 20), (3, 40), (7, 13), (50, 1000)])
def test_at_a_bound_what_was_seen_is_as_unlikely_as_said(hits: int, of: int) -> None:
    def at_most(count: int, rate: float) -> float:
        return sum(math.comb(of, k) * rate**k * (1 - rate) ** (of - k) for k in range(count + 1))

    least, most = rates.at_least(hits, of), rates.at_most(hits, of)
    assert least < hits / of < most
    assert 1 - at_most(hits - 1, least) == pytest.approx(0.05)
    assert at_most(hits, most) == pytest.approx(0.05)
