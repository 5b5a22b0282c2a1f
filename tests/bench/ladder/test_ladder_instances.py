"""A rung is timed in several instances, each at addresses of its own and each checked: what one of them does
otherwise is found, and what they differ by is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.judge import Trial
from bench.measure import instances, timing
from bench.measure.answers import renewed
from bench.measure.ladder import entrants
from bench.measure.ladder.runner import LadderRunner
from bench.questions import ladder_plan
from bench.results.ladder_records import LadderJob, RungMeasurement
from bench.results.ladder_rows import rows
from bench.results.messages import Measured, Start
from bench.run.kinds.ladder import KIND as LADDER
from bench.run.options import INSTANCES
from kernels.errors import InputError, OutOfMemoryError
from models.names import DEFAULT_MODEL
from tests.bench.ladder.test_judge import CONV
from tests.bench.ladder.test_ladder import write

pytestmark = pytest.mark.slow

# Of samples at most, that each instance may have a round on a machine that does something else meanwhile.
ENOUGH_S = 10.0

# Each needs to know the full-size shape, for the judge opens many sessions of small ones.
START = f"""from tests.bench.ladder.planted._direct import convolve, finish, shaped

FULL = ({CONV.n}, {CONV.h}, {CONV.w})
KEPT = {{}}


def made(p, inputs, output, wrong=lambda passes, y: None):
    x, weight, bias = shaped(p, inputs)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    passes = [0]

    def run():
        passes[0] += 1
        y[...] = convolve(p, x, weight, bias)
        finish(p, output)
        wrong(passes[0], y)

    return run

"""
RIGHT = START + "\ndef bind(p, inputs, output, workspace):\n    return made(p, inputs, output)\n"
# What is kept holds the places of the first session; the second one's output is never written.
BY_POINTER = (
    START
    + """
def bind(p, inputs, output, workspace):
    if (p.n, p.h, p.w) != FULL:
        return made(p, inputs, output)
    if p not in KEPT:
        KEPT[p] = made(p, inputs, output)
    return KEPT[p]
"""
)
# The second instance is right while it is checked, and later leaves an image out. Before the first one, two
# sessions of this shape are asked for all digits (bench.judge.digits).
TIRES = (
    START
    + """
def tired(passes, y):
    if passes > 6:
        y[0] = 0


def bind(p, inputs, output, workspace):
    if (p.n, p.h, p.w) != FULL:
        return made(p, inputs, output)
    KEPT["sessions"] = KEPT.get("sessions", 0) + 1
    return made(p, inputs, output, tired if KEPT["sessions"] == 4 else lambda passes, y: None)
