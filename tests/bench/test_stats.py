"""Medians and verdicts: the bootstrap is exact, and a backend against itself is not called faster."""

import numpy as np
import pytest

from bench import stats
from bench.records import Case, Measurement
from bench.stats import Interval, Verdict


@pytest.mark.parametrize("n", [1, 2, 5, 10, 31])
def test_median_draws_follow_the_plain_bootstrap(n):
    rng = np.random.default_rng(n)
    values = rng.lognormal(size=n)
    plain = np.median(values[rng.integers(0, n, (40_000, n))], axis=1)
    exact = stats.median_draws(values, 40_000, rng)
    quantiles = [5, 25, 50, 75, 95]
    # Both are draws from one discrete distribution: compare through its distribution function.
    for q in np.percentile(plain, quantiles):
        assert np.mean(exact <= q) == pytest.approx(np.mean(plain <= q), abs=0.015)


def test_interval_of_the_median_covers_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(1)
    hits = 0
    for i in range(300):
        interval = stats.median_interval(rng.lognormal(sigma=0.1, size=60), seed=i)
        assert interval.low <= interval.value <= interval.high
        hits += interval.low <= 1.0 <= interval.high
    assert 0.90 <= hits / 300 <= 0.99


def test_drift_between_rounds_widens_the_interval():
    rng = np.random.default_rng(2)
    parts = [level * rng.lognormal(sigma=0.005, size=500) for level in (1.0, 1.05, 1.1)]
    samples = np.concatenate(parts)
    calm = stats.median_interval(samples)
    honest = stats.median_interval(samples, rounds=(0, 500, 1000))
    assert honest.relative > 0.03
    assert honest.high - honest.low > 3 * (calm.high - calm.low)


def test_equal_seeds_give_equal_intervals():
    samples = np.random.default_rng(3).lognormal(size=100)
    assert stats.median_interval(samples, (0, 50), 7) == stats.median_interval(samples, (0, 50), 7)
    assert stats.ratio_interval(samples, samples[::-1], seed=7) == stats.ratio_interval(
        samples, samples[::-1], seed=7
    )


def drifting(rng, rounds, per_round, drift, shared):
    """Two contenders of equal speed: a machine that wanders during and between their turns in each round."""
    sides = ([], [])
    level = 1.0
    for _ in range(rounds):
        level *= np.exp(shared * rng.standard_normal())
        for side in rng.permutation(2):
            own = level * np.exp(drift * rng.standard_normal())
            walk = np.exp(np.cumsum(rng.normal(0, drift / 30, per_round)))
            sides[side].append(own * walk * rng.lognormal(sigma=0.02, size=per_round) * 1e5)
    starts = tuple(i * per_round for i in range(rounds))
    return np.concatenate(sides[0]), np.concatenate(sides[1]), starts


@pytest.mark.parametrize("rounds", [3, 5])
@pytest.mark.parametrize("drift", [0.002, 0.02, 0.08])
def test_a_backend_against_itself_is_hardly_ever_called_different(rounds, drift):
    rng = np.random.default_rng(int(drift * 1000) + rounds)
    wrong = 0
    for i in range(200):
        a, b, starts = drifting(rng, rounds, 60, drift, shared=0.1)
        wrong += stats.verdict(stats.ratio_interval(a, b, starts, starts, i)) in (
            Verdict.FASTER,
            Verdict.SLOWER,
        )
    assert wrong / 200 <= 0.05


def test_a_real_difference_is_seen_through_drift_the_rounds_share():
    rng = np.random.default_rng(5)
    found = 0
    for i in range(50):
        a, b, starts = drifting(rng, 5, 100, 0.01, shared=0.2)
        found += stats.verdict(stats.ratio_interval(0.9 * a, b, starts, starts, i)) is Verdict.FASTER
    assert found >= 45


def test_calm_equal_contenders_are_the_same():
    rng = np.random.default_rng(6)
    a, b, starts = drifting(rng, 5, 200, 0.0005, shared=0.1)
    assert stats.verdict(stats.ratio_interval(a, b, starts, starts)) is Verdict.SAME


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.99, 1.01, Verdict.SAME),
        (0.98, 1.02, Verdict.SAME),
        (0.97, 1.0, Verdict.UNCLEAR),
        (0.9, 1.1, Verdict.UNCLEAR),
        (0.5, 0.9799, Verdict.FASTER),
        (1.0201, 3.0, Verdict.SLOWER),
    ],
)
def test_verdicts_by_the_bound(low, high, expected):
    assert stats.verdict(Interval((low + high) / 2, low, high)) is expected


def test_one_round_allows_for_the_drift_it_cannot_see():
    calm = np.full(100, 1000.0)
    ratio = stats.ratio_interval(1.04 * calm, calm)
    assert ratio.value == pytest.approx(1.04)
    assert stats.verdict(ratio) is Verdict.UNCLEAR
    assert stats.verdict(stats.ratio_interval(2 * calm, calm)) is Verdict.SLOWER


def test_rounds_that_only_one_side_had_are_left_out():
    ours = np.concatenate([np.full(10, 100.0), np.full(10, 100.0), np.full(30, 900.0)])
    ratio = stats.ratio_interval(ours, np.full(20, 100.0), (0, 10, 20), (0, 10))
    assert ratio.value == 1.0
    assert ratio.high < 1.02


def test_student_t_is_continuous_where_the_table_ends():
    assert stats.student(10) == pytest.approx(2.228)
    assert stats.student(11) == pytest.approx(2.201, abs=3e-3)
    assert stats.student(1000) == pytest.approx(1.962, abs=1e-3)


def test_no_samples_is_an_error_and_not_a_number():
    case = Case(model="m", backend="b", precision="fp32", batch=1)
    empty = Measurement(case=case, disposition="crashed", reason="killed")
    full = Measurement(case=case, disposition="ok", samples_ns=(1.0, 2.0))
    with pytest.raises(ValueError, match="at least one sample"):
        stats.compare(empty, full)
    with pytest.raises(ValueError, match="at least one sample"):
        stats.median_interval(())


@pytest.mark.parametrize("samples", [((5.0,), (6.0,)), ((5.0,), (9.0, 9.1)), ((5.0, 5.1), (9.0,))])
def test_one_sample_gives_no_verdict(samples) -> None:
    case = Case(model="m", backend="b", precision="fp32", batch=1)
    ours, reference = (Measurement(case=case, disposition="ok", samples_ns=times) for times in samples)
    assert stats.compare(ours, reference)[1] is Verdict.UNCLEAR
