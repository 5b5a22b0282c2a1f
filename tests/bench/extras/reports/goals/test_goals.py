"""Speed goals held against records: reached, not reached or open as the intervals say, with a reason that is
in the records; a second run that differs is told; and what was cut short is gone on with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

import main
from bench.extras.reports import filled, needs
from bench.extras.reports.goals import again, floors, judged, page, presets, tables
from bench.extras.reports.goals.judged import MISSED, OPEN, REACHED, UNKNOWN, Held
from bench.extras.reports.goals.presets import Goal, Goals
from bench.extras.reports.needs import Limits, Taken
from bench.extras.reports.presets import Need
from bench.results.machine_limits import MachineLimits
from bench.results.records import Accuracy, Case, Disposition, EndToEnd, ErrorStats, Layer, Measurement, stem
from bench.results.rows import derive
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.reports import report_form
from engine import backends
from engine.backends.ort_cuda_tuned import facts as tuned_facts
from engine.options import Configuration
from engine.planning.choices import Choice, Tried
from kernels import registry
from kernels.errors import InputError
from kernels.precision import MIXED, asked
from models import names
from tests.bench.synthetic import record

# What is drawn is looked at as data; that it is drawn, tests/bench/views sees.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("blank_pictures")]

KNOWN = presets.names()
CUDA = ("engine-cuda", "ort-cuda", "ort-cuda-tuned", "ort-cuda-tuned-strict")


@pytest.mark.parametrize(("name", "count"), [("limit-cpu", 26), ("limit-cuda", 28)])
def test_nets_are_measured_each_by_itself_so_that_a_missing_file_stops_no_other(
    name: str, count: int, tmp_path: Path
) -> None:
    goals = presets.load(name)
    of_nets = [need for need in goals.needs if need.models[0].endswith("-dynamic.onnx")]
    assert len(of_nets) == count
    for need in of_nets:
        (model,) = need.models
        wanted = [goal for goal in goals.every if goal.need == need.name]
        assert {goal.model for goal in wanted} == {stem(model)}
        assert all("tests.zoo.export" in goal.lacks for goal in wanted)
    # What is lacking is told where nothing was begun; of a run that was cut short nothing is.
    goal = next(goal for goal in goals.every if goal.need == of_nets[0].name)
    folder = COMPARISON.open(saved(tmp_path / "cut", timed(goal.backend, 10)))
    begun = {
        held.why for held in judged.held(goals, Taken(runs=({goal.need: folder}, {}))) if held.goal == goal
    }
    none = {held.why for held in judged.held(goals, Taken()) if held.goal == goal}
    assert (begun, none) == ({"not measured"}, {goal.lacks})


@pytest.mark.parametrize("name", KNOWN)
def test_what_a_file_names_is_there_and_measured(name: str) -> None:
    goals = presets.load(name)
    assert len({need.name for need in goals.needs}) == len(goals.needs)
    for need in goals.needs:
        made = {model for model in need.models if model.endswith(".onnx")}  # what a user brings
        assert set(need.models) - made <= set(names.models())
        assert set(need.backends) <= set(backends.all_backends())
        assert set(need.once) < set(need.backends)
        assert set(need.precisions) <= {*registry.precisions(goals.device), MIXED}
    for goal in goals.every:
        assert len(goal.batches) == len(goal.wanted)
        assert all(wanted > 0 for wanted in goal.wanted)
        if goal.value == "elapsed":  # of no run
            assert goal.lacks
            continue
        need = goals.need(goal.need)
        assert {goal.model, goal.rival or goal.model} <= set(map(stem, need.models))
        assert set(goal.batches) <= set(need.batches)
        assert goal.precision in {asked(name, need.max_error) for name in need.precisions}
        tuned = (
            {f"ort-{goals.device}{end}" for end in ("-tuned", "-tuned-strict")}
            if need.tune_reference
            else set()
        )
        beside = {goal.backend, goal.against or goal.backend}
        assert beside <= {*need.backends, *tuned} or goal.lacks.startswith("there is no backend")
        assert (goal.value in ("speedup", "end_to_end")) == bool(goal.against)
        assert goal.value not in ("end_to_end", "flow") or need.end_to_end
    assert {need.name for need in goals.needs} == {goal.need for goal in goals.goals if goal.need}


def timed(
    backend: str, us: float, spread: float = 0.001, precision: str = "fp32", batch: int = 1
) -> Measurement:
    """A case whose passes take that long, give or take a share, in three rounds."""
    rng = np.random.default_rng([batch, *backend.encode(), *precision.encode()])
    samples = us * 1e3 * (1 + spread * rng.standard_normal(30))
    layers = tuple(
        Layer(
            nodes=(name,), op_type="Conv", output=name, flops=flops, nbytes=4, time_ns=us * 1e3 * share,
            clock="events",
        )
        for name, flops, share in (("conv1", 10**6, 0.3), ("conv2", 10**7, 0.7))
    )  # fmt: skip
    return Measurement(
        case=Case(model="lenet5-digits", backend=backend, precision=precision, batch=batch, images=8),
        disposition="ok",
        reference="ort-cuda" if "cuda" in backend else "ort-cpu",
        samples_ns=tuple(map(float, samples)),
        rounds=(0, 10, 20),
        layers=layers,
        memory={"peak": 5 << 20},
    )


def saved(path: Path, *measured: Measurement) -> Path:
    folder = COMPARISON.create(path, record([made.case for made in measured]))
    for made in measured:
        folder.append(made)
    folder.close()
    return path


def one(goal: Goal, *runs: Path, limits: tuple[MachineLimits, ...] = ()) -> Held:
    """What comes of a goal at its only batch size."""
    goals = Goals(title="t", device="cuda", needs=(), goals=(goal,))
    taken = needs.given(runs[:1], runs[1:])
    taken.limits = limits
    (found,) = judged.held(goals, taken)
    return found


def speedup(wanted: float, **words: object) -> Goal:
    return Goal(model="lenet5-digits", need="n", against="ort-cuda-tuned", wanted=(wanted,), **words)  # type: ignore[arg-type]


def both(path: Path, ours: float, theirs: float, spread: float = 0.001) -> Path:
    return saved(path, timed("engine-cuda", ours, spread), timed("ort-cuda-tuned", theirs, spread))


@pytest.mark.parametrize(
    ("wanted", "spread", "outcome"),
    [(2.5, 0.001, REACHED), (3.5, 0.001, MISSED), (3.0, 0.2, OPEN)],
)
def test_the_whole_interval_decides(wanted: float, spread: float, outcome: str, tmp_path: Path) -> None:
    found = one(speedup(wanted), both(tmp_path / "run", 10, 30, spread))
    assert found.outcome == outcome
    assert found.figures[0].value == pytest.approx(3, rel=0.15)
    assert ("straddles" in found.why) == (outcome == OPEN)


def test_a_doubt_stands_beside_what_the_interval_decides_and_is_counted_apart(tmp_path: Path) -> None:
    told = "the GPU was throttled: 40 % of the time"
    ours, theirs = timed("engine-cuda", 10), timed("ort-cuda-tuned", 30)
    validity = msgspec.structs.replace(theirs.validity, warnings=(told,))
    theirs = msgspec.structs.replace(theirs, validity=validity, facts={"onnxruntime": "1.99.0"})
    run = saved(tmp_path / "run", ours, theirs)
    wanted = (2.5, 3.5, 3.0)
    goals = Goals(title="t", device="cuda", needs=(), goals=tuple(map(speedup, wanted)), name="mine")
    found = judged.held(goals, needs.given([run]))
    assert [one.outcome for one in found] == [REACHED, MISSED, OPEN]
    assert [bool(one.doubts) for one in found] == [True, True, False], "what is open claims nothing"
    made = page.page(goals, needs.given([run]), report_form.form_of(tmp_path / "it.md"), drawn=False)
    counts = [(kind, text) for kind, text in made.strip if "goals" in text]
    assert counts == [
        ("", "1 of 3 goals is reached, with a doubt (!)"),
        ("", "1 of 3 goals is not reached, with a doubt (!)"),
        ("", "1 of 3 goals is open"),
    ]
    text = page.write(goals, needs.given([run]), tmp_path / "it.md")[0].read_text("utf-8")
    assert "`python main.py report goals mine`" in text
    assert "Beside our engine ran: onnxruntime 1.99.0\n" in text
    short = "! the GPU was throttled (of the reference ort-cuda-tuned) |"
    lines = [line.split(" | ", 6) for line in text.splitlines() if "| forward pass" in line]
    assert [line[6].split(" | ")[0] for line in lines] == [f"{REACHED} !", f"{MISSED} !", OPEN]
    assert [line[6].endswith(short) for line in lines] == [True, True, False]
    clean = page.counted(judged.held(goals, needs.given([both(tmp_path / "clean", 10, 30)])))
    assert clean[0] == ("ok", "1 of 3 goals is reached")


def test_what_is_not_measured_is_told_once_a_reason_behind_what_is(tmp_path: Path) -> None:
    lacking = [
        Goal(model=model, need="other", batches=(1, 64), wanted=(1.0, 2.0), against="ort-cuda", lacks=lacks)
        for model, lacks in (("one", "bring it"), ("two", "bring it"), ("three", ""))
    ]
    goals = Goals(title="t", device="cuda", needs=(), goals=(lacking[0], speedup(2.5), *lacking[1:]))
    taken = needs.given([both(tmp_path / "run", 10, 30)])
    taken.why = {"other": UNKNOWN, "broken": "it failed"}
    text = page.write(goals, taken, tmp_path / "it.md")[0].read_text("utf-8")
    measured, _, after = text.partition("## Not measured")
    assert "| lenet5-digits |" in measured
    assert not re.search(r"\| (one|two|three) \|", measured)
    table, _, rest = after.partition("\n## ")
    rows = [line for line in table.splitlines() if re.match(r"\| \d", line)]
    assert [re.split(r" *\| *", row)[1:3] for row in rows] == [
        ["4", "bring it"], ["2", "no run of it was taken, or the run was cut short"],
    ]  # fmt: skip
    assert rows[0].endswith("| 1; 64 | 2 | one; two |")
    # The needs of what stands there are not listed once more; what failed is.
    assert "other: not measured" not in rest
    assert "broken: it failed" in rest
    full = Goals(title="t", device="cuda", needs=(), goals=(speedup(2.5),))
    assert "Not measured" not in page.write(full, taken, tmp_path / "full.md")[0].read_text("utf-8")


def test_a_goal_of_time_is_met_from_below(tmp_path: Path) -> None:
    run = both(tmp_path / "run", 10, 30)
    for wanted, outcome in ((11e-6, REACHED), (9e-6, MISSED)):
        goal = Goal(model="lenet5-digits", value="time", wanted=(wanted,))
        assert one(goal, run).outcome == outcome
    for wanted, outcome in ((6 << 20, REACHED), (4 << 20, MISSED)):
        assert one(Goal(model="lenet5-digits", value="peak", wanted=(wanted,)), run).outcome == outcome
    # Of the device: neither the host's pages count, nor what is in "device" once more.
    for kinds in (
        {"weights": 3 << 20, "arena": 2 << 20, "pinned": 9 << 20},
        {"inputs": 4, "device": 5 << 20},
    ):
        assert (
            derive(msgspec.structs.replace(timed("engine-cuda", 1), memory=kinds), None).peak_nbytes
            == 5 << 20
        )


def test_a_pass_by_itself_is_what_lies_between_the_copies(tmp_path: Path) -> None:
    phases = {"h2d": 20e3, "compute": 7e3, "sync": 3e3, "d2h": 15e3}
    ours = msgspec.structs.replace(timed("engine-cuda", 7), phases=phases)
    run, again = saved(tmp_path / "run", ours), saved(tmp_path / "again", ours)
    for wanted, outcome in ((11e-6, REACHED), (9e-6, MISSED)):
        goal = Goal(model="lenet5-digits", value="launched", wanted=(wanted,))
        found = one(goal, run, again)
        assert (found.outcome, found.figures[0].value) == (outcome, pytest.approx(10e-6))
    slower = msgspec.structs.replace(ours, phases=phases | {"sync": 5e3})
    found = one(
        Goal(model="lenet5-digits", value="launched", wanted=(11e-6,)),
        run,
        saved(tmp_path / "slower", slower),
    )
    assert (found.outcome, found.why) == (OPEN, "the second run says otherwise: 12.0 µs, not reached")
    alone = msgspec.structs.replace(ours, launched_ns=(8e3, 7e3, 8.5e3))
    goal = Goal(model="lenet5-digits", value="launched", wanted=(9e-6,))
    figure = one(goal, saved(tmp_path / "alone", alone)).figures[0]
    assert (figure.value, figure.low, figure.high) == pytest.approx((8e-6, 7e-6, 8.5e-6)), "without copies"


def limits(flops_per_s: float) -> MachineLimits:
    return MachineLimits(
        device="cuda",
        bytes_per_s=1e12,
        flops_per_s=flops_per_s,
        copied_by="a copy",
        multiplied_by="a product",
        measured_on="bench-7, Example GPU 80 GB , driver 580.65",
        measured_at="2026-01-02",
    )


def test_a_missed_goal_says_what_takes_most_and_whether_it_can_be_had(tmp_path: Path) -> None:
    run = both(tmp_path / "run", 10, 30)
    found = one(speedup(6.0), run, limits=(limits(1e13),))  # 0.1 + 1 µs
    assert found.why.startswith(
        "2.00× too slow; the longest step, 70 % of the time, is conv2, which reaches 14 % of its limit"
    )
    assert "floor" not in found.why
    beyond = one(speedup(60.0), run, limits=(limits(1e13),))
    assert re.search(
        r"with each of these steps at its limit it would be 27\.\d× \(1\.10 µs a pass\)", beyond.why
    )
    unknown = one(speedup(6.0), run)
    assert unknown.why.endswith("the longest step, 70 % of the time, is conv2")


@pytest.mark.parametrize(
    ("measured_on", "fits", "own"),
    [
        ("bench-7, Example GPU 80 GB GPU-1, driver 580.65", True, True),
        ("bench-7, Example GPU 80 GB GPU-2, driver 580.65", True, False),
        ("bench-8, Example GPU 80 GB GPU-1, driver 590.10", True, False),
        ("bench-7, Example GPU 80 GB XL GPU-1, driver 580.65", False, False),
        ("bench-7, Example GPU GPU-1, driver 580.65", False, False),
        ("bench-8, Example GPU", False, False),
    ],
)
def test_a_floor_is_by_the_own_gpu_or_one_of_its_name(measured_on: str, fits: bool, own: bool) -> None:
    environment = msgspec.structs.replace(record([]).environment, gpu_uuid="GPU-1")
    one = msgspec.structs.replace(limits(1.0), measured_on=measured_on)
    assert floors.fit((one,), environment) == (one if fits else None)
    assert floors.is_of(one, environment) == own
    exact = msgspec.structs.replace(limits(2.0), measured_on="bench-7, Example GPU 80 GB GPU-1, driver 1")
    assert floors.fit((one, exact), environment) == (one if own else exact)


def test_a_cpus_limits_are_no_other_machines() -> None:
    environment = msgspec.structs.replace(record([]).environment, cpu="Example CPU")
    one = msgspec.structs.replace(limits(1.0), device="cpu", measured_on="bench-8, Example CPU, 2 threads")
    assert floors.fit((one,), environment) is None
    mine = msgspec.structs.replace(one, measured_on="bench-7, Example CPU, 2 threads")
    assert floors.fit((one, mine), environment) == mine


def test_a_report_says_that_its_floors_are_by_another_gpu(tmp_path: Path) -> None:
    goals = presets.load("speed-h200")
    run = both(tmp_path / "run", 10, 30)
    other = msgspec.structs.replace(limits(1e13), measured_on="bench-8, Example GPU 80 GB GPU-2, driver 1")
    for known, told in (((limits(1e13),), False), ((other,), True)):
        taken = needs.given([run])
        taken.limits = known
        text = page.write(goals, taken, tmp_path / "it.md")[0].read_text("utf-8")
        assert ("1 of 1 runs are by what another GPU of the same name" in text) == told


def test_runs_of_several_gpus_bring_the_limits_of_each(tmp_path: Path) -> None:
    runs = [both(tmp_path / gpu / "run", 10, 30) for gpu in ("one", "two")]
    for run, rate in zip(runs, (1e13, 2e13), strict=True):
        (run.parent / floors.LIMITS_FILE).write_bytes(msgspec.json.encode(limits(rate)))
    known = floors.kept([run.parent for run in (*runs, *runs)])
    assert [each.flops_per_s for each in known] == [1e13, 2e13]


def test_of_several_runs_the_table_has_the_one_by_which_a_goal_is_held(tmp_path: Path) -> None:
    goals = Goals(title="t", device="cuda", needs=(), goals=(speedup(2.5),))
    first, last = both(tmp_path / "a", 20, 30), both(tmp_path / "b", 10, 30)
    taken = needs.given([first, last])
    (found,) = judged.held(goals, taken)
    (line,) = tables.cases(goals, judged.measured(taken)[0], ()).rows
    assert found.figures[0].value == pytest.approx(3, rel=0.05)
    assert line.own.median_ns == pytest.approx(10e3, rel=0.05)
    # But for a run that was about something else, and has nothing to hold it against.
    alone = saved(tmp_path / "c", timed("engine-cuda", 5))
    (line,) = tables.cases(goals, judged.measured(needs.given([last, alone]))[0], ()).rows
    assert line.own.median_ns == pytest.approx(10e3, rel=0.05)


def test_a_second_run_that_says_otherwise_leaves_it_open(tmp_path: Path) -> None:
    first, second = both(tmp_path / "a", 10, 30), both(tmp_path / "b", 10, 20)
    found = one(speedup(2.5), first, second)
    assert found.outcome == OPEN
    assert "the second run says otherwise: 2.0" in found.why
    assert one(speedup(1.5), first, second).outcome == REACHED


def test_how_far_apart_two_runs_are_is_counted_by_case(tmp_path: Path) -> None:
    def ran(name: str, ours: Mapping[int, float]) -> Path:
        made = [timed("engine-cuda", us, batch=batch) for batch, us in ours.items()]
        return saved(tmp_path / name, *made, *(timed("ort-cuda", 30, batch=batch) for batch in ours))

    first, second = ran("a", {1: 10, 2: 10}), ran("b", {1: 10.2, 2: 12})
    found = again.repeated(needs.given([first], [second]))
    told = {
        c.pair.batch: again.said(c) for each in found for c in each.changes if c.pair.who == "engine-cuda"
    }
    assert told == {1: "yes", 2: "no"}
    sentence = again.sentence(found)
    assert "1 of 2 speed-ups is within 5 %" in sentence
    assert "2 of 2 times of references are within" in sentence
    assert "batch 2, 1.20× slower in the second" in sentence


def test_second_runs_are_held_case_by_case_whatever_their_order_and_number(tmp_path: Path) -> None:
    """The last run that is named and has a case counts; another precision is another case."""

    def ran(name: str, precision: str, ours: Mapping[int, float]) -> Path:
        made = [timed("engine-cuda", us, precision=precision, batch=batch) for batch, us in ours.items()]
        return saved(
            tmp_path / name, *made, *(timed("ort-cuda", 30, precision=precision, batch=b) for b in ours)
        )

    first = [ran("a", "fp32", {1: 50, 2: 10}), ran("b", "tf32", {1: 10}), ran("c", "fp32", {1: 10})]
    second = [
        ran("again-b", "tf32", {1: 10.1}),
        ran("again-ac", "fp32", {1: 10.1, 2: 12}),
        ran("d", "fp16", {1: 9}),
    ]
    found = again.repeated(needs.given(first, second))
    told = {
        (each.name, c.pair.who, c.pair.batch): again.said(c)
        for each in found
        for c in each.changes
        if c.by == "speed-up"
    }
    assert told == {
        ("again-b", "engine-cuda tf32", 1): "yes",
        ("again-ac", "engine-cuda", 1): "yes",
        ("again-ac", "engine-cuda", 2): "no",
    }
    assert [each.why for each in found] == ["", "", again.ALONE]


def test_a_case_of_two_needs_is_held_in_each(tmp_path: Path) -> None:
    """Both were measured twice: a forward pass from end to end is no second run of another need's."""
    made = [timed("engine-cuda", 10), timed("ort-cuda", 30)]
    names = ("passes", "flows")
    first, second = (
        {name: COMPARISON.open(saved(tmp_path / folder / name, *made)) for name in names}
        for folder in ("first", "second")
    )
    found = again.repeated(Taken(runs=(first, second)))
    assert [each.name for each in found] == [*names]
    assert [len(each.changes) for each in found] == [2, 2]


