"""Medians and verdicts: the bootstrap is exact, and a backend against itself is not called faster."""

import numpy as np
import pytest

from bench.measure.timing import Timing
from bench.results import stats
from bench.results.records import Case, Measurement
from bench.results.stats import Interval, Outlook, Verdict, medians


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


def nested(rng, instances, rounds, per_round, instance, turn, noise=0.005):
    """Samples of `rounds` rounds, which `instances` take in turn, with their starts and labels."""
    labels = [i % instances for i in range(rounds)]
    own = np.exp(instance * rng.standard_normal(instances))
    parts = [
        1e5 * own[label] * np.exp(turn * rng.standard_normal()) * rng.lognormal(sigma=noise, size=per_round)
        for label in labels
    ]
    return np.concatenate(parts), [i * per_round for i in range(rounds)], labels


def test_what_instances_differ_by_is_in_the_interval_however_many_rounds_there_are():
    rng = np.random.default_rng(11)
    samples, rounds, labels = nested(rng, 3, 30, 20, instance=0.02, turn=0.0)
    known = stats.median_interval(samples, rounds, instances=labels)
    blind = stats.median_interval(samples, rounds)
    assert known.relative > 3 * blind.relative
    a, b = (nested(rng, 3, 30, 20, instance=0.02, turn=0.0) for _ in "ab")
    args = a[0], b[0], a[1], b[1]
    known = stats.ratio_interval(*args, our_instances=a[2], reference_instances=b[2])
    assert known.relative > 3 * stats.ratio_interval(*args).relative


def test_one_side_with_instances_counts_them_and_of_two_the_one_with_fewer():
    rng = np.random.default_rng(12)
    ours, rounds, labels = nested(rng, 3, 12, 20, instance=0.02, turn=0.0)
    calm = np.tile(1e5 + np.arange(20.0), 12)
    one = stats.ratio_interval(ours, calm, rounds, rounds, our_instances=labels)
    assert one == stats.ratio_interval(
        ours, calm, rounds, rounds, our_instances=labels, reference_instances=list(range(12))
    )
    assert one.relative > 2 * stats.ratio_interval(ours, calm, rounds, rounds).relative


def test_an_instance_a_round_is_as_good_as_a_round():
    samples, rounds, labels = nested(np.random.default_rng(13), 5, 5, 20, instance=0.02, turn=0.0)
    assert stats.median_interval(samples, rounds, instances=labels) == stats.median_interval(samples, rounds)


def test_labels_that_do_not_reach_over_all_rounds_are_those_of_one_instance():
    samples, rounds, _ = nested(np.random.default_rng(14), 1, 4, 20, instance=0.0, turn=0.01)
    assert stats.median_interval(samples, rounds, instances=(0, 1)) == stats.median_interval(samples, rounds)


@pytest.mark.parametrize(("instance", "turn", "hopeless"), [(0.02, 0.0, True), (0.001, 0.02, False)])
def test_more_rounds_help_unless_it_is_the_instances_that_differ(instance, turn, hopeless):
    rng = np.random.default_rng(15)
    sides = []
    for _ in range(2):
        samples, rounds, labels = nested(rng, 5, 20, 20, instance, turn)
        sides.append(Timing(samples_ns=samples.tolist(), rounds=rounds, instances=labels))
    expected = Outlook.HOPELESS if hopeless else Outlook.OPEN
    assert stats.outlook(*sides) is expected
    assert stats.outlook(sides[0]) is expected


def test_a_ratio_is_clear_of_what_lies_beyond_its_surer_interval():
    def rounds(*medians):
        return Timing(samples_ns=[ns for median in medians for ns in (median, median + 1)], rounds=[0, 2, 4])

    ours, other = rounds(1000.0, 1010.0, 990.0), rounds(2000.0, 2000.0, 2000.0)
    found = stats.compare(ours, other)[0]
    assert stats.clear_of(ours, other, 0.4)
    assert stats.clear_of(ours, other, 0.6)
    assert not stats.clear_of(ours, other, 0.5)
    assert not stats.clear_of(ours, other, found.high * 1.005)  # beyond 95 %, and not 99
    assert not stats.clear_of(Timing(samples_ns=[1.0, 2.0], rounds=[0]), other, 0.1)  # one round


def test_a_coarse_clock_gives_no_interval_narrower_than_its_tick():
    rng = np.random.default_rng(16)
    times = 10_200 * rng.lognormal(sigma=0.002, size=200)
    starts = 500 * rng.random(200)
    read = 500 * (np.floor((starts + times) / 500) - np.floor(starts / 500))
    rounds = range(0, 200, 40)
    assert stats.clock_tick(read) == 500
    assert np.median(read) == 10_000, "which is 2 % off"
    interval = stats.median_interval(read, rounds)
    assert interval.value == pytest.approx(10_200, rel=0.005)
    assert interval.low <= interval.value - 250
    assert interval.high >= interval.value + 250
    ratio = stats.ratio_interval(read, read[::-1], rounds, rounds)
    assert ratio.high - ratio.low >= 0.99 * 500 / 10_200
    # All samples equal: how fine the clock is does not show, and has to be known.
    same = np.full(100, 10_000.0)
    assert stats.median_interval(same, (0, 50)).relative < 1e-9
    assert stats.median_interval(same, (0, 50), tick=500).relative == pytest.approx(0.025)


