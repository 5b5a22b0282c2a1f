"""The engine's choice of rungs: judged, timed, kept, found again, overridden; on the CPU's real ladder and
with rungs that misbehave."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import onnx
import pytest

from bench.measure import timing
from bench.measure.answers.samples import repeated
from bench.measure.net_runner import NetRunner
from bench.measure.tuned import rungs as tune_rungs
from bench.measure.tuned.rungs import Untimed, wanted
from bench.measure.tuned.sweep import DeviceLost
from bench.results.messages import CaseStarted, Measured, Progress, Start
from bench.results.records import Job
from engine.backend import Options
from engine.backends import get
from engine.machine import driver as cuda_driver
from engine.machine.driver import CudaDevice
from engine.planning import choices
from engine.planning.planner import plan
from engine.rung_session import Stray
from kernels import registry
from kernels.cache import Store
from kernels.errors import KernelError, OutOfMemoryError
from kernels.ops.conv import Conv
from kernels.ops.transpose import Transpose
from tests.engine.backends.nets import small_net

pytestmark = pytest.mark.slow

QUICK = functools.partial(timing.Rules, warmup_s=0.002, rewarm_s=0.001, min_s=0.003, budget_s=0.01)
CONV = Conv(n=2, c=4, h=9, w=9, m=6, kh=3, kw=3, out_h=7, out_w=7, bias=True)


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("bench.measure.net_runner.Rules", lambda **_: QUICK())
    monkeypatch.setattr(tune_rungs, "LOOKS", replace(tune_rungs.LOOKS, first_s=0.001, final=QUICK()))


def item(params=CONV):
    return Untimed(params, "conv", choices.candidates("cpu", params, "fp32", True))


# ------------------------------------------------------------------------------------------ the real ladder


def test_the_cpu_ladder_is_timed_and_the_choice_found_again_by_the_planner():
    graph = small_net()
    options = Options(threads=1)
    assert {step.chosen for step in plan(graph, 3, "cpu", options=options).steps} == {"ladder"}
    missing = wanted(graph, 3, "cpu", "fp32", options)
    several = {step.op for step in plan(graph, 3, "cpu", options=options).steps if _is_a_choice(step.params)}
    assert {w.params.op for w in missing} == several >= {"conv"}
    for one in missing:
        choice = tune_rungs.choose(one, "cpu", "fp32", options, lambda *_: None)
        assert choice.done
        assert choice.best in [rung.name for rung in one.rungs]
        assert any(tried.first_ns for tried in choice.tried)
        assert not any("error" in tried.refused for tried in choice.tried), "all of ours are right"
    assert not wanted(graph, 3, "cpu", "fp32", options)
    steps = plan(graph, 3, "cpu", options=options).steps
    timed = {step.params.op for step in steps if step.chosen == "timed"}
    assert timed == {w.params.op for w in missing}
    assert wanted(graph, 4, "cpu", "fp32", options), "another batch size is another entry"
    assert wanted(graph, 3, "cpu", "fp32", Options(threads=2)), "and so is another number of threads"


def _is_a_choice(params):
    return len(choices.candidates("cpu", params, "fp32", True)) > 1


def files():
    return sorted((choices.STORE.folder() / choices.CASES).glob("*.json"))


def kept(rung, done=True, threads=1):
    one = item()
    choice = choices.Choice(default=one.rungs[0].name, best=rung, done=done)
    choices.write("cpu", CONV, "fp32", one.rungs, threads, choice)
    return one


def test_what_is_kept_holds_for_these_sources_alone(monkeypatch):
    one = kept("shift_and_add")
    assert choices.chosen("cpu", CONV, "fp32", one.rungs, 1) == "shift_and_add"
    changed = (replace(one.rungs[0], source=one.rungs[0].source + "\n# faster now\n"), *one.rungs[1:])
    assert choices.chosen("cpu", CONV, "fp32", changed, 1) is None, "a changed kernel is timed anew"
    assert choices.chosen("cpu", CONV, "fp32", one.rungs[1:], 1) is None, "and so is another ladder"
    kept("shift_and_add", done=False)
    assert choices.chosen("cpu", CONV, "fp32", one.rungs, 1) is None, "nor is one that did not end taken"
    kept("of_a_rung_that_was_renamed")
    assert choices.chosen("cpu", CONV, "fp32", one.rungs, 1) is None


def test_a_choice_is_overridden_by_name_and_left_off():
    graph = small_net()
    options = Options(threads=1)
    params = next(step.params for step in plan(graph, 2).steps if "conv1" in step.nodes)
    rungs = choices.candidates("cpu", params, "fp32", True)
    slowest = rungs[-1].name
    choices.write("cpu", params, "fp32", rungs, 1, choices.Choice(default="", best=slowest, done=True))

    def chosen(options):
        step = next(s for s in plan(graph, 2, options=options).steps if "conv1" in s.nodes)
        return step.rung, step.chosen

    assert chosen(options) == (slowest, "timed")
    assert chosen(Options(threads=1, tuned=False)) == (rungs[0].name, "ladder")
    named = Options(threads=1, rungs={"conv1": rungs[1].name})
    assert chosen(named) == (rungs[1].name, "named")
    assert params not in [w.params for w in wanted(graph, 2, "cpu", "fp32", named)]


def test_what_stands_beside_the_ladder_may_be_timed_and_a_library_may_not():
    conv = Conv(n=2, c=4, h=9, w=9, m=6, kh=3, kw=3, out_h=7, out_w=7)
    rungs = choices.candidates("cuda", conv, "fp32", True, (9, 0))
    assert rungs[0] == registry.default("cuda", conv, (9, 0)), "untimed, the ladder's own is taken"
    assert any(rung.side for rung in rungs)
    assert not any(rung.yardstick for rung in rungs)
    assert len({rung.name for rung in rungs}) == len(rungs)


def test_on_a_gpu_the_entry_is_of_that_gpu(monkeypatch):
    conv = Conv(n=2, c=4, h=9, w=9, m=6, kh=3, kw=3, out_h=7, out_w=7)
    monkeypatch.setattr(cuda_driver, "device", lambda: None)
    rungs = choices.candidates("cuda", conv, "fp32", True)
    assert choices.of_step("cuda", conv, "fp32") is None
    monkeypatch.setattr(cuda_driver, "device", lambda: CudaDevice("H200", (9, 0)))
    choices.write(
        "cuda", conv, "fp32", rungs, None, choices.Choice(default="", best=rungs[-1].name, done=True)
    )
    assert choices.chosen("cuda", conv, "fp32", rungs) == rungs[-1].name
    (file,) = files()
    key = json.loads(file.read_bytes())["key"]
    assert (key["device"], key["compute_capability"], key["precision"]) == ("H200", "9.0", "fp32")
    monkeypatch.setattr(cuda_driver, "device", lambda: CudaDevice("A100", (8, 0)))
    assert choices.chosen("cuda", conv, "fp32", rungs) is None


# ------------------------------------------------------------------------------------- rungs that misbehave


class Fake:
    """A session whose answer, time and strays are given; right where `change` leaves the answer alone.
    at_last: of the strays that only a look at everything finds."""

    def __init__(self, expected, time_ns, change, strays=(), at_last=()):
        self.expected, self.time_ns, self.change, self._strays = expected, time_ns, change, strays
        self.closed, self._at_last, self.poisoned, self.looks = False, at_last, 0, []

    def poison(self, byte):
        self.poisoned += 1

    def run(self):
        pass

    synchronize = run

    def output(self, rows=None):
        whole = self.change(self.expected.astype(np.float32))
        return whole if rows is None else whole[rows]

    def strays(self, whole=True):
        self.looks.append("whole" if whole else "some")
        return (*self._strays, *(self._at_last if whole else ()))

    def time_runs(self, count, cold=False):
        return count * self.time_ns

    def close(self):
        self.closed = True


def right(array):
    return array


def tuner(deeds, room=99, params=CONV, progress=lambda *_: None, **how):
    """Rungs named in `deeds`, best guess first: name → (ns, change, strays) or what preparing it raises."""
    template = item().rungs[0]
    rungs = tuple(replace(template, name=name, number=90 - i) for i, name in enumerate(deeds))
    sample = repeated(params)
    expected = sample.whole(sample.expected)
    sessions = {}

    def prepare(rung, params, inputs, threads):
        deed = deeds[rung.name]
        if sum(not session.closed for session in sessions.values()) >= room:
            raise OutOfMemoryError("no memory is left on the device")
        if isinstance(deed, Exception):
            raise deed
        sessions[rung.name] = Fake(expected, *deed)
        return sessions[rung.name]

    return Tuner(Untimed(params, "conv", rungs), prepare, progress, **how), sessions


@dataclass
class Tuner:
    item: Untimed
    prepare: Callable[..., Fake]
    progress: Callable[[str, float | None], None]
    lost: Callable[[], bool] = lambda: False

    def run(self):
        how = Options(threads=1)
        return tune_rungs.choose(self.item, "cpu", "fp32", how, self.progress, self.lost, self.prepare)


def test_the_fastest_right_one_is_taken_and_every_session_closed():
    stray = (Stray("output", 4096, 4, 1024),)
    made, sessions = tuner(
        {
            "ladder": (220_000, right),
            "wrong": (1_000, lambda array: array * 1.01),
            "nan": (1_000, lambda array: array * np.nan),
            "stray": (1_000, right, stray),
            "broken": KernelError("it does not compile"),
            "fast": (200_000, right),
            "slow": (900_000, right),
        }
    )
    choice = made.run()
    assert (choice.default, choice.best) == ("ladder", "fast")
    assert "relative L2 error" in choice.of("wrong").refused
    assert "NaN" in choice.of("nan").refused
    assert "behind the end of the output" in choice.of("stray").refused
    assert choice.of("broken").refused == "it does not compile"
    assert (choice.of("fast").time_ns, choice.of("ladder").time_ns) == (200_000, 220_000)
    assert choice.of("slow").time_ns is None
    assert all(session.closed for session in sessions.values())


def test_memory_for_one_session_alone_is_enough():
    deeds = {"ladder": (300_000, right), "fast": (200_000, right), "mid": (250_000, right)}
    made, sessions = tuner(deeds, room=1)
    choice = made.run()
    assert choice.best == "fast"
    assert not any(tried.refused for tried in choice.tried)
    assert all(session.closed for session in sessions.values())
    made, _ = tuner(deeds, room=0)
    assert "no memory is left" in made.run().of("ladder").refused


def test_what_is_hardly_faster_is_not_taken():
    made, _ = tuner({"ladder": (200_000, right), "noise": (198_000, right)})
    assert made.run().best == "ladder"
    made, _ = tuner({"ladder": (200_000, right), "real": (190_000, right)})
    assert made.run().best == "real"


def test_a_ladder_whose_highest_is_wrong_falls_to_the_next():
    made, _ = tuner(
        {"ladder": (100_000, lambda array: array + 1), "next": (200_000, right), "x": (199_000, right)}
    )
    choice = made.run()
    assert choice.best == "next", "within 2 % of the best, and above it"
    made, _ = tuner({"a": KernelError("no"), "b": KernelError("no")})
    assert made.run().best is None, "the ladder's own is taken, and the comparison tells what is wrong"


def test_far_slower_rungs_below_are_not_tried():
    slow = {f"slow{i}": (1_000_000 + i, right) for i in range(5)}
    made, sessions = tuner({"ladder": (100_000, right), **slow})
    choice = made.run()
    assert choice.best == "ladder"
    assert list(sessions) == ["ladder", "slow0", "slow1", "slow2"]
    assert "far slower" in choice.of("slow4").refused


def test_a_rung_that_takes_the_process_with_it_is_passed_over():
    deeds = {"ladder": (300_000, right), "fatal": (1_000, right)}
    made, _ = tuner(deeds)
    choice = made.run()
    again, sessions = tuner(deeds)
    rungs = made.item.rungs
    choices.write(
        "cpu", CONV, "fp32", rungs, 1, msgspec.structs.replace(choice, done=False, trying="fatal", attempts=2)
    )
    choice = again.run()
    assert choice.best == "ladder"
    assert "process ended" in choice.of("fatal").refused
    assert "fatal" not in sessions


def test_a_lost_device_is_told_with_the_rung_that_broke_it():
    made, _ = tuner({"ladder": (300_000, right), "fatal": KernelError("illegal access")}, lost=lambda: True)
    with pytest.raises(DeviceLost, match="conv's kernels: fatal broke the device's context: illegal access"):
        made.run()
    assert "illegal access" in choices.read("cpu", CONV, "fp32", made.item.rungs, 1).of("fatal").refused
    again, sessions = tuner({"ladder": (300_000, right), "fatal": (1_000, right)})
    assert again.run().best == "ladder"
    assert list(sessions) == ["ladder"], "it is not tried twice"


BESIDE = (Stray("input 0", 8, 4, 1024),)


def test_the_rung_that_is_taken_is_looked_at_whole_and_no_other():
    made, sessions = tuner({"ladder": (200_000, right), "fast": (100_000, right), "near": (110_000, right)})
    assert made.run().best == "fast"
    assert sessions["fast"].looks == ["some", "whole"]
    assert sessions["near"].looks == sessions["ladder"].looks == ["some"]


def test_where_a_look_at_everything_refuses_the_best_the_next_best_is_taken_and_looked_at_too():
    deeds = {"ladder": (200_000, right), "a": (100_000, right, (), BESIDE), "b": (105_000, right, (), BESIDE)}
    made, sessions = tuner(deeds)
    choice = made.run()
    assert choice.best == "ladder"
    assert "only to be read" in choice.of("a").refused
    assert "only to be read" in choice.of("b").refused
    assert all(session.closed for session in sessions.values())
    made, _ = tuner({"ladder": (200_000, right, (), BESIDE), "next": (300_000, right, (), BESIDE)})
    choice = made.run()
    assert choice.best is None, "none is right"
    assert all(tried.refused for tried in choice.tried)


def test_what_a_wrong_one_had_put_out_is_tried_again():
    deeds = {
        "wrong": (10_000, right, (), BESIDE),
        "slow": (900_000, right),
        "slower": (950_000, right),
        "slowest": (5_000_000, right),
        "untried": (300_000, right),
    }
    made, sessions = tuner(deeds)
    choice = made.run()
    assert choice.best == "untried", "three in a row were far slower than a rung that was wrong"
    assert sessions["untried"].looks == ["some", "whole"]
    assert "far slower" in choice.of("slowest").refused
    assert not choice.of("slow").refused
    assert choice.of("slow").first_ns == 900_000


def test_what_is_far_slower_is_let_go_after_its_first_pass_unjudged():
    deeds = {"ladder": (2_000_000, right), "slow": (9_000_000, lambda array: array + 1)}
    made, sessions = tuner(deeds)
    choice = made.run()
    assert sessions["slow"].poisoned == 0
    assert "far slower than the best, and not judged" in choice.of("slow").refused
    assert choice.of("slow").first_ns == 9_000_000


def test_those_that_were_fast_at_the_nearest_batch_size_come_first():
    deeds = {
        "ladder": (180_000, right),
        "bad": (4_000_000, right),
        "wrong": (1_000, lambda array: array + 1),
        "good": (130_000, right),
        "worse": (5_000_000, right),
        "best": (100_000, right),
    }
    first, sessions = tuner(deeds)
    assert first.run().best == "best"
    assert list(sessions) == list(deeds), "nothing is known: the ladder's order"
    far, _ = tuner({**deeds, "bad": (90_000, right)}, params=replace(CONV, n=9))
    far.run()
    said = []
    near, sessions = tuner(deeds, params=replace(CONV, n=4), progress=lambda text, _: said.append(text))
    choice = near.run()
    assert choice.best == "best"
    # What is not known to be slow from there is tried before what is, and that not at all.
    assert list(sessions) == ["best", "good", "ladder", "wrong"]
    assert choice.of("bad").refused == choice.of("worse").refused
    assert choice.of("worse").refused.startswith("not tried")
    assert said[0] == "trying conv's kernels: best (1 of 6)"
    assert said[3] == "trying conv's kernels: wrong (4 of 6)"
    ladder_is_slow = {**deeds, "ladder": (50_000_000, right)}
    replaced, sessions = tuner(ladder_is_slow, params=replace(CONV, n=5))
    replaced.run()
    replaced, sessions = tuner(ladder_is_slow, params=replace(CONV, n=6))
    replaced.run()
    assert "ladder" in sessions, "its guess is for this batch size, and may be right here"


def test_what_was_slow_at_a_batch_size_near_is_tried_again_before_long():
    deeds = {"ladder": (180_000, right), "slow": (540_000, right), "best": (100_000, right)}
    made, _ = tuner(deeds)
    made.run()
    tried = []
    for n in (2 * CONV.n, 4 * CONV.n, 8 * CONV.n, 16 * CONV.n):
        made, sessions = tuner(deeds, params=replace(CONV, n=n))
        made.run()
        tried.append("slow" in sessions)
    # 5.4 times as slow as the best, then a little less each time that it is believed: 3.2, 1.9, 1.2.
    assert tried == [False, False, False, True]


def test_what_was_slow_at_a_batch_size_near_is_tried_where_nothing_else_is_right():
    made, _ = tuner({"ladder": (100_000, right), "slow": (540_000, right)})
    made.run()
    wrong = lambda array: array + 1  # noqa: E731
    made, sessions = tuner({"ladder": (100_000, wrong), "slow": (540_000, right)}, params=replace(CONV, n=4))
    assert made.run().best == "slow"
    assert list(sessions) == ["ladder", "slow"]


def test_a_hint_of_another_shape_precision_machine_or_source_is_none():
    made, _ = tuner({"ladder": (500_000, right), "fast": (100_000, right)})
    made.run()
    rungs = made.item.rungs

    def hint(params, precision="fp32", rungs=rungs, threads=1):
        return choices.nearby("cpu", params, precision, rungs, threads)

    assert hint(CONV) == hint(replace(CONV, n=8)) == hint(replace(CONV, n=1)) == {"ladder": 5.0, "fast": 1.0}
    assert not hint(replace(CONV, n=9)), "more than four times as many images are no neighbours"
    assert not hint(replace(CONV, m=12))
    assert not hint(CONV, precision="fp16")
    assert not hint(CONV, threads=2)
    assert not hint(Transpose((2, 3), (1, 0)))
    changed = (replace(rungs[0], source=rungs[0].source + "# faster now\n"), rungs[1])
    assert hint(CONV, rungs=changed) == {"fast": 1.0}
    for n in range(3, 60):
        choices.remember("cpu", replace(CONV, n=n), "fp32", rungs, 1, {"fast": float(n), "other": 1.0})
    assert hint(replace(CONV, n=58)) == {"fast": 58.0}
    case = choices.of_step("cpu", replace(CONV, n=1), "fp32", 1)
    assert len(choices.PACES.read(case, {})) == choices.MOST_BATCHES
    choices.PACES.write(case, {}, {"many": {}, "0": {}})
    assert not hint(CONV)


def test_its_name_and_all_that_is_known_is_on_the_disk_before_a_rung_runs(monkeypatch):
    made, _ = tuner({"ladder": (300_000, right), "wrong": (1, lambda a: a + 1), "c": (90_000, right)})
    prepare, seen = made.prepare, []

    def on_disk():
        kept = choices.read("cpu", CONV, "fp32", made.item.rungs, 1)
        return kept.trying, [tried.variant for tried in kept.tried]

    def watched(rung, *rest):
        seen.append(on_disk())
        return prepare(rung, *rest)

    made.prepare = watched
    strays = Fake.strays
    monkeypatch.setattr(
        Fake, "strays", lambda self, whole=True: (seen.append(on_disk()) if whole else None, strays(self))[1]
    )
    made.run()
    assert seen == [("ladder", []), ("wrong", ["ladder"]), ("c", ["ladder", "wrong"]),
                    ("c", ["ladder", "wrong", "c"])]  # fmt: skip
    assert on_disk() == (None, ["ladder", "wrong", "c"])


def test_one_that_ends_the_process_where_it_is_looked_at_whole_is_passed_over(monkeypatch):
    deeds = {"ladder": (300_000, right), "fatal": (1_000, right)}

    def fatal(self, whole=True):
        if whole and self.time_ns == 1_000:
            raise SystemExit("killed")
        return ()

    monkeypatch.setattr(Fake, "strays", fatal)
    for _ in range(2):
        made, _ = tuner(deeds)
        with pytest.raises(SystemExit):
            made.run()
    made, sessions = tuner(deeds)
    choice = made.run()
    assert choice.best == "ladder"
    assert "process ended" in choice.of("fatal").refused
    assert "fatal" not in sessions


def test_what_is_known_is_kept_where_the_user_stops_it():
    def progress(text, _):
        if "best (" in text:
            raise timing.Stopped

    made, sessions = tuner({"ladder": (300_000, right), "best": (1_000, right)}, progress=progress)
    with pytest.raises(timing.Stopped):
        made.run()
    kept = choices.read("cpu", CONV, "fp32", made.item.rungs, 1)
    assert (kept.trying, kept.done, [tried.variant for tried in kept.tried]) == (None, False, ["ladder"])
    assert sessions["ladder"].closed


# --------------------------------------------------------------------------------------- in a comparison


def go(job):
    messages = []
    NetRunner(Start(job=job), messages.append, lambda: False).run()
    found = {m.measurement.case.backend: m.measurement for m in messages if isinstance(m, Measured)}
    return found, messages


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "small.onnx"
    onnx.save(small_net().whole_proto(), path)
    return Job(
        models=(str(path),),
        backends=("engine-cpu",),
        batches=(2,),
        dataset="random",
        threads=1,
        budget_s=0.02,
    )


@pytest.mark.sampled(4, "long")
def test_a_comparison_times_first_what_it_does_not_know(job, monkeypatch):
    monkeypatch.setattr(
        "bench.measure.reporter.QUIET_S", -1.0
    )  # all that is said is heard, however quick the steps
    found, messages = go(job)
    assert not [m for m in messages if isinstance(m, CaseStarted) and m.stage == "tune"], (
        "not on a CPU untold"
    )
    assert {layer.chosen for layer in found["engine-cpu"].layers if layer.rung} == {"ladder"}
    told = msgspec.structs.replace(job, tune="all")
    found, messages = go(told)
    assert [m.stage for m in messages if isinstance(m, CaseStarted)][:3] == ["load", "tune", "prepare"]
    assert any(m.text.startswith("a kernel for ") for m in messages if isinstance(m, Progress))
    one = found["engine-cpu"]
    assert one.disposition == "ok"
    assert "timed" in one.facts["kernels"]
    assert "timed" in {layer.chosen for layer in one.layers}
    assert all(layer.isolated is not None and layer.isolated.ok for layer in one.layers if layer.rung)
    found, messages = go(told)
    assert not [m for m in messages if isinstance(m, CaseStarted) and m.stage == "tune"], "once and kept"
    found, _ = go(msgspec.structs.replace(job, tune="none"))
    assert {layer.chosen for layer in found["engine-cpu"].layers if layer.rung} == {"ladder"}


def test_a_cache_that_cannot_be_written_costs_the_choice_not_the_case(job, monkeypatch):
    def full(*_):
        raise KernelError("what was tuned cannot be kept: no space left on device")

    monkeypatch.setattr(Store, "write", full)
    found, messages = go(msgspec.structs.replace(job, tune="all"))
    assert found["engine-cpu"].disposition == "ok"
    assert any(
        "keeps the ladder's kernel: what was tuned" in m.text for m in messages if isinstance(m, Progress)
    )


@pytest.mark.sampled(4, "long")
def test_the_plan_that_is_shown_says_what_chose_each_kernel(job, capsys):
    import main

    go(msgspec.structs.replace(job, tune="all", threads=None))
    capsys.readouterr()
    assert main.main(["models", "show", job.models[0], "--plan", "--batch", "2"]) == 0
    shown = capsys.readouterr().out
    assert "timed 20" in shown
    alone = any(not _is_a_choice(step.params) for step in plan(small_net(), 2, "cpu").steps)
    assert ("by the ladder" in shown) == alone


@pytest.mark.gpu
@pytest.mark.real_gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # CuPy may be behind NumPy's newest
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_on_a_gpu_it_is_done_untold(job, precision):
    if reason := get("engine-cuda").unavailable():
        pytest.skip(reason)
    on_gpu = msgspec.structs.replace(job, backends=("engine-cuda",), precisions=(precision,), threads=None)
    found, messages = go(on_gpu)
    one = found["engine-cuda"]
    assert (one.disposition, one.reason) == ("ok", "")
    assert "timed" in one.facts["kernels"]
    assert "timed" in {layer.chosen for layer in one.layers}
    # Tuning may be begun more than once: by layouts, too.
    stages = dict.fromkeys(m.stage for m in messages if isinstance(m, CaseStarted))
    assert [*stages][:3] == ["load", "tune", "prepare"]
    entries = [json.loads(file.read_bytes())["value"].get("rungs", []) for file in files()]
    tried = [rung for kept in entries for entry in kept for rung in entry["value"]["tried"]]
    assert tried
    wrong = {rung["variant"]: rung["refused"] for rung in tried if "error" in rung.get("refused", "")}
    assert not wrong, "all of ours are right"
    _, messages = go(on_gpu)
    assert not [m for m in messages if isinstance(m, CaseStarted) and m.stage == "tune"]