def test_what_is_missing_or_failed_is_told_with_its_reason(tmp_path: Path) -> None:
    ours = timed("engine-cuda", 10)
    refused = msgspec.structs.replace(
        timed("ort-cuda-tuned", 30), disposition="unsupported", reason="it was not tuned", samples_ns=()
    )
    found = one(speedup(2.0), saved(tmp_path / "refused", ours, refused))
    assert (found.outcome, found.why) == (UNKNOWN, "ort-cuda-tuned: it was not tuned")
    wrong = msgspec.structs.replace(ours, disposition="incorrect", reason="conv1 is off", samples_ns=())
    found = one(speedup(2.0), saved(tmp_path / "wrong", wrong, timed("ort-cuda-tuned", 30)))
    assert (found.outcome, found.why) == (MISSED, "incorrect: conv1 is off")
    found = one(speedup(2.0, precision="fp16"), saved(tmp_path / "none", ours))
    assert (found.outcome, found.why) == (UNKNOWN, "not measured")
    launched = Goal(model="lenet5-digits", value="launched", wanted=(1e-6,))
    assert one(launched, tmp_path / "none").why == "no pass was launched and waited for by itself"


def test_three_products_for_one_are_held_against_plain_float32(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", timed("engine-cuda", 10, precision="fp32-tc"), timed("ort-cuda-tuned", 30))
    assert one(speedup(2.5, precision="fp32-tc"), run).outcome == REACHED
    # What has a reference in its own precision is held against that.
    run = saved(
        tmp_path / "own",
        timed("engine-cuda", 10, precision="fp16"),
        timed("ort-cuda-tuned", 30),
        timed("ort-cuda-tuned", 12, precision="fp16"),
    )
    assert one(speedup(2.5, precision="fp16"), run).outcome == MISSED


def test_a_precision_is_held_against_another_of_the_same_backend(tmp_path: Path) -> None:
    own = timed("engine-cuda", 10, precision="bf16")
    run = saved(tmp_path / "run", own, timed("engine-cuda", 10.1, precision="fp16"))
    words = {"against": "engine-cuda", "than": "fp16", "precision": "bf16"}
    goal = Goal(model="lenet5-digits", wanted=(0.97,), **words)  # type: ignore[arg-type]
    assert one(goal, run).outcome == REACHED
    assert judged.of_words(goal) == "forward pass, beside engine-cuda in fp16"
    slow = saved(tmp_path / "slow", own, timed("engine-cuda", 9, precision="fp16"))
    assert one(goal, slow).outcome == MISSED
    assert one(goal, saved(tmp_path / "alone", own)).why == "engine-cuda: not measured"


def test_a_mixed_precision_is_held_against_the_fastest_whole_one_that_keeps_the_budget(
    tmp_path: Path,
) -> None:
    def off(error: float, us: float, precision: str) -> Measurement:
        stats = ErrorStats(rel_l2=error, max_abs=0.0, mean_abs=0.0, max_rel=0.0, bound=1.0, ok=True)
        accuracy = Accuracy(images=0, labelled=False, output=stats)
        return msgspec.structs.replace(timed("engine-cuda", us, precision=precision), accuracy=accuracy)

    whole = (off(1e-7, 20, "fp32"), off(4e-4, 10, "tf32"), off(2e-3, 5, "fp16"))
    goal = Goal(model="lenet5-digits", value="narrowed", precision="mixed-1e-3", wanted=(1.2,))
    assert one(goal, saved(tmp_path / "faster", *whole, off(8e-4, 8, "mixed-1e-3"))).outcome == REACHED
    slower = one(goal, saved(tmp_path / "slower", *whole, off(8e-4, 9, "mixed-1e-3")), limits=(limits(1e13),))
    assert slower.outcome == MISSED
    assert "at its limit it" not in slower.why, "which would reach it"
    alone = one(goal, saved(tmp_path / "alone", whole[-1], off(8e-4, 8, "mixed-1e-3")))
    assert (alone.outcome, alone.why) == (
        UNKNOWN, "engine-cuda: no whole precision that stays within 1e-3 was measured",
    )  # fmt: skip
    assert "fastest whole precision within 1e-3" in judged.of_words(goal)


def test_shares_of_what_the_machine_reaches(tmp_path: Path) -> None:
    """Of the matrix units' rate, and of the reading of the weights: not known without the machine's limits or
    what the layers do."""
    made = timed("engine-cuda", 10, precision="fp16")
    layers = tuple(msgspec.structs.replace(layer, parameters=10**6) for layer in made.layers)
    run = saved(tmp_path / "run", msgspec.structs.replace(made, layers=layers))
    known = msgspec.structs.replace(limits(1e13), matrix_flops_per_s={"fp16": 2e12})
    words = {"model": "lenet5-digits", "precision": "fp16"}
    rate = Goal(value="rate", wanted=(0.5,), **words)  # type: ignore[arg-type]
    found = one(rate, run, limits=(known,))  # 5.5 of 10 µs
    assert (found.outcome, found.figures[0].value) == (REACHED, pytest.approx(0.55, rel=0.01))
    reading = Goal(value="reading", wanted=(2.4,), **words)  # type: ignore[arg-type]
    found = one(reading, run, limits=(known,))  # 2 million weights of 2 bytes at 1 TB/s: 4 µs
    assert (found.outcome, found.figures[0].value) == (MISSED, pytest.approx(2.5, rel=0.01))
    assert found.why.startswith("1.04× too slow")
    for goal in (rate, reading):
        assert one(goal, run).why == "the machine's limits are not known"
    bare = saved(tmp_path / "bare", msgspec.structs.replace(made, layers=()))
    assert one(reading, bare, limits=(known,)).why == "the weights of its layers are not known"


def test_another_file_of_the_same_net_is_a_rival(tmp_path: Path) -> None:
    def of(model: str, us: float, top1: float, precision: str = "fp32") -> Measurement:
        made = timed("engine-cuda", us, precision=precision)
        return msgspec.structs.replace(
            made,
            case=msgspec.structs.replace(made.case, model=model),
            accuracy=Accuracy(images=8, labelled=True, top1=top1),
        )

    bytes_ = of("net-int8.onnx", 10, 0.953)
    run = saved(tmp_path / "run", bytes_, of("net.onnx", 15, 0.957, "fp16"), of("net.onnx", 40, 0.957))
    goal = Goal(
        model="net-int8", rival="net", against="engine-cuda", than="fp16", wanted=(1.35,), lacks="make it"
    )
    assert one(goal, run).outcome == REACHED
    assert judged.of_words(goal) == "forward pass, beside engine-cuda running net in fp16"
    assert one(goal, saved(tmp_path / "none", of("net.onnx", 15, 0.9))).why == "make it"
    for wanted, outcome in ((0.005, REACHED), (0.003, MISSED)):
        found = one(Goal(model="net-int8", rival="net", value="lost", wanted=(wanted,)), run)
        assert (found.outcome, found.figures[0].value) == (outcome, pytest.approx(0.004))
    lost = Goal(model="net-int8", rival="net", value="lost", wanted=(0.005,))
    assert one(lost, saved(tmp_path / "alone", bytes_)).why == "net: not measured on the same images"


def test_where_plain_float32_failed_that_is_the_reason_not_what_is_not_offered(tmp_path: Path) -> None:
    def without(made: Measurement, disposition: Disposition, reason: str) -> Measurement:
        return msgspec.structs.replace(made, disposition=disposition, reason=reason, samples_ns=())

    rival = timed("ort-cuda-tuned", 30)
    refused = without(
        msgspec.structs.replace(rival, case=msgspec.structs.replace(rival.case, precision="fp32-tc")),
        "unsupported",
        "it does not offer fp32-tc",
    )
    ours = timed("engine-cuda", 10, precision="fp32-tc")
    goal = speedup(2.5, precision="fp32-tc")
    wrong = without(rival, "incorrect", "before timing: relative L2 error 4.73e-04 is above 1e-04")
    found = one(goal, saved(tmp_path / "wrong", ours, refused, wrong))
    assert found.outcome == UNKNOWN
    assert found.why == f"ort-cuda-tuned in fp32: {wrong.reason}"
    untuned = without(rival, "unsupported", "it was not tuned")
    assert one(goal, saved(tmp_path / "untuned", ours, refused, untuned)).why == (
        "ort-cuda-tuned in fp32: it was not tuned"
    )
    assert one(goal, saved(tmp_path / "alone", ours, refused)).why == (
        "ort-cuda-tuned: it does not offer fp32-tc"
    )


def test_from_end_to_end_the_slower_of_bus_and_pass_is_the_limit(tmp_path: Path) -> None:
    def flowing(backend: str, us: float, flow_us: float) -> Measurement:
        flow = EndToEnd(
            samples_ns=(flow_us * 1e3,) * 4,
            rounds=(0, 2),
            batches=12,
            nbytes_in=1000,
            bus_bytes_per_s=1000 / 40e-6,
        )
        return msgspec.structs.replace(timed(backend, us), end_to_end=flow)

    run = saved(tmp_path / "run", flowing("engine-cuda", 10, 50), flowing("ort-cuda", 30, 100))
    flow = Goal(model="lenet5-digits", value="flow", wanted=(0.75,))
    assert one(flow, run).figures[0].value == pytest.approx(0.8)
    beside = Goal(model="lenet5-digits", value="end_to_end", against="ort-cuda", wanted=(3.0,))
    found = one(beside, run)
    assert found.outcome == MISSED
    assert found.figures[0].value == pytest.approx(2)
    assert "the bus is used at 80 %" in found.why


def test_a_report_holds_every_goal_and_where_it_comes_from(tmp_path: Path) -> None:
    goals = presets.load("speed-h200")
    cases = [timed(backend, us) for backend, us in zip(CUDA, (10, 40, 20, 30), strict=True)]
    first, second = saved(tmp_path / "a", *cases), saved(tmp_path / "b", *cases)
    taken = needs.given([first], [second])
    taken.limits = (limits(1e13),)
    for ending in ("html", "md"):
        out = page.write(goals, taken, tmp_path / f"it.{ending}")[0]
        text = re.sub(r"\\(.)", r"\1", out.read_text("utf-8")).replace("\N{NO-BREAK SPACE}", " ")
        assert "measured here on one Example GPU 80 GB (driver 580.65)" in text
        assert "speed-up over tuned within the bound" in text
        assert "share of the floor" in text
        assert "11 %" in text
        assert "within 5 %" in text
        assert str(first) in text
        for sentence in ("goals are not reached", "goals are not measured"):
            assert sentence in text
    lines = [
        line for line in text.splitlines() if line.startswith("| lenet5-digits | fp32 | 1 | forward pass")
    ]
    assert [line.count("ort-cuda-tuned") for line in lines[:1]] == [1]
    assert "2.0" in lines[0]
    assert "not reached" in lines[0]


def test_what_is_timed_once_is_left_out_of_the_second_run_and_the_page_says_so(tmp_path: Path) -> None:
    rival = "torch-cuda-graph"
    need = Need(
        name="lenet",
        device="cuda",
        models=("lenet5-digits",),
        backends=("engine-cuda", "ort-cuda", rival),
        batches=(1,),
        once=(rival,),
    )
    jobs = [needs.job_of(need, need.batches, Limits(), again=again) for again in (False, True)]
    assert [job.backends for job in jobs] == [need.backends, ("engine-cuda", "ort-cuda")]
    assert [job.layers for job in jobs] == [True, False]
    assert jobs[0].layers_of == ("engine-cuda",)
    wanted = {"model": "lenet5-digits", "need": "lenet", "wanted": (2.5,)}
    goals = Goals(
        title="t",
        device="cuda",
        needs=(need,),
        goals=tuple(Goal(against=against, **wanted) for against in ("ort-cuda", rival)),  # type: ignore[arg-type]
    )
    ours = [timed("engine-cuda", 10), timed("ort-cuda", 30)]
    runs = saved(tmp_path / "a", *ours, timed(rival, 40)), saved(tmp_path / "b", *ours)
    taken = needs.given(runs[:1], runs[1:])
    beside, once = judged.held(goals, taken)
    assert (beside.outcome, once.outcome) == (REACHED, REACHED)
    assert beside.figures[1].value == pytest.approx(3, rel=0.1)
    assert once.figures[1].why == judged.ONCE
    text = page.write(goals, taken, tmp_path / "it.md")[0].read_text("utf-8")
    assert text.count(judged.ONCE) == 1
    # It is not said of what the first run has not either.
    taken = needs.given([saved(tmp_path / "c", *ours)], runs[1:])
    assert judged.ONCE not in page.write(goals, taken, tmp_path / "neither.md")[0].read_text("utf-8")
    taken = needs.given(runs[:1], runs[1:])
    # Where the second run lacks what it was to have, nothing of the kind is said.
    plain = msgspec.structs.replace(goals, needs=(msgspec.structs.replace(need, once=()),))
    assert judged.ONCE not in page.write(plain, taken, tmp_path / "other.md")[0].read_text("utf-8")


@pytest.mark.parametrize(("size", "told"), [(3.21e-6, "(conv2) |"), (3.21e-4, "(conv2), beyond its bound |")])
def test_a_tuned_reference_without_layers_has_the_error_it_was_tuned_with(
    size: float, told: str, tmp_path: Path
) -> None:
    one = Tried(variant=Configuration(), layer="conv2", layer_error=size)
    known = tuned_facts(Choice(default=Configuration(), tried=(one,)), Configuration())
    without = {
        "layers": (),
        "facts": known | {"measured_as": "ort-cuda-tuned-strict: the same configuration"},
    }
    cases = [timed("engine-cuda", 10), msgspec.structs.replace(timed("ort-cuda-tuned", 20), **without)]
    goals = Goals(title="t", device="cuda", needs=(), goals=())
    taken = needs.given([saved(tmp_path / "a", *cases)])
    text = re.sub(r"\\(.)", r"\1", page.write(goals, taken, tmp_path / "it.md")[0].read_text("utf-8"))
    assert told in text
    assert "In 1 of 1 cases the tuned reference's fastest configuration is within the bound" in text
    strange = msgspec.structs.replace(cases[1], facts={"tuned_worst_layer": "conv2, far off"})
    taken = needs.given([saved(tmp_path / "b", cases[0], strange)])
    text = page.write(goals, taken, tmp_path / "b.md")[0].read_text("utf-8")
    assert "| conv2, far off |" in text
    assert "measured once" not in text


def test_the_reason_and_the_floor_stand_without_times_of_layers(tmp_path: Path) -> None:
    ours = timed("engine-cuda", 10)
    untimed = tuple(msgspec.structs.replace(layer, time_ns=None, clock="") for layer in ours.layers)
    run = saved(tmp_path / "a", msgspec.structs.replace(ours, layers=untimed), timed("ort-cuda-tuned", 30))
    found = one(speedup(60.0), run, limits=(limits(1e13),))
    assert re.search(
        r"with each of these steps at its limit it would be 27\.\d× \(1\.10 µs a pass\)", found.why
    )
    assert found.why.endswith("its steps were not timed one by one")


def test_nothing_can_be_measured_without_a_gpu_and_every_goal_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = presets.load("speed-h200")
    monkeypatch.setattr(type(backends.get("engine-cuda")), "unavailable", lambda self: "there is no GPU")
    taken = needs.take(goals, tmp_path / "own", Limits(), times=2)
    assert set(taken.why.values()) == {needs.NEEDS_GPU}
    assert all(found.outcome == UNKNOWN for found in judged.held(goals, taken))
    # Where a run came from a machine that has one, others are not missing for want of it.
    brought = goals.needs[0].name
    saved(tmp_path / "own" / brought, timed("engine-cuda", 10))
    came = needs.take(goals, tmp_path / "own", Limits(), measures=False, times=2)
    assert set(came.why.values()) == {needs.NOT_MEASURED}
    assert set(came.why) == {need.name for need in goals.needs} - {brought}
    made = page.page(goals, came, report_form.form_of(tmp_path / "r.md"))
    assert filled.context(made, came)["missing"] == [], "the goals say it"
    monkeypatch.chdir(tmp_path)
    assert main.main(["report", "goals", "speed-h200"]) == 0
    assert "speed-h200 needs a GPU: nothing was measured" in capsys.readouterr().err


SMALL = Goals(
    title="Small goals",
    device="cpu",
    needs=(
        Need(
            name="lenet",
            device="cpu",
            models=("lenet5-digits",),
            backends=("engine-cpu", "ort-cpu"),
            batches=(1, 512),
        ),
    ),
    goals=tuple(
        Goal(
            model="lenet5-digits",
            need="lenet",
            backend="engine-cpu",
            against="ort-cpu",
            batches=(1,),
            wanted=(wanted,),
        )
        for wanted in (1e-6, 1e6)
    ),
)


@pytest.mark.sampled(6, "longest")
def test_the_command_measures_twice_and_goes_on_with_what_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For real, on this CPU: two runs of two cases; a line that is lost is measured again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(presets, "load", lambda name: SMALL)
    words = ["report", "goals", "small", "--budget", "0.05", "--largest", "1", "--images", "8"]
    assert main.main(words) == 0
    out = tmp_path / "runs" / "goals-small" / "report.html"
    assert Path(capsys.readouterr().out.strip()) == out.relative_to(tmp_path)
    runs = [out.parent / name for name in ("lenet", "lenet-again")]
    assert [len(COMPARISON.open(path).measurements()) for path in runs] == [2, 2]
    layers = [any(made.layers for made in COMPARISON.open(path).measurements()) for path in runs]
    assert layers == [True, True], "ours are checked in both runs"
    timed = [
        {made.case.backend for made in COMPARISON.open(path).measurements() for x in made.layers if x.time_ns}
        for path in runs
    ]
    assert timed == [{"engine-cpu"}, set()], "of the second run times of passes are wanted, and no more"
    assert (out.parent / floors.LIMITS_FILE).is_file()
    text = out.read_text("utf-8")
    assert "of 2 goals" in text
    assert all(needs.NOT_MEASURED not in line for line in text.splitlines() if "lenet5-digits</td>" in line)
    results = runs[1] / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:-1]))
    assert "Figures</h2>" in text
    assert main.main([*words, "--no-measure", "--no-charts"]) == 0
    assert "Figures</h2>" not in out.read_text("utf-8")
    assert len(COMPARISON.open(runs[1]).measurements()) == 1
    assert main.main(words) == 0
    assert results.read_bytes().splitlines(keepends=True)[:1] == lines[:1]
    assert len(COMPARISON.open(runs[1]).measurements()) == 2
    # Another budget is another measurement, and no part of this one.
    assert main.main([*words[:4], "0.06", *words[5:]]) == 1
    assert "was started with budget_s = 0.05" in capsys.readouterr().err