@pytest.mark.parametrize("rounds", [(), (0, 1), (0, 2)])
def test_two_equal_samples_beside_a_far_one_are_no_clock_of_long_ticks(rounds):
    """A tick above what was read would give times below 0, which no chart draws."""
    assert stats.clock_tick([90.0, 90.0, 400.0]) == 0
    found = stats.median_interval([90.0, 90.0, 400.0], rounds)
    assert 0 < found.low <= found.value <= found.high
    assert stats.clock_tick([500.0, 500.0, 1000.0]) == 500, "of one tick and of two"


def test_a_fine_clock_is_not_taken_for_a_coarse_one():
    times = np.round(1e5 * np.random.default_rng(17).lognormal(sigma=0.02, size=400), 1)
    assert stats.clock_tick(times) <= 10
    assert stats.clock_tick(times[:5]) == 0
    assert stats.median(times, stats.clock_tick(times)) == pytest.approx(np.median(times), rel=1e-5)
    assert stats.median((1.0, 1.0, 9.0, 9.0), 0.5) == 5.0, "between two samples that no tick explains"


def test_the_ratio_is_of_the_rounds_and_not_of_what_drifted_between_them():
    """A machine that gets slower by a half: the middle of all is another round for either side."""
    levels = np.repeat([1.0, 1.1, 1.2, 1.35, 1.5], 20)
    rng = np.random.default_rng(18)
    a, b = (1e5 * levels * rng.lognormal(sigma=0.001, size=100) for _ in "ab")
    b[40:60] *= 1.1  # which is one of five rounds
    rounds = range(0, 100, 20)
    assert np.median(a) / np.median(b) < 0.93
    ratio = stats.ratio_interval(a, b, rounds, rounds)
    assert ratio.value == pytest.approx(1.1 ** (-1 / 5), rel=0.001)


def test_rounds_that_only_one_side_had_are_left_out():
    ours = np.concatenate([np.full(10, 100.0), np.full(10, 100.0), np.full(30, 900.0)])
    ratio = stats.ratio_interval(ours, np.full(20, 100.0), (0, 10, 20), (0, 10))
    assert ratio.value == 1.0
    assert ratio.high < 1.02


def test_student_t_is_continuous_where_the_table_ends():
    assert stats.student(10) == pytest.approx(2.228)
    assert stats.student(11) == pytest.approx(2.201, abs=3e-3)
    assert stats.student(1000) == pytest.approx(1.962, abs=1e-3)
    assert stats.student(11, stats.SURE) == pytest.approx(3.106, abs=1.1e-2)
    assert stats.student(1000, stats.SURE) == pytest.approx(2.581, abs=1e-3)


def test_no_samples_is_an_error_and_not_a_number():
    case = Case(model="m", backend="b", precision="fp32", batch=1)
    empty = Measurement(case=case, disposition="crashed", reason="killed")
    full = Measurement(case=case, disposition="ok", samples_ns=(1.0, 2.0))
    with pytest.raises(ValueError, match="at least one sample"):
        stats.compare(empty, full)
    with pytest.raises(ValueError, match="at least one sample"):
        stats.median_interval(())


@pytest.mark.parametrize("samples", [((5.0,), (6.0,)), ((5.0,), (9.0, 9.1)), ((5.0, 5.1), (9.0,))])
@pytest.mark.parametrize("rounds", [(), (0, 1)])
def test_one_sample_gives_no_verdict(samples, rounds) -> None:
    ours, reference = (Timing(samples_ns=list(times), rounds=list(rounds)) for times in samples)
    assert stats.compare(ours, reference)[1] is Verdict.UNCLEAR


def test_one_round_gives_no_verdict_and_two_do() -> None:
    ours, reference = (Timing(samples_ns=[t, t + 0.1, t + 0.2, t + 0.1], rounds=[0]) for t in (100.0, 900.0))
    assert stats.compare(ours, reference)[1] is Verdict.UNCLEAR
    ours.rounds = [0, 2]
    assert stats.compare(ours, reference)[1] is Verdict.UNCLEAR, "of the other there is one"
    reference.rounds = [0, 2]
    assert stats.compare(ours, reference)[1] is Verdict.FASTER


def turns(rng, quantile, disturbed=0.0, level=1e5, instances=10, load=None):
    """Ten samples in each of two turns of an instance; a part of the turns is disturbed as a whole."""
    parts = []
    for _ in range(2 * instances):
        part = level * rng.lognormal(sigma=0.003, size=10) * (1 + 0.5 * (rng.random(10) < 0.3))
        parts.append(part * (1.6 if rng.random() < disturbed else 1.0))
    labels = [turn % instances for turn in range(2 * instances)]
    return stats.Side(np.concatenate(parts), range(0, 20 * instances, 10), labels, quantile, load or {})


