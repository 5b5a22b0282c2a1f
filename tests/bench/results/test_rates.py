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


@pytest.mark.parametrize(("hits", "of"), [(0, 20), (20, 20), (7, 13), (907, 1000), (30_000, 50_000)])
def test_a_two_sided_interval_holds_what_was_seen_and_narrows(hits: int, of: int) -> None:
    low, high = rates.interval(hits / of, of)
    assert 0 <= low <= hits / of <= high <= 1
    assert (low == 0, high == 1) == (hits == 0, hits == of)
    deviations = 1.959964
    for end in (low, high):
        if 0 < end < 1:  # Wilson's ends are those from which the rate is so many deviations away
            assert abs(hits / of - end) == pytest.approx(
                deviations * math.sqrt(end * (1 - end) / of), rel=1e-4
            )
    wide = rates.interval(hits / of, of // 4)
    assert wide[0] <= low < high <= wide[1]