def test_goals_that_nobody_has_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="speed-h200"):
        presets.load("speed-h20")
    assert Taken().runs == ({}, {})


def test_a_chart_is_of_one_precision_and_tells_of_ours_first(tmp_path: Path) -> None:
    precisions = ("fp32", "fp32-tc", "fp16")
    made = [
        timed(backend, us, precision=precision, batch=batch)
        for precision in precisions
        for batch in (1, 8)
        for backend, us in (("engine-cuda", 10.0), ("ort-cuda", 30.0), ("ort-cuda-tuned", 20.0))
        if precision != "fp32-tc" or backend == "engine-cuda"
    ]
    taken = needs.given([saved(tmp_path / "run", *made)])
    shown = {chart.title: chart for chart in page.charts(taken).values()}
    assert [title for title in shown if title.startswith("lenet5-digits: time of")] == [
        f"lenet5-digits: time of a forward pass, {precision}" for precision in ("fp32", "fp16")
    ]
    for title, chart in shown.items():
        lines = [series.label for panel in chart.panels for series in panel.series]
        assert any("fp16" in line for line in lines) == title.endswith("fp16")
        assert any("fp32-tc" in line for line in lines) == title.endswith("fp32")
        assert chart.finding.startswith("engine-cuda")
        assert "not measured yet" not in chart.finding


