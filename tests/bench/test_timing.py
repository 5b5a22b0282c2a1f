"""Sampling: enough and no more, in rounds, with the reason it stopped; one contender's failure is its own."""

import random
import time

import numpy as np
import pytest

from bench import timing
from bench.timing import Rules, Stopped, time_together

QUICK = Rules(warmup_s=0.002, rewarm_s=0.001, min_s=0.01, budget_s=0.5)


class FakeSession:
    """Takes `nanoseconds(self)` a pass and really spends `real_s` a call, so that budgets can run out."""

    def __init__(self, nanoseconds=lambda session: 50_000.0, real_s=0.0002, breaks_after=None):
        self.nanoseconds = nanoseconds
        self.real_s = real_s
        self.breaks_after = breaks_after
        self.calls = []
        self.closed = False

    def time_runs(self, count, cold=False):
        self.calls.append((count, cold))
        if self.breaks_after is not None and len(self.calls) > self.breaks_after:
            raise RuntimeError("illegal address")
        time.sleep(self.real_s)
        return round(count * self.nanoseconds(self))

    def bind(self, inputs):
        time.sleep(0.001)

    def run(self):
        time.sleep(0.004)

    def synchronize(self):
        pass

    def fetch(self):
        return {}


def test_a_calm_contender_stops_at_the_interval_with_the_least_of_samples():
    result = time_together({"a": FakeSession()}, QUICK)["a"]
    assert result.stop_reason == "interval"
    assert len(result.samples_ns) >= QUICK.min_samples
    assert len(result.rounds) == QUICK.rounds
    assert result.rounds[0] == 0
    assert set(result.samples_ns) == {50_000.0}
    assert result.spent_s >= QUICK.min_s


@pytest.mark.parametrize(("device", "target"), [("cpu", 100_000), ("cuda", 1_000_000)])
def test_one_sample_is_long_enough_for_its_clock(device, target):
    session = FakeSession(lambda s: 7_000.0)
    result = time_together({"a": session}, QUICK, devices={"a": device})["a"]
    assert result.runs_per_sample * 7_000 >= target
    assert result.samples_ns[0] == 7_000.0


def test_a_wild_contender_goes_on_until_its_budget_and_no_further():
    wild = random.Random(1)
    rules = Rules(warmup_s=0.001, rewarm_s=0.001, min_s=0.01, budget_s=0.2)
    # Spread so widely that no number of samples which the budget has room for makes the median certain.
    session = FakeSession(lambda s: wild.uniform(1e5, 9e5))
    result = time_together({"a": session}, rules)["a"]
    assert result.stop_reason == "budget"
    assert len(result.rounds) > rules.rounds


def test_a_budget_below_one_pass_gives_one_sample():
    rules = Rules(warmup_s=0.001, rewarm_s=0.001, budget_s=0.005)
    result = time_together({"a": FakeSession(lambda s: 2e7, real_s=0.02)}, rules)["a"]
    assert result.stop_reason == "budget"
    assert len(result.samples_ns) == 1


def test_a_slow_contender_spreads_its_few_samples_over_the_rounds():
    rules = Rules(warmup_s=0.001, rewarm_s=0.001, min_s=0.001, budget_s=0.1)
    result = time_together({"a": FakeSession(lambda s: 2e7, real_s=0.02)}, rules)["a"]
    assert len(result.rounds) == len(result.samples_ns) >= 3


def test_no_more_than_the_most_samples():
    wild = random.Random(2)
    rules = Rules(warmup_s=0.001, rewarm_s=0.001, min_s=0.001, max_samples=40)
    session = FakeSession(lambda s: wild.uniform(1e5, 1e6), real_s=0)
    result = time_together({"a": session}, rules)["a"]
    assert result.stop_reason == "max_samples"
    assert len(result.samples_ns) == 40


def test_warm_up_makes_three_passes_and_lasts_its_time():
    session = FakeSession()
    started = time.monotonic()
    timing.warm_up(session, 3, 0.02)
    assert sum(count for count, _ in session.calls) >= 3
    assert time.monotonic() - started >= 0.02


def test_a_slow_net_is_warmed_up_by_three_passes():
    session = FakeSession(lambda s: 2e7, real_s=0.02)
    assert timing.warm_up(session, 3, 0.001) == 2e7
    assert sum(count for count, _ in session.calls) == 3


