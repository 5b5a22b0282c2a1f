"""Several instances of what is timed: their differences are in the interval, each is checked, and what memory
does not suffice for is told."""

import msgspec
import numpy as np
import pytest

from bench.measure import instances, net_runner, timing, unrest
from bench.measure.cases import check
from bench.measure.outcomes import Incorrect
from bench.results import stats
from bench.results.records import Job, Run
from bench.results.stats import medians
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.run.options import INSTANCES
from bench.words import units
from kernels.errors import InputError, OutOfMemoryError
from tests.bench.measure.test_worker import Fake, changed, fakes, go

pytestmark = pytest.mark.slow

__all__ = ["fakes"]

# Of samples at most, that each instance may have a round on a machine that does something else meanwhile.
ENOUGH_S = 30.0


@pytest.fixture(autouse=True)
def _quick(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(net_runner, "Rules", _few)
    monkeypatch.setattr(instances, "MOST", 1)  # as many as are asked for
    monkeypatch.setattr(instances, "TIMES", 1)


def _few(**asked):
    """A round of two samples of each instance, and no more to know a median well."""
    few = {"warmup_s": 0.01, "rewarm_s": 0.005, "min_s": 0.02, "max_samples": 12}
    return timing.Rules(**asked | few)


class Numbered(Fake):
    """Its sessions know the how manieth they are. wrong: changes the outputs of instance `number`."""

    def __init__(self, name, wrong=lambda session, outputs: outputs, number=1, on_prepare=lambda made: None):
        super().__init__(name, self._answer)
        self.made, self.wrong, self.at, self.before = [], wrong, number, on_prepare

    def _answer(self, session, outputs):
        return self.wrong(session, outputs) if session.number == self.at else outputs

    def prepare(self, graph, batch, precision="fp32", options=None):
        self.before(len(self.made))
        session = super().prepare(graph, batch, precision, options)
        session.number = len(self.made)
        self.made.append(session)
        return session


class Made:
    closed = False

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("asked", "seconds", "there"), [(1, 0, 1), (2, 0, 5), (3, 0, 5), (6, 0, 6), (2, 1, 2), (3, 1, 3)]
)
def test_what_is_made_in_no_time_is_made_more_often_than_asked(asked, seconds, there, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(instances, "MOST_ON_HOST", 5)
    monkeypatch.setattr(instances.time, "perf_counter", lambda: seconds * next(clock))
    made, short = instances.create_more(asked, 1, "cpu", 100, lambda number: Made())
    assert (len(made) + 1, short) == (there, "")


def test_memory_that_does_not_suffice_for_more_than_was_asked_is_not_told(monkeypatch):
    monkeypatch.setattr(instances, "MOST_ON_HOST", 5)

    def make(number):
        if number >= 3:
            raise OutOfMemoryError("full")
        return Made()

    assert [instances.create_more(asked, 1, "cpu", 100, make)[1] != "" for asked in (2, 3, 4)] == [
        False,
        False,
        True,
    ]


# ------------------------------------------------------------------------------------------------ intervals


class Steady:
    """Takes always the same; `slow` times as long as another. Each call is .2 ms of a clock of their own."""

    now = 0

    def __init__(self, slow=1.0):
        self.slow = slow
        self.calls = 0

    def time_runs(self, count, cold=False):
        self.calls += 1
        Steady.now += 200_000
        return round(count * 50_000 * self.slow * (1 + 1e-4 * (self.calls % 3)))


def test_a_second_instance_that_is_twice_as_slow_leaves_no_clear_verdict():
    """The first alone is faster than the reference for sure, by samples that agree to a ten thousandth."""
    rules = timing.Rules(warmup_s=0.002, rewarm_s=0.001, min_s=0.01, budget_s=0.1)
    reference = [Steady(1.5) for _ in range(3)]
    pair = {"ours": [Steady()], "reference": reference}
    alone = timing.time_together(pair, rules, references={"ours": "reference"}, clock=lambda: Steady.now)
    assert stats.compare(alone["ours"], alone["reference"])[1] is stats.Verdict.FASTER
    pair = {"ours": [Steady(), Steady(2.0), Steady()], "reference": reference}
    several = timing.time_together(pair, rules, references={"ours": "reference"}, clock=lambda: Steady.now)
    interval, verdict, *_ = stats.compare(several["ours"], several["reference"])
    assert verdict is stats.Verdict.UNCLEAR
    assert interval.low < 1 / 1.5
    assert interval.high > 2 / 1.5


def timing_of(medians, labels):
    return timing.Timing(
        samples_ns=[m * (1 + 1e-4 * i) for m in medians for i in range(4)],
        rounds=[4 * i for i in range(len(medians))],
        instances=list(labels),
    )


@pytest.mark.parametrize(
    ("medians", "labels", "told"),
    [
        # Two that agree say little of a third, so that the interval is wide; nothing moved for all that.
        ((1000, 1010, 1001, 1011, 1000), (0, 1, 0, 1, 0), ""),
        ((1000, 1100, 1001, 1101, 1000), (0, 1, 0, 1, 0), "instances differ: the median of one is 10% above"),
        ((1000, 1010, 1300, 1011, 1000), (0, 1, 0, 1, 0), "the machine was unquiet: between rounds"),
        ((1000, 1010, 1300, 1011, 1000), (), "the machine was unquiet: between rounds"),
        ((1000, 1002, 1001, 1003, 1000), (), ""),
    ],
)
def test_what_moved_a_median_is_told_apart(medians, labels, told):
    found = unrest.warning(timing_of(medians, labels))
    assert found.startswith(told)
    assert bool(found) == bool(told)


# ----------------------------------------------------------------------------------------------- a comparison


def test_each_is_timed_in_as_many_instances_as_the_job_asks_and_the_first_tells_the_facts(fakes):
    other = Numbered("other")
    found, _ = go(changed(backends=fakes(other), instances=3, budget_s=ENOUGH_S))
    assert set(found) == {"other", "ort-cpu"}
    for one in found.values():
        assert one.disposition == "ok", one.reason
        assert set(one.instances) >= {0, 1, 2}, "or more, where their verdict hangs on what they differ by"
        assert len(one.instances) == len(one.rounds)
        assert not any("memory" in text for text in one.validity.warnings)
    assert len(other.made) >= 3
    assert sum(session.timed > 0 for session in other.made) >= 3, "those made last may have had no turn"
    assert other.open == 0


def test_one_instance_is_one_session_as_ever(fakes):
    other = Numbered("other")
    found, _ = go(changed(backends=fakes(other), instances=1))
    assert found["other"].disposition == "ok"
    assert found["other"].instances == ()
    assert len(other.made) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("wrong", "when"),
    [
        (lambda session, outputs: {n: a[:, ::-1] for n, a in outputs.items()}, "before timing"),
        # Of a row that no golden image lies in.
        (lambda session, outputs: {n: _spoilt(a) for n, a in outputs.items()}, "beside the first instance"),
        (
            lambda session, outputs: {n: a + 0.1 for n, a in outputs.items()} if session.timed else outputs,
            "during timing",
        ),
    ],
)
def test_a_second_instance_that_answers_wrongly_is_a_wrong_case(fakes, wrong, when):
    other = Numbered("other", wrong)
    found, _ = go(changed(backends=fakes(other), batches=(32,), instances=2, budget_s=ENOUGH_S))
    assert found["other"].disposition == "incorrect"
    assert "in instance 2" in found["other"].reason
    assert when in found["other"].reason
    assert found["other"].samples_ns == ()
    assert found["ort-cpu"].disposition == "ok"
    assert other.open == 0