def test_a_chart_has_all_batch_sizes_of_a_device_whatever_run_they_are_of(tmp_path: Path) -> None:
    def ran(name: str, gpu: str, ours: Mapping[int, float]) -> Path:
        made = [
            timed(backend, us * by, batch=batch)
            for batch, us in ours.items()
            for backend, by in (("engine-cuda", 1), ("ort-cuda", 3))
        ]
        header = record([one.case for one in made])
        environment = msgspec.structs.replace(header.environment, gpu=gpu)
        folder = COMPARISON.create(tmp_path / name, msgspec.structs.replace(header, environment=environment))
        for each in made:
            folder.append(each)
        folder.close()
        return tmp_path / name

    def points(*runs: Path) -> dict[str, list[tuple[float, float]]]:
        taken = needs.given(runs)
        told = [chart.title for name, chart in page.charts(taken).items() if "op-time" in name]
        assert all((", on " in title) == (len(told) > 1) for title in told)
        return {
            name: [(p.x, p.y) for p in next(s for s in chart.panels[0].series if "engine" in s.label).points]
            for name, chart in page.charts(taken).items()
            if "op-time" in name
        }

    few, more = ran("few", "Example GPU", {1: 10, 8: 20}), ran("more", "Example GPU", {8: 25, 64: 90})
    with pytest.MonkeyPatch.context() as patched:  # of many models those alone that a picture tells more of
        patched.setattr(page, "MANY_MODELS", 0)
        assert not points(few)
        assert len(points(few, more)) == 1
    (of_one,) = points(few, more).values()
    assert [x for x, _ in of_one] == [1, 8, 64]
    assert of_one[1][1] == pytest.approx(25e-6, rel=0.05), "the last run that is named and has it"
    other = ran("other", "NVIDIA Other 80GB", {1: 7})
    found = points(few, more, other)
    assert list(found) == ["example-gpu-lenet5-digits-op-time-fp32", "other-80gb-lenet5-digits-op-time-fp32"]
    assert [len(line) for line in found.values()] == [3, 1]