def test_what_others_add_to_some_turns_hardly_widens_what_low_quantiles_tell():
    rng = np.random.default_rng(21)
    width = {}
    for quantile in (stats.MEDIAN, 0.1):
        found = [stats.compare(*(turns(rng, quantile, 0.25) for _ in "ab")) for _ in range(40)]
        assert sum(it.verdict in (Verdict.FASTER, Verdict.SLOWER) for it in found) == 0
        width[quantile] = np.median([it.ratio.relative for it in found])
    assert width[0.1] < width[stats.MEDIAN] / 5
    found = [stats.compare(turns(rng, 0.1, 0.25, 1.05e5), turns(rng, 0.1, 0.25)) for _ in range(40)]
    assert sum(it.verdict is Verdict.SLOWER for it in found) >= 30


def test_who_is_fast_in_some_passes_only_is_not_called_faster():
    """Nor as fast: the check that a low quantile needs, and what slips through without it."""
    rng = np.random.default_rng(22)
    for level, told in ((1.0, Verdict.FASTER), (2.0, Verdict.SAME)):
        samples = level * 1e5 * rng.lognormal(sigma=0.003, size=200)
        samples[::6] /= 2  # a sixth of the passes leave out half of the work
        rounds, labels = range(0, 200, 10), [turn % 10 for turn in range(20)]
        honest = 1e5 * rng.lognormal(sigma=0.003, size=200)
        sides = [stats.Side(of, rounds, labels, 0.1) for of in (samples, honest)]
        args = (samples, honest, rounds, rounds)
        by_low = stats.ratio_interval(*args, our_instances=labels, reference_instances=labels, quantile=0.1)
        assert stats.verdict(by_low) is told
        found = stats.compare(*sides)
        assert found.verdict is Verdict.UNCLEAR
        assert found.undecided.startswith("not decided: ")


def test_a_machine_that_others_hold_gets_no_verdict_and_the_sentence_says_how_much():
    rng = np.random.default_rng(23)
    busy = {"cores": 2.0, "wall_s": 2.0, "ran_s": 0.6, "waited_s": 2.0, "others_s": 3.0, "stolen_s": 0.4}
    quiet = busy | {"others_s": 0.1, "stolen_s": 0.0}
    sides = turns(rng, 0.1, level=2e5, load=busy), turns(rng, 0.1, load=quiet)
    for pair in (sides, sides[::-1]):
        found = stats.compare(*pair)
        assert found.verdict is Verdict.UNCLEAR
        assert found.undecided == "not decided: other programs used 1.7 of 2 cores while this was measured"
    assert stats.compare(turns(rng, 0.1, level=2e5, load=quiet), sides[1]).verdict is Verdict.SLOWER


@pytest.mark.parametrize("quantile", [float("nan"), 7.0, float("inf")])
def test_a_record_that_says_no_quantile_is_compared_by_medians(quantile):
    rng = np.random.default_rng(24)
    ours, other = turns(rng, quantile, level=2e5), turns(rng, 0.1)
    assert stats.compare(ours, other).ratio == stats.compare(ours, other).by_median


def test_a_quantile_is_numpy_s():
    rng = np.random.default_rng(25)
    for size in (1, 2, 7, 100):
        samples = rng.lognormal(size=size)
        for part in (0.0, 0.1, 0.25, 0.5, 1.0):
            assert medians.quantile(samples, part) == pytest.approx(np.quantile(samples, part), rel=1e-12)


def test_a_trimmed_mean_leaves_out_two_of_ten_and_knows_it():
    values = np.array([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.02, 0.98, 9.0, 8.0])
    mean, error, freedom = stats.mean_error(values, stats.FIFTH)
    assert (mean, freedom) == (pytest.approx(1.025, abs=0.03), 5)
    assert error < 0.05 < stats.mean_error(values)[1]
    assert stats.mean_error(values[:5], stats.FIFTH) == stats.mean_error(values[:5]), "few are all needed"


def test_rounds_that_found_one_side_on_a_shared_core_hardly_widen_the_ratio():
    """Ten instances of ten rounds; one round in five finds the one side slower by half, as many the other."""
    rng = np.random.default_rng(26)
    halves, misses = [], 0
    for _ in range(40):
        sides = []
        for _ in range(2):
            levels = np.exp(rng.normal(0, 0.01, 100)) * np.where(rng.random(100) < 0.2, 1.5, 1.0)
            samples = np.repeat(levels, 8) * np.exp(rng.normal(0, 0.01, 800)) * 1e5
            sides.append(stats.Side(samples, range(0, 800, 8), tuple(range(10)) * 10, 0.1))
        found = stats.compare(*sides).ratio
        halves.append(found.relative)
        misses += found.low > 1 or found.high < 1
    assert np.median(halves) < 0.01
    assert misses <= 6