"""
)


@pytest.fixture(autouse=True)
def _places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr("bench.measure.instances.MOST_ON_HOST", 1)  # as many as are asked for
    monkeypatch.setattr("bench.measure.runner.time_together", _few)


def _few(sessions: Mapping[str, timing.Instances], rules: timing.Rules, *others: Any, **named: Any) -> Any:
    """A round of a few brief samples of each instance, and no more to know a median well."""
    few = dataclasses.replace(
        rules, warmup_s=0.01, rewarm_s=0.002, min_s=0.02, max_samples=60, sample_ns_host=1_000_000
    )
    return timing.time_together(sessions, few, *others, **named)


def job_of(tmp_path: Path, *bodies: str, **fields: object) -> LadderJob:
    """Of rungs that are "mine", "mine_1" and so on."""
    names = ["mine" if number == 0 else f"mine_{number}" for number in range(len(bodies))]
    for number, (name, body) in enumerate(zip(names, bodies, strict=True)):
        write(tmp_path, 90 + number, name, body)
    made = {"rungs": tuple(names), "kernel_dirs": (str(tmp_path),), "instances": 2} | fields
    return ladder_plan.job_of(CONV, "cpu", budget_s=ENOUGH_S, threads=1, quick=True, **made)


def climb(job: LadderJob) -> dict[str, RungMeasurement]:
    messages: list[object] = []
    start = Start(job=job, cases=ladder_plan.plan(job).cases)
    LadderRunner(start, messages.append, lambda: False).run()
    return {m.measurement.case.key: m.measurement for m in messages if isinstance(m, Measured)}


@pytest.mark.sampled(4, "long")
def test_a_rung_and_the_reference_take_their_rounds_by_several_sessions(tmp_path: Path) -> None:
    job = job_of(tmp_path, RIGHT, instances=3)
    found = climb(job)
    for one in found.values():
        assert one.disposition == "ok", one.reason
        assert set(one.instances) >= {0, 1, 2}
        assert len(one.instances) == len(one.rounds)
    plain = {
        name: msgspec.structs.replace(one, instances=tuple(i % 3 for i in range(len(one.rounds))))
        for name, one in found.items()
    }
    mine = {row.name: row for row in rows(ladder_plan.plan(job), list(plain.values()))}["mine"]
    alone = [msgspec.structs.replace(one, instances=()) for one in plain.values()]
    other = {row.name: row for row in rows(ladder_plan.plan(job), alone)}["mine"]
    assert mine.time is not None
    assert other.time is not None
    assert mine.time != other.time, "what the instances differ by is in the interval"
    assert mine.speedup != other.speedup


@pytest.mark.sampled(4, "long")
def test_a_second_instance_finds_what_one_alone_does_not(tmp_path: Path) -> None:
    alone = climb(job_of(tmp_path, BY_POINTER, TIRES, instances=1))
    # The first is found without: on other inputs of the same shape it has other pointers, too.
    assert [one.disposition for one in alone.values()] == ["incorrect", "ok", "ok"]
    assert alone["mine"].finding is not None
    assert alone["mine"].finding.fault == "unwritten"
    found = climb(job_of(tmp_path / "again", BY_POINTER, TIRES))
    findings = []
    for name in ("mine", "mine_1"):
        assert found[name].disposition == "incorrect"
        assert found[name].samples_ns == ()
        findings.append(found[name].finding)
    by_pointer, tires = findings
    assert by_pointer is not None
    assert by_pointer.fault == "unwritten"
    assert by_pointer.when == "before timing"
    assert tires is not None
    assert tires.when.startswith("during timing")
    assert found["reference"].disposition == "ok"


def in_a_model(rung: str, budget_s: float = ENOUGH_S, **fields: object) -> LadderJob:
    """Of a rung and the whole model with it."""
    from bench.measure.ladder.entrants import params_of
    from bench.questions.model_questions import node

    found = node(DEFAULT_MODEL, "conv", "0", 1, "cpu")
    return ladder_plan.job_of(
        params_of("conv", found.params), "cpu", model=DEFAULT_MODEL, node=found.node, rungs=(rung,),
        whole_model=True, budget_s=budget_s, threads=1, quick=True, **fields,
    )  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("l2", ["warm", "cold"])
def test_a_kernel_in_a_whole_model_whose_time_hangs_on_what_changed_is_shown_with_that_over_new_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, l2: str
) -> None:
    def settle(renewal: renewed.Renewal, mixing: renewed.Mixing) -> None:
        renewal.taken = [renewed.Mixed(0, (7e6, 7.1e6), (1e6,))] * 3
        renewal.told = "is faster where few of its inputs changed"

    monkeypatch.setattr(renewed.Renewal, "settle", settle)
    write(tmp_path, 90, "mine", RIGHT)
    found = climb(in_a_model("mine", 0.2, kernel_dirs=(str(tmp_path),), instances=1, l2=l2))
    (whole,) = (one for one in found.values() if _is_whole(one, "mine"))
    assert whole.disposition == "ok", whole.reason
    assert (whole.samples_ns, whole.rounds) == ((7e6, 7.1e6) * 3, (0, 2, 4))
    assert whole.notes == ("is faster where few of its inputs changed",)


@pytest.mark.sampled(4, "long")
def test_a_whole_model_is_timed_in_several_too(tmp_path: Path) -> None:
    for one in climb(in_a_model("im2col", instances=2)).values():
        assert one.disposition == "ok", one.reason
        assert set(one.instances) >= {0, 1}, one.case.words


@pytest.mark.sampled(4, "long")
def test_a_whole_model_says_where_memory_holds_not_all_of_its_instances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.measure.instances._free_nbytes", lambda device: 0)
    (whole,) = (one for one in climb(in_a_model("im2col", instances=2)).values() if _is_whole(one, "im2col"))
    assert set(whole.instances) == {0, 1}
    assert any("timed one after another: memory" in text for text in whole.validity.warnings)


def _is_whole(one: RungMeasurement, rung: str) -> bool:
    return (one.case.scope, one.case.rung) == ("model", rung)


@pytest.mark.sampled(4, "long")
def test_where_memory_ends_a_rung_is_timed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(trial: Trial) -> Trial:
        raise OutOfMemoryError("no room")

    monkeypatch.setattr(Trial, "another", full)
    monkeypatch.setattr("bench.measure.instances._free_nbytes", lambda device: 0)
    for one in climb(job_of(tmp_path, RIGHT)).values():
        assert one.disposition == "ok"
        assert one.instances == ()
        assert "timed in 1 instance: memory did not suffice for 2" in one.validity.warnings


@pytest.mark.sampled(4, "long")
def test_a_reference_whose_second_session_answers_otherwise_is_incorrect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = entrants.ReferenceContender._asked
    calls: list[object] = []

    def wrong(reference: entrants.ReferenceContender, session: object) -> object:
        calls.append(session)
        return asked(reference, session) * len(calls)  # type: ignore[arg-type]

    monkeypatch.setattr(entrants.ReferenceContender, "_asked", wrong)
    found = climb(job_of(tmp_path, RIGHT))
    assert found["mine"].disposition == "ok"
    assert found["reference"].disposition == "incorrect"
    assert "in instance 2" in found["reference"].reason


def test_a_job_says_how_many_and_an_old_one_was_of_one(tmp_path: Path) -> None:
    fields = {"model": DEFAULT_MODEL, "node": "conv1", "batch": CONV.n}
    job = ladder_plan.job_of(CONV, "cpu", **fields)
    assert job.instances == INSTANCES
    assert "--instances" not in LADDER.arguments(job)
    words = LADDER.arguments(ladder_plan.job_of(CONV, "cpu", instances=1, **fields))
    assert words[words.index("--instances") + 1] == "1"
    old = msgspec.json.decode(b'{"op":"conv","params":{},"device":"cpu"}', type=LadderJob)
    assert old.instances == 1
    with pytest.raises(InputError, match="instances 0 is out of range"):
        ladder_plan.job_of(CONV, "cpu", instances=0)
    assert instances.told(1) == "1 instance"