def test_turns_are_whole_and_their_order_changes():
    turns = []
    sessions = {key: FakeSession() for key in "abc"}
    results = time_together(sessions, QUICK, seed=3, on_turn=lambda key, turn: turns.append((turn, key)))
    rounds = [[key for turn, key in turns if turn == number] for number in range(QUICK.rounds)]
    assert all(sorted(keys) == ["a", "b", "c"] for keys in rounds)
    assert len({tuple(keys) for keys in rounds}) > 1
    assert {len(result.rounds) for result in results.values()} == {QUICK.rounds}


def test_what_was_taken_is_told_after_each_turn():
    told = []
    result = time_together(
        {"a": FakeSession(lambda s: 50_000.0), "b": FakeSession(breaks_after=0)},
        QUICK,
        on_taken=lambda key, turn, timing: told.append((key, turn, len(timing.samples_ns), timing.median_ns)),
    )
    assert [key for key, *_ in told] == ["a"] * len(result["a"].rounds), "a turn that failed took nothing"
    assert [turn for _, turn, *_ in told] == list(range(len(told)))
    assert [count for _, _, count, _ in told] == [*result["a"].rounds[1:], len(result["a"].samples_ns)]
    assert told[0][3] == 50_000.0


def test_the_order_is_that_of_the_seed():
    def order(seed):
        turns = []
        time_together({k: FakeSession() for k in "abc"}, QUICK, seed, on_turn=lambda k, t: turns.append(k))
        return turns[: 3 * QUICK.rounds]

    assert order(5) == order(5)


def test_one_failure_leaves_the_others_alone():
    results = time_together({"good": FakeSession(), "bad": FakeSession(breaks_after=6)}, QUICK)
    assert str(results["bad"].error) == "illegal address"
    assert results["good"].error is None
    assert results["good"].stop_reason == "interval"


def test_cold_runs_are_single():
    session = FakeSession(lambda s: 10.0)
    result = time_together({"a": session}, Rules(warmup_s=0, rewarm_s=0, min_s=0.001, cold=True))["a"]
    assert result.runs_per_sample == 1
    assert (1, True) in session.calls


def test_a_throttled_turn_is_taken_again_and_the_bad_one_dropped():
    session = FakeSession()
    held = iter(["too hot"])
    slept = []

    def throttled(key):
        reason = next(held, "")
        session.nanoseconds = lambda s: 50_000.0
        return reason

    session.nanoseconds = lambda s: 90_000.0
    result = time_together({"a": session}, QUICK, throttled=throttled, sleep=slept.append)["a"]
    assert result.retries == 1
    assert len(slept) == 1
    assert result.warnings == []
    assert set(result.samples_ns) == {50_000.0}


def test_a_device_that_stays_hot_is_flagged_and_measured_all_the_same():
    result = time_together(
        {"a": FakeSession()}, QUICK, throttled=lambda key: "too hot", sleep=lambda s: None
    )["a"]
    assert result.retries == QUICK.retries
    assert result.warnings == ["too hot"]
    assert len(result.samples_ns) >= QUICK.min_samples


def test_stopping_is_heard_between_samples():
    session = FakeSession()
    with pytest.raises(Stopped):
        time_together({"a": session}, Rules(warmup_s=0.0), stopped=lambda: len(session.calls) > 20)
    assert len(session.calls) < 50


def test_the_phases_of_a_pass_add_up_to_its_wall_time():
    result = timing.end_to_end(FakeSession(), {"x": np.zeros(1)}, device_ns=3e6, seconds=0.05)
    assert result.passes >= 5
    assert set(result.phases) == {"h2d", "compute", "d2h", "sync"}
    assert result.phases["compute"] == 3e6
    assert result.phases["h2d"] >= 1e6
    assert result.phases["sync"] >= 1e6, "what launching and waiting cost beyond the device's own time"
    assert sum(result.phases.values()) <= 1.2 * result.wall_ns


def test_a_pass_that_ends_with_run_has_nothing_to_wait_for():
    result = timing.end_to_end(FakeSession(), {"x": np.zeros(1)}, seconds=0.05)
    assert result.phases["compute"] >= 4e6
    assert result.phases["sync"] < result.phases["compute"]
