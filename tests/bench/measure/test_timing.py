"""Sampling: enough and no more, in rounds, with the reason it stopped; one contender's failure is its own."""

import random
import types

import numpy as np
import pytest

from bench.measure import net_recorders, stopping, timing
from bench.measure.instances import Growing
from bench.measure.net_recorders import host_to_host
from bench.measure.timing import Rules, Stopped, Timing
from bench.results import stats
from bench.results.stats import Verdict

QUICK = Rules(warmup_s=0.002, rewarm_s=0.001, min_s=0.01, budget_s=0.5)


class Clock:
    """In nanoseconds. It goes on by what is spent, and a little by being read: nothing takes real time."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 100
        return self.now

    def spend(self, seconds):
        self.now += round(1e9 * seconds)


CLOCK = Clock()


def time_together(*given, clock=CLOCK, **more):
    return timing.time_together(*given, clock=clock, **more)


@pytest.fixture
def clocked(monkeypatch):
    """Whole passes are measured by CLOCK."""
    clock = types.SimpleNamespace(perf_counter=lambda: CLOCK() / 1e9, perf_counter_ns=CLOCK)
    monkeypatch.setattr(net_recorders, "time", clock)


class FakeSession:
    """Takes `nanoseconds(self)` a pass and spends `real_s` of CLOCK a call, so that budgets can run out."""

    def __init__(self, nanoseconds=lambda session: 50_000.0, real_s=0.0002, breaks_after=None):
        self.nanoseconds = nanoseconds
        self.real_s = real_s
        self.breaks_after = breaks_after
        self.calls = []
        self.copied = self.ran = 0
        self.closed = False

    def time_runs(self, count, cold=False):
        self.calls.append((count, cold))
        if self.breaks_after is not None and len(self.calls) > self.breaks_after:
            raise RuntimeError("illegal address")
        CLOCK.spend(self.real_s)
        return round(count * self.nanoseconds(self))

    def bind(self, inputs):
        self.copied += 1
        CLOCK.spend(0.001)

    def run(self):
        self.ran += 1
        CLOCK.spend(0.004)

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


def test_a_pass_that_seems_to_take_nothing_does_not_make_samples_of_minutes():
    """What is taken off a train was all of it while the machine was busy."""
    result = time_together({"a": FakeSession(lambda s: 1.0)}, QUICK)["a"]
    assert result.runs_per_sample <= 2 * QUICK.sample_ns_host / 200


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
    session = FakeSession(lambda s: wild.uniform(1e5, 1e6), real_s=0.0001)
    result = time_together({"a": session}, rules)["a"]
    assert result.stop_reason == "max_samples"
    assert len(result.samples_ns) == 40


def test_warm_up_makes_three_passes_and_lasts_its_time():
    session = FakeSession()
    started = CLOCK()
    timing.warm_up(session, 3, 0.02, CLOCK)
    assert sum(count for count, _ in session.calls) >= 3
    assert CLOCK() - started >= 2e7


def test_a_warm_up_asks_for_no_more_than_it_needs():
    class Rough(FakeSession):
        def __init__(self):
            super().__init__()
            self.warmed = 0

        def warm_runs(self, count):
            self.warmed += count
            return 50_000 * count

    session = Rough()
    assert timing.warm_up(session, 3, 0, CLOCK, rough=True) == 50_000
    assert session.warmed >= 3
    assert session.calls == []
    timing.warm_up(session, 3, 0, CLOCK)
    assert session.calls


def test_a_slow_net_is_warmed_up_by_three_passes():
    session = FakeSession(lambda s: 2e7, real_s=0.02)
    assert timing.warm_up(session, 3, 0.001, CLOCK) == 2e7
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


def test_it_is_known_who_failed_first():
    for first, second in (("a", "b"), ("b", "a")):
        sessions = {first: FakeSession(breaks_after=6), second: FakeSession(breaks_after=40)}
        results = time_together(sessions, QUICK)
        assert results[first].error is not None
        assert results[first].failed_ns < results[second].failed_ns


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


def test_the_phases_of_a_pass_add_up_to_its_wall_time(clocked):
    session = FakeSession()
    result = host_to_host(session, {"x": np.zeros(1)}, device_ns=3e6, seconds=0.05)
    assert result.passes >= 5
    assert set(result.phases) == {"h2d", "compute", "d2h", "sync"}
    assert result.phases["compute"] == 3e6
    assert result.phases["h2d"] >= 1e6
    assert result.phases["sync"] >= 1e6, "what launching and waiting cost beyond the device's own time"
    assert sum(result.phases.values()) <= 1.2 * result.wall_ns
    median, low, high = result.launched_ns
    assert 4e6 <= low <= median <= high
    assert session.copied == result.passes < session.ran, "for a pass that is launched nothing is copied"


def test_a_pass_that_ends_with_run_has_nothing_to_wait_for(clocked):
    result = host_to_host(FakeSession(), {"x": np.zeros(1)}, seconds=0.05)
    assert result.phases["compute"] >= 4e6
    assert result.phases["sync"] < result.phases["compute"]


class Machine:
    """A clock that goes on by what passes take, and sessions on it: nothing here takes real time."""

    def __init__(self, seed=0):
        self.now = 0
        self.random = random.Random(seed)

    def clock(self):
        return self.now

    def session(self, nanoseconds=1e7, noise=0.0):
        return OnMachine(self, nanoseconds, noise)


class OnMachine:
    """Passes of `nanoseconds`, give or take `noise`."""

    def __init__(self, machine, nanoseconds, noise):
        self.machine, self.nanoseconds, self.noise = machine, nanoseconds, noise
        self.level = 1.0
        self.runs = 0

    def time_runs(self, count, cold=False):
        noise = 1 + self.noise * self.machine.random.gauss(0, 1)
        time_ns = round(count * self.nanoseconds * self.level * noise)
        self.machine.now += time_ns
        self.runs += count
        return time_ns


def rounds_differ(sessions, machine, sd):
    """An on_turn by which each turn is faster or slower than the last."""

    def turn(key, number):
        sessions[key].level = 1 + sd * machine.random.gauss(0, 1)

    return turn


def test_a_pair_goes_on_until_its_verdict_is_clear_and_says_so():
    machine = Machine(1)
    sessions = {"ours": machine.session(1.05e7, 0.005), "reference": machine.session(1e7, 0.005)}
    turn = rounds_differ(sessions, machine, 0.03)
    found = time_together(sessions, references={"ours": "reference"}, on_turn=turn, clock=machine.clock)
    assert {timing.stop_reason for timing in found.values()} == {"verdict"}
    assert stats.compare(found["ours"], found["reference"])[1] is Verdict.SLOWER
    assert len(found["ours"].rounds) > Rules.rounds
    assert found["ours"].spent_s < 12


def test_whoever_asks_for_something_else_says_when_it_is_known():
    machine = Machine(3)
    sessions = {"ours": machine.session(1e7, 0.05), "beside": machine.session(3e7, 0.05)}
    asked = []

    def enough(timings):
        asked.append(len(timings["ours"].rounds))
        return stats.clear_of(timings["ours"], timings["beside"], 0.5)

    turn = rounds_differ(sessions, machine, 0.05)
    found = time_together(sessions, enough=enough, on_turn=turn, clock=machine.clock)
    assert asked == [Rules.rounds]
    assert {timing.stop_reason for timing in found.values()} == {"verdict"}


def test_a_verdict_that_stays_unclear_takes_the_budget_and_no_more():
    machine = Machine(2)
    sessions = {"ours": machine.session(1.02e7, 0.005), "reference": machine.session(1e7, 0.005)}
    turn = rounds_differ(sessions, machine, 0.04)
    rules = Rules(budget_s=4.0)
    found = time_together(
        sessions, rules, references={"ours": "reference"}, on_turn=turn, clock=machine.clock
    )
    for timing_ in found.values():
        assert timing_.stop_reason == "budget"
        assert timing_.spent_s <= rules.budget_s + 0.05


def test_a_reference_goes_on_for_as_long_as_anyone_needs_it_and_the_others_stop():
    machine = Machine(3)
    sessions = {
        "twice": machine.session(2e7, 0.005),
        "near": machine.session(1.03e7, 0.005),
        "reference": machine.session(1e7, 0.005),
    }
    turn = rounds_differ(sessions, machine, 0.02)
    references = dict.fromkeys(("twice", "near", "reference"), "reference")
    found = time_together(sessions, references=references, on_turn=turn, clock=machine.clock)
    assert len(found["twice"].rounds) == Rules.rounds < len(found["near"].rounds)
    assert len(found["reference"].rounds) == len(found["near"].rounds)


def test_who_loses_its_reference_goes_on_by_its_own_median():
    machine = Machine(4)
    sessions = {"ours": machine.session(noise=0.001), "reference": FakeSession(breaks_after=2)}
    found = time_together(sessions, references={"ours": "reference"}, clock=machine.clock)
    assert found["reference"].error is not None
    assert found["ours"].stop_reason == "interval"


def test_instances_take_the_rounds_in_turn_and_each_is_warmed_up():
    machine = Machine(5)
    instances = [machine.session(1e7 * (1 + i / 1000), noise=0.0001) for i in range(3)]
    found = time_together({"a": instances, "b": machine.session(noise=0.0001)}, clock=machine.clock)
    own = found["a"]
    assert own.instances == [i % 3 for i in range(len(own.rounds))]
    assert found["b"].instances == []
    parts = stats.split_rounds(own.samples_ns, own.rounds)
    for instance, part in zip(own.instances, parts, strict=True):
        assert np.median(part) == pytest.approx(instances[instance].nanoseconds, rel=0.0005)
    assert all(session.runs >= Rules.warmup_runs for session in instances)


def test_every_instance_has_a_round_before_anything_stops():
    machine = Machine(6)
    instances = [machine.session(noise=0.0001) for _ in range(8)]
    found = time_together({"a": instances}, clock=machine.clock)["a"]
    assert set(found.instances) == set(range(8))
    assert found.stop_reason == "interval"


def test_more_rounds_of_instances_that_differ_are_not_taken():
    machine = Machine(7)
    sides = {
        side: [machine.session(1e7 * factor, noise=0.002) for factor in (1.0, 1.05, 0.96, 1.02, 0.97)]
        for side in ("ours", "reference")
    }
    sides["ours"].reverse()
    found = time_together(sides, references={"ours": "reference"}, clock=machine.clock)
    assert {timing.stop_reason for timing in found.values()} == {"exhausted"}
    assert found["ours"].spent_s < 3


def growing(machine, factors, most=15, seconds=60.0, there=5):
    """Instances that differ by these factors, the first of them there."""
    made = [machine.session(1e7 * factor, noise=0.0005) for factor in factors]
    return Growing(made[0], made[1:there], lambda number: made[number], most, seconds)


# Of a mean of 1, five of which say little of it.
FACTORS = (1.03, 0.97, 1.02, 0.98, 1.01, 0.99, 1.0, 1.02, 0.98, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0)


def test_where_instances_are_what_a_verdict_hangs_on_there_are_more_of_both():
    machine = Machine(8)
    factors = tuple(1 + 0.6 * (factor - 1) for factor in FACTORS)
    sides = {"ours": growing(machine, factors), "reference": growing(machine, factors[::-1])}
    found = time_together(sides, references={"ours": "reference"}, clock=machine.clock)
    assert len(sides["ours"]) == len(sides["reference"]) > 5
    assert set(found["ours"].instances) == set(found["reference"].instances) == set(range(len(sides["ours"])))
    assert stats.compare(found["ours"], found["reference"])[1] is stats.Verdict.SAME
    assert found["ours"].stop_reason == "verdict"


@pytest.mark.parametrize("limits", [{"most": 7}, {"seconds": -1.0, "most": 7}])
def test_there_are_no_more_instances_than_may_be(limits):
    machine = Machine(9)
    wild = tuple(1 + 5 * (factor - 1) for factor in FACTORS)
    sides = {"ours": growing(machine, wild, **limits), "reference": growing(machine, wild[::-1], **limits)}
    found = time_together(sides, references={"ours": "reference"}, clock=machine.clock)
    assert {len(of) for of in sides.values()} == {5 if "seconds" in limits else 7}
    assert found["ours"].stop_reason == "exhausted"


def test_an_instance_that_is_wrong_when_it_is_made_later_ends_its_side_alone():
    machine = Machine(10)

    def wrong(number):
        raise ValueError(f"instance {number} is wrong")

    made = [machine.session(1e7 * factor, noise=0.0005) for factor in FACTORS[:5]]
    sides = {
        "ours": Growing(made[0], made[1:], wrong, 15, 60.0),
        "reference": growing(machine, FACTORS[::-1]),
    }
    found = time_together(sides, references={"ours": "reference"}, clock=machine.clock)
    assert str(found["ours"].error) == "instance 5 is wrong"
    assert found["reference"].error is None
    assert found["reference"].stop_reason


def test_passes_of_microseconds_leave_samples_for_rounds_enough():
    """Else all that may be taken would have been within the first second."""
    machine = Machine(8)
    sessions = {"ours": machine.session(2e4), "reference": machine.session(2e4)}
    turn = rounds_differ(sessions, machine, 0.05)
    found = time_together(sessions, references={"ours": "reference"}, on_turn=turn, clock=machine.clock)
    assert len(found["ours"].rounds) > 25
    assert len(found["ours"].samples_ns) <= Rules.max_samples


def disturbed(of, machine):
    """Its samples are now and then longer, never shorter."""
    plain = of.time_runs

    def time_runs(count, cold=False):
        time_ns = plain(count)
        more = round(time_ns * machine.random.random()) if machine.random.random() < 0.45 else 0
        machine.now += more
        return time_ns + more

    of.time_runs = time_runs
    return of


def test_the_reference_alone_says_by_which_quantile_its_contenders_are_compared():
    random = np.random.default_rng(11)

    def turns(one_sided):
        more = 1 + one_sided * random.random(200) * (random.random(200) < 0.45)
        samples = 1e7 * more * random.lognormal(0, 0.002, 200)
        return Timing(samples_ns=samples.tolist(), rounds=list(range(0, 200, 20)))

    for wild in (0.0, 1.0):
        reference = turns(wild)
        chosen = set()
        for other in (0.0, 1.0, 5.0):
            found = {"ours": turns(other), "reference": reference}
            stopping.choose_quantiles(found, {"ours": "reference"}, found)
            chosen |= {timing.quantile for timing in found.values()}
        assert len(chosen) == 1
        assert not wild or chosen <= {0.25, 0.1}
    machine = Machine(11)
    pair = {"ours": disturbed(machine.session(), machine), "reference": disturbed(machine.session(), machine)}
    on = dict.fromkeys(pair, "cuda")
    found = time_together(pair, references={"ours": "reference"}, devices=on, clock=machine.clock)
    assert {timing.quantile for timing in found.values()} == {stats.MEDIAN}, (
        "no other program is on its clock"
    )


def test_turns_of_one_sample_are_compared_by_the_lowest_quantile():
    samples = np.random.default_rng(13).lognormal(17, 0.2, 25).tolist()
    found = {key: Timing(samples_ns=samples, rounds=list(range(25))) for key in ("ours", "reference")}
    stopping.choose_quantiles(found, {"ours": "reference"}, found)
    assert {timing.quantile for timing in found.values()} == {0.1}


def test_contenders_that_are_about_as_fast_have_trains_of_one_length():
    machine = Machine(12)
    pair = {"a": machine.session(1e5), "b": machine.session(1.3e5), "c": machine.session(1e6)}
    runs = {key: of.runs_per_sample for key, of in time_together(pair, clock=machine.clock).items()}
    assert runs["a"] == runs["b"] != runs["c"]


class OneThread(FakeSession):
    """A session in one thread: `log` has who was timed. Passes take longer while `level` says so."""

    one_thread = True

    def __init__(self, name, log, factor=1.0, level=lambda: 1.0, **how):
        super().__init__(lambda _: 50_000.0 * factor * level(), **how)
        self.name, self.log, self.parts_ns = name, log, ()

    def time_runs(self, count, cold=False):
        taken = super().time_runs(count, cold)
        self.log.append(self.name)
        self.parts_ns = [taken / count] * 4
        return taken


SLICED = Rules(warmup_s=0.002, rewarm_s=0.001, min_s=0.05, budget_s=0.5, slice_s=0.002)


def test_who_takes_one_thread_changes_over_within_a_round_and_all_have_equally_many_parts():
    log, parts = [], []
    sessions = {key: [OneThread(f"{key}{i}", log) for i in range(3)] for key in ("a", "b")}
    sessions["other"] = FakeSession()
    result = time_together(
        sessions,
        SLICED,
        references={"a": "b"},
        on_part=parts.append,
        on_turn=lambda key, _: parts.append(key),
    )
    a, b = result["a"], result["b"]
    assert len(a.rounds) == len(b.rounds) > 2 * SLICED.rounds
    assert len(result["other"].rounds) < len(a.rounds), "it takes its turns as a whole"
    assert a.instances[:6] == b.instances[:6] == [0, 1, 2, 0, 1, 2]
    assert len(a.samples_ns) >= 4 * len(a.rounds), "a part of what is timed at once is a sample"
    both = [key for key in parts if key != "other"]
    assert max(len(run) for run in "".join(both).replace("ab", "a b").replace("ba", "b a").split()) <= 2


def test_what_lasts_longer_than_a_part_falls_on_both_alike():
    began = CLOCK()
    drawn = random.Random(3)
    levels = [drawn.choice((1.0, 1.6)) for _ in range(10_000)]
    level = lambda: drawn.uniform(1, 1.01) * levels[(CLOCK() - began) // 20_000_000]  # noqa: E731
    log = []
    sessions = {
        key: [OneThread(key, log, factor, level) for _ in range(5)]
        for key, factor in (("a", 1.1), ("b", 1.0))
    }
    result = time_together(sessions, SLICED, references={"a": "b"})
    found = stats.compare(result["a"], result["b"])
    assert found.verdict is Verdict.SLOWER
    # An interval of 95 % misses now and then, by little.
    assert found.ratio.low / 1.005 <= 1.1 <= found.ratio.high * 1.005


def test_one_that_fails_in_a_part_leaves_the_others():
    log = []
    sessions = {"a": OneThread("a", log, breaks_after=30), "b": OneThread("b", log)}
    result = time_together(sessions, SLICED)
    assert isinstance(result["a"].error, RuntimeError)
    assert result["b"].stop_reason == "interval"