def test_an_instance_that_the_budget_had_no_round_for_counts_for_nothing(fakes, monkeypatch):
    """One that would be wrong as soon as it is timed, and is not: no sample is of it."""
    other = Numbered(
        "other",
        lambda session, outputs: {n: a + 0.1 for n, a in outputs.items()} if session.timed else outputs,
    )
    spent = []
    clock = timing.time_together.__kwdefaults__["clock"]
    monkeypatch.setitem(timing.time_together.__kwdefaults__, "clock", lambda: clock() + sum(spent))
    other.on_time = lambda: spent.append(
        int(2e9 * ENOUGH_S)
    )  # the budget and more, in the first's only round
    found, _ = go(changed(backends=fakes(other), instances=2, budget_s=ENOUGH_S))
    assert found["other"].disposition == "ok"
    assert set(found["other"].instances) == {0}
    assert other.made[1].timed == 0


def _spoilt(array):
    changed = array.copy()
    changed[9] = changed[9, ::-1]
    return changed


def test_an_instance_that_keeps_an_answer_from_other_inputs_is_found(fakes):
    held = []

    def stale(session, outputs):
        held.append(outputs)
        return held[0]

    found, _ = go(changed(backends=fakes(Numbered("other", stale)), instances=2, budget_s=ENOUGH_S))
    assert found["other"].disposition == "incorrect"
    assert "in instance 2" in found["other"].reason


IN_TURN = "3 instances were timed one after another: memory holds not all of them"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("error", "fits"), [(OutOfMemoryError("no room"), 1), (MemoryError(), 2)])
def test_where_memory_holds_not_all_they_are_timed_one_after_another(fakes, error, fits):
    most = []

    def prepare(made):
        if other.open >= fits:
            raise error
        most.append(other.open)

    other = Numbered("other", on_prepare=prepare)
    found, _ = go(changed(backends=fakes(other), instances=3, budget_s=ENOUGH_S))
    assert found["other"].disposition == "ok"
    assert IN_TURN in found["other"].validity.warnings
    labels = found["other"].instances
    # On a busy machine the verdict may be clear, or the budget spent, before the last one's turn.
    assert {0, 1} <= set(labels) <= {0, 1, 2}
    assert list(labels) == sorted(labels), "each takes its rounds in a row"
    assert set(found["ort-cpu"].instances) >= {0, 1, 2}
    assert max(most) < fits
    assert other.open == 0