def test_a_floor_counts_the_fewest_bytes_that_a_precision_allows() -> None:
    """Whatever the rung that was chosen reads; a record that does not tell is held to what it has."""
    known = limits(1e12)
    layer = Layer(nodes=("fc",), op_type="Gemm", output="fc", nbytes=4 * 10**6, time_ns=5_000.0)
    told = msgspec.structs.replace(layer, least_nbytes=2 * 10**6)
    at = known.bytes_per_s / 1e9
    for one, nbytes in ((layer, 4 * 10**6), (told, 2 * 10**6)):
        made = msgspec.structs.replace(timed("engine-cuda", 5, precision="tf32"), layers=(one,))
        assert floors.floor_ns(made, known) == pytest.approx(nbytes / at)
        step = floors.longest(made, known)
        assert step is not None
        assert step.of_floor == pytest.approx(nbytes / at / 5_000)


def test_a_step_that_was_timed_alone_finds_its_bytes_in_the_cache() -> None:
    """Of a pass whose bytes have no room there together, the floor is the memory's."""
    known = msgspec.structs.replace(limits(1e12), cache_nbytes=5 * 10**6, cache_bytes_per_s=8e12)
    two = tuple(
        Layer(nodes=(name,), op_type="Gemm", output=name, nbytes=4 * 10**6, time_ns=5_000.0, clock="events")
        for name in "ab"
    )
    made = msgspec.structs.replace(timed("engine-cuda", 10), layers=two)
    assert floors.floor_ns(made, known) == pytest.approx(8 * 10**6 / known.bytes_per_s * 1e9)
    step = floors.longest(made, known)
    assert step is not None
    assert step.bound == "the cache"
    assert step.of_floor == pytest.approx(4 * 10**6 / 8e12 * 1e9 / 5_000)