def test_an_instance_that_would_take_most_of_what_is_free_is_made_where_the_last_one_was(fakes, monkeypatch):
    open_then = []
    other = Numbered("other", on_prepare=lambda made: open_then.append(other.open))
    monkeypatch.setattr(instances, "_free_nbytes", lambda device: 1000)
    found, _ = go(changed(backends=fakes(other), instances=3, budget_s=ENOUGH_S))
    assert IN_TURN in found["other"].validity.warnings
    assert open_then == [0, 0, 0]
    assert len(found["other"].rounds) == len(found["other"].instances)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("wrong", "number", "when"),
    [
        (lambda session, outputs: {n: a[:, ::-1] for n, a in outputs.items()}, 1, "before timing"),
        (
            lambda session, outputs: {n: a + 0.1 for n, a in outputs.items()} if session.timed else outputs,
            1,
            "",
        ),
        (
            lambda session, outputs: {n: a + 0.1 for n, a in outputs.items()} if session.timed else outputs,
            2,
            "",
        ),
    ],
)
def test_one_after_another_is_checked_as_all_are(fakes, monkeypatch, wrong, number, when):
    """Also the one that is gone when the timing ends."""
    other = Numbered("other", wrong, number)
    monkeypatch.setattr(instances, "_free_nbytes", lambda device: 1000)
    found, _ = go(changed(backends=fakes(other), instances=3, budget_s=ENOUGH_S))
    assert found["other"].disposition == "incorrect"
    assert when in found["other"].reason
    assert found["ort-cpu"].disposition == "ok"
    assert other.open == 0


def test_an_instance_that_cannot_be_prepared_for_another_reason_ends_its_case_alone(fakes):
    def prepare(made):
        if made == 2:
            raise ValueError("a bug of ours")

    other = Numbered("other", on_prepare=prepare)
    found, _ = go(changed(backends=fakes(other), instances=3, budget_s=ENOUGH_S))
    assert (found["other"].disposition, found["other"].reason) == ("failed", "ValueError: a bug of ours")
    assert found["ort-cpu"].disposition == "ok"
    assert other.open == 0


# ---------------------------------------------------------------------------------------------------- the job


def test_a_record_from_before_instances_is_of_one():
    job = msgspec.json.decode(b'{"models":["lenet5-digits"],"backends":[]}', type=Job)
    assert job.instances == 1
    held = msgspec.json.decode(msgspec.json.encode(Run(job=changed(instances=4), cases=())), type=Run)
    assert held.job.instances == 4


def test_the_command_line_says_how_many_where_they_are_not_as_usual():
    assert "--instances" not in COMPARISON.arguments(changed(instances=INSTANCES))
    words = COMPARISON.arguments(changed(instances=1))
    assert words[words.index("--instances") + 1] == "1"


def test_a_number_of_instances_that_is_none_is_refused():
    with pytest.raises(InputError, match="instances 0 is out of range"):
        check(changed(instances=0))


def test_the_words_say_how_many_were_timed():
    assert units.instances([(), ()]) == ""
    assert units.instances([(0, 1, 0), (0, 1)]) == "each timed in 2 instances"
    assert units.instances([(), (0, 1, 2)]) == "timed in 1 to 3 instances each"


def test_an_answer_apart_by_more_than_two_bounds_is_another():
    first = {"y": np.linspace(1, 2, 100, dtype=np.float32)}
    assert instances.error_against_first({"y": first["y"] * np.float32(1 + 1e-6)}, first, "fp32").ok
    assert not instances.error_against_first({"y": first["y"] * np.float32(1 + 1e-4)}, first, "fp32").ok
    with pytest.raises(Incorrect, match="in instance 3: before timing"), instances.named(2):
        raise Incorrect(None, "before timing", "it is wrong")


def test_a_pass_that_takes_the_whole_budget_is_of_one_instance(fakes):
    other = Numbered("other")
    found, _ = go(changed(backends=fakes(other), instances=3, budget_s=1e-6))
    assert "timed in 1 instance: the budget has no time for 3" in found["other"].validity.warnings
    assert len(other.made) == 1


@pytest.mark.parametrize("seed", range(20))
def test_equal_samples_of_instances_that_differ_are_told_of_without_an_error(seed):
    random = np.random.default_rng(seed)
    of = [turn % 3 for turn in range(6)]
    at = [round(100.0 * (1 + number * random.random()), 1) for number in range(3)]
    samples = [round(at[number] + random.choice([0, 0.1]), 1) for number in of for _ in range(4)]
    timed = timing.Timing(samples_ns=samples, rounds=list(range(0, 24, 4)), instances=of)
    assert not unrest.warning(timed).startswith("the machine was unquiet")


def test_what_arithmetic_made_of_equal_samples_is_no_tick():
    samples = [1.0, 1 + 2e-16, 1 - 1e-16, 1.0]
    assert medians.median(samples, medians.clock_tick(samples)) == pytest.approx(1)
