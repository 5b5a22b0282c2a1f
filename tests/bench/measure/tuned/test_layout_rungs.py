"""Rungs that were the fastest alone and are not in the layouts of a plan: found there, kept, followed."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from bench.measure.tuned import layout_rungs, sweep, whole_passes
from bench.measure.tuned import layouts as tuned
from bench.measure.tuned.sweep import DeviceLost
from bench.questions import model_facts
from engine import rung_devices
from engine.backend import OpTime
from engine.graph.graph import Graph
from engine.graph.plan import Plan
from engine.options import Options
from engine.planning import choices, layouts, planner
from kernels import registry
from kernels.errors import KernelError
from kernels.layouts import PLAIN, ROUNDED
from kernels.ops.conv import Conv
from tests.bench.measure.tuned.test_layouts import on_a_gpu
from tests.engine.planning.test_layouts import network, products

pytestmark = pytest.mark.slow

HOW = Options(one_kernel=False)
BATCH = 3
# Nanoseconds alone: where each lays its input out first, the scaled one is the fastest.
ALONE = {"wgmma_scaled": 10e3, "wgmma_tf32": 11e3, "nhwc_tf32": 12e3, "slices_tf32": 30e3}
SCALED = {f"conv{i}": "wgmma_scaled" for i in (1, 2, 3)}
# And within the plan, where what the others lay out lies so.
LAID = {("conv3", "wgmma_scaled"): 13e3, ("conv3", "wgmma_tf32"): 9e3, ("conv3", "nhwc_tf32"): 8e3}


class Backend:
    """Whose sessions run the plans that the engine makes. better: nanoseconds of a step by its name and rung
    where that is not 10 µs; gained: whether a pass takes what its steps take, else always the same; broken,
    wrong: rungs of convolutions with which a plan does not compile, or answers wrongly; whole: what steps
    with some rungs take more or less in a pass."""

    def __init__(
        self,
        better: Mapping[tuple[str, str], float] = LAID,
        gained: bool = True,
        broken: str = "",
        wrong: str = "",
        whole: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self.better, self.gained, self.broken, self.wrong = better, gained, broken, wrong
        self.whole = whole or {}
        self.plans: list[Plan] = []
        self.open = 0

    def prepare(self, graph: Graph, batch: int, precision: str, how: Options) -> Any:
        made = planner.plan(graph, batch, "cuda", precision, how)
        rungs = convolutions(made).values()
        if self.broken in rungs:
            raise KernelError("it does not compile")
        self.plans.append(made)
        self.open += 1
        times = [self.better.get((step.name, step.rung), 10e3) for step in made.steps]
        # Without layouts a pass takes longest, whatever its steps do alone.
        slow = 0 if any(step.writes != PLAIN for step in made.steps) else 1e6
        taken = slow + (sum(times) if self.gained else 1e5)
        taken += sum(self.whole.get((step.name, step.rung), 0.0) for step in made.steps)
        answer = np.full((batch, 5), 0.2 if self.wrong in rungs else 1.0, np.float32)

        def close() -> None:
            self.open -= 1

        return SimpleNamespace(
            time_runs=lambda count, cold=False: int(count * taken), close=close, bind=lambda inputs: None,
            run=lambda: None, synchronize=lambda: None, fetch=lambda: {"y": answer},
            op_times=lambda seconds: tuple(
                OpTime(step.nodes, step.op, ns, "events", step.rung, step.chosen)
                for step, ns in zip(made.steps, times, strict=True)
            ),
        )  # fmt: skip


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    on_a_gpu(monkeypatch, tmp_path)
    monkeypatch.setattr(layout_rungs, "wrong", lambda *_: "")


RIGHT_ALONE = layout_rungs.wrong


def planned(how: Options = HOW, graph: Graph | None = None, precision: str = "tf32") -> Plan:
    return planner.plan(graph or network(), BATCH, "cuda", precision, how)


def timed_alone(
    alone: Mapping[str, float] = ALONE, refused: Mapping[str, str] | None = None, op: str = "conv", **of: Any
) -> None:
    """As if the rungs of all such steps had been timed alone."""
    made = planned(replace(HOW, tuned=False, layouts="none"), **of)
    for step in made.steps:
        if step.op == op:
            rungs = layouts.candidates(made, step)
            tried = [choices.Tried(variant=name, first_ns=ns) for name, ns in alone.items()]
            tried += [choices.Tried(variant=name, refused=why) for name, why in (refused or {}).items()]
            best = min(alone, key=lambda name: alone[name])
            choice = choices.Choice(default=rungs[0].name, best=best, tried=tuple(tried), done=True)
            choices.write("cuda", step.params, made.precision, rungs, None, choice)


def chosen(
    backend: Backend, how: Options = HOW, graph: Graph | None = None, precision: str = "tf32", **more: Any
) -> list[str]:
    """What was told while layouts and then rungs in them were chosen."""
    graph = graph or network()
    told: list[str] = []
    found = tuned.untimed(graph, BATCH, precision, how)
    assert found is not None
    tuned.choose(backend, graph, found, how, lambda text, _: told.append(text), **more)  # type: ignore[arg-type]
    assert backend.open == 0, "no session is left open"
    return told


def convolutions(made: Plan) -> dict[str, str]:
    return {step.name: step.rung for step in made.steps if step.op == "conv"}


def test_a_rung_that_was_fastest_alone_and_is_not_in_its_layout_is_replaced() -> None:
    timed_alone()
    assert convolutions(planned(replace(HOW, layouts="chosen"))) == SCALED
    backend = Backend()
    told = chosen(backend)
    made = planned()
    assert convolutions(made) == {**SCALED, "conv3": "nhwc_tf32"}
    (step,) = (step for step in made.steps if step.name == "conv3")
    assert (step.chosen, step.precision, step.reads, step.writes) == ("layout", "tf32", ROUNDED, ROUNDED)
    assert any("conv3 nhwc_tf32 for wgmma_scaled" in line for line in told)
    assert "µs without" in told[-1]
    # Both ways; the steps with their own, their second and their third rungs; the pass as it was and is; and
    # that with what was nearly as fast.
    assert len(backend.plans) == 2 + 3 + 2 + 5
    assert not any(rung == "slices_tf32" for made in backend.plans for rung in convolutions(made).values()), (
        "it was three times as slow alone"
    )


# As fast alone in their layouts, and not in a pass, which finds their weights in memory.
WHOLE = {("conv1", "nhwc_tf32"): -15e3, ("conv3", "wgmma_tf32"): -25e3, ("conv2", "nhwc_tf32"): -0.3e3}


def test_what_is_nearly_as_fast_alone_is_tried_in_a_pass() -> None:
    timed_alone()
    told = chosen(Backend(whole=WHOLE))
    expected = {"conv1": "nhwc_tf32", "conv2": "wgmma_scaled", "conv3": "wgmma_tf32"}
    assert convolutions(planned()) == expected, "the second by a hundredth, which is noise"
    assert any("conv3 wgmma_tf32 for nhwc_tf32: " in line for line in told)
    assert any("conv2 nhwc_tf32 for wgmma_scaled: " in line and "not kept" in line for line in told)
    one, three = kept().rungs
    assert (one.rung, one.own, one.whole) == ("nhwc_tf32", "wgmma_scaled", True)
    assert (three.rung, three.own, three.whole) == ("wgmma_tf32", "wgmma_scaled", True)
    assert three.own_ns - three.time_ns == 25e3 - 1e3, "of passes, 1 µs of which the step takes more"
    assert model_facts._chosen(planned(), planned().steps[one.place], one).startswith("timed in a pass: ")


@pytest.mark.parametrize("how", [{"broken": "wgmma_tf32"}, {"wrong": "wgmma_tf32"}])
def test_what_fails_in_a_pass_costs_only_itself(how: dict[str, str]) -> None:
    timed_alone()
    backend = Backend(whole=WHOLE)
    measured = Backend.prepare

    def prepare(*of: Any) -> Any:
        if len(backend.plans) > 2 + 3 + 2:  # right so far, and in a pass no more
            backend.broken, backend.wrong = how.get("broken", ""), how.get("wrong", "")
        return measured(backend, *of)

    backend.prepare = prepare  # type: ignore[method-assign]
    chosen(backend)
    assert convolutions(planned()) == {**SCALED, "conv1": "nhwc_tf32", "conv3": "nhwc_tf32"}
    assert {t.rung for t in kept().tried if t.refused} <= {"wgmma_tf32"}


def test_what_is_wrong_alone_is_not_taken_for_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_alone()
    monkeypatch.setattr(layout_rungs, "wrong", lambda params, rung, *_: "by 3" * (rung.name == "wgmma_tf32"))
    told = chosen(Backend(whole=WHOLE))
    assert convolutions(planned()) == {**SCALED, "conv1": "nhwc_tf32", "conv3": "nhwc_tf32"}
    assert any("wgmma_tf32 is wrong: by 3" in line for line in told)


def test_in_a_long_pass_and_of_what_is_far_slower_nothing_is_tried_again() -> None:
    timed_alone()
    slow = {(f"conv{i}", name): 12.5e3 for i in (1, 2, 3) for name in ("wgmma_tf32", "nhwc_tf32")}
    backend = Backend(slow, whole=WHOLE)
    chosen(backend)
    assert convolutions(planned()) == SCALED
    assert len(backend.plans) == 2 + 3
    layouts.forget(planned(replace(HOW, layouts="none")))
    chosen(Backend(whole=WHOLE | long()))
    assert convolutions(planned()) == {**SCALED, "conv3": "nhwc_tf32"}


def long() -> dict[tuple[str, str], float]:
    """Whatever a plan's last step is, it takes long in a pass."""
    return {(step.name, step.rung): layout_rungs.SHORT_NS for step in planned().steps[-1:]}


def test_the_plan_that_is_shown_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_alone()
    chosen(Backend())
    # As `models show --plan` plans, which knows no other options.
    usual = functools.partial(Options, one_kernel=False)
    monkeypatch.setattr(model_facts, "Options", usual)
    monkeypatch.setattr(
        model_facts, "plan", lambda graph, batch, device, precision, how=None: planner.plan(
            graph, batch, device, precision, how or usual()
        )
    )  # fmt: skip
    made = planned()
    rows = {row[0]: row for row in model_facts._steps(made, model_facts._layout_rungs(kept(), made))}
    assert rows["conv3"][2:4] == ("conv/nhwc_tf32", "timed in its layout: 8.00 µs (wgmma_scaled 13.0 µs)")
    assert rows["pool3"][3] == "for its layout"
    known = model_facts._timed_layouts(network(), made)
    assert "conv3 nhwc_tf32 8.00 µs, wgmma_tf32 9.00 µs, wgmma_scaled 13.0 µs" in model_facts._tried(
        known, made
    )
    named = planned(replace(HOW, rungs={"conv3": "nhwc_tf32"}))
    rows = {row[0]: row for row in model_facts._steps(named, model_facts._layout_rungs(kept(), named))}
    assert rows["conv3"][3] == "named"


def test_what_is_kept_makes_the_same_plan_in_another_session() -> None:
    timed_alone()
    chosen(Backend())
    made = planned()
    assert tuned.untimed(network(), BATCH, "tf32", HOW) is None, "once is enough"
    again = planned()
    assert (again.steps, again.placements) == (made.steps, made.placements)
    untuned = planned(replace(HOW, tuned=False))
    assert {step.chosen for step in untuned.steps if step.op == "conv"} == {"ladder"}
    for way in layouts.WAYS:
        assert convolutions(planned(replace(HOW, layouts=way))) == SCALED, (
            "a way that is asked for is as it is"
        )


def test_a_variant_that_does_not_compile_costs_only_itself() -> None:
    timed_alone()
    told = chosen(Backend(broken="nhwc_tf32"))
    assert convolutions(planned())["conv3"] == "wgmma_tf32"
    assert any("left out: it does not compile" in line for line in told)


def test_a_variant_that_answers_otherwise_costs_only_itself() -> None:
    timed_alone()
    told = chosen(Backend(wrong="nhwc_tf32"))
    assert convolutions(planned())["conv3"] == "wgmma_tf32"
    assert any("other answers than without layouts" in line for line in told)


def test_nothing_is_kept_where_the_whole_pass_gains_nothing() -> None:
    timed_alone()
    told = chosen(Backend(gained=False))
    assert convolutions(planned()) == SCALED
    assert told[-1].endswith("not kept")
    assert tuned.untimed(network(), BATCH, "tf32", HOW) is None, "and it is not tried again"


def test_a_rung_that_is_wrong_alone_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_alone()
    monkeypatch.setattr(layout_rungs, "wrong", lambda params, rung, *_: "by 3" * (rung.name == "nhwc_tf32"))
    told = chosen(Backend())
    assert convolutions(planned()) == {**SCALED, "conv3": "wgmma_tf32"}, "the next best, in a pass"
    assert any("nhwc_tf32 is wrong: by 3" in line for line in told)


def test_a_rung_that_the_user_named_stays() -> None:
    timed_alone()
    named = replace(HOW, rungs={"conv3": "wgmma_scaled"})
    backend = Backend({**LAID, ("conv2", "wgmma_tf32"): 5e3})
    chosen(backend, named)
    assert all(convolutions(made)["conv3"] == "wgmma_scaled" for made in backend.plans)
    assert convolutions(planned(named)) == {**SCALED, "conv2": "wgmma_tf32"}


def test_a_rung_that_the_user_names_later_stays_too() -> None:
    timed_alone()
    chosen(Backend())
    for name in ("wgmma_scaled", "wgmma_tf32"):
        made = planned(replace(HOW, rungs={"conv3": name}))
        assert convolutions(made)["conv3"] == name
        assert next(step for step in made.steps if step.name == "conv3").chosen == "named"


def test_nothing_is_tried_where_no_step_has_a_second_rung() -> None:
    timed_alone(
        {"wgmma_scaled": 10e3, "slices_tf32": 30e3, "tensor_tf32": 11e3}, {"wgmma_tf32": "it is wrong"}
    )
    backend = Backend()
    chosen(backend)
    assert len(backend.plans) == 2, "the ways alone"


def test_nothing_is_tried_of_steps_that_were_not_timed() -> None:
    backend = Backend()
    chosen(backend)
    assert len(backend.plans) == 2


def test_what_was_not_tried_for_its_pace_at_another_batch_size_is_tried_here() -> None:
    untried = dict.fromkeys(("wgmma_tf32", "nhwc_tf32"), sweep.UNTRIED)
    timed_alone({"wgmma_scaled": 10e3}, untried)
    made = planned(replace(HOW, tuned=False, layouts="none"))
    paces = {
        "wgmma_scaled": 1.0,
        "nhwc_tf32": 1.4 * layout_rungs.FADES,
        "wgmma_tf32": 2.5 * layout_rungs.FADES,
    }
    for step in made.steps:
        if step.op == "conv":
            rungs = layouts.candidates(made, step)
            choices.remember("cuda", step.params, "tf32", rungs, None, paces)
    chosen(backend := Backend())
    assert convolutions(planned())["conv3"] == "nhwc_tf32"
    assert not any("wgmma_tf32" in convolutions(made).values() for made in backend.plans), "too slow there"


def test_products_of_one_image_have_them_too() -> None:
    """All that a small batch of a net of products hands on is laid out."""
    of = {"graph": products(), "precision": "fp16"}
    timed_alone({"half_columns": 5e3, "chunk_columns": 6e3, "streamed_fp16": 7e3}, op="gemm", **of)
    backend = Backend({("fc2", "chunk_columns"): 6e3})
    chosen(backend, **of)
    made = planned(**of)
    assert [step.rung for step in made.steps] == ["streamed_fp16", "chunk_columns", "streamed_fp16"]
    assert {step.chosen for step in made.steps} == {"layout"}


def test_what_is_kept_is_of_the_very_steps_that_were_timed() -> None:
    timed_alone()
    chosen(Backend())
    how = replace(HOW, layouts="none")
    plain = planned(how)
    kept = layouts.read(plain)
    assert kept is not None
    (better,) = kept.rungs
    assert (better.rung, better.time_ns, better.own, better.own_ns) == (
        "nhwc_tf32",
        8e3,
        "wgmma_scaled",
        13e3,
    )
    for other in ({"own": "wgmma_tf32"}, {"reads": PLAIN}, {"place": 0}, {"place": 99}, {"place": -3}):
        changed = layouts.LayoutRung(**{**{n: getattr(better, n) for n in better.__struct_fields__}, **other})
        layouts.write(plain, layouts.Timed(ways=kept.ways, rungs=(changed,)))
        assert convolutions(planned()) == SCALED, other
    unknown = layouts.LayoutRung(
        **{**{n: getattr(better, n) for n in better.__struct_fields__}, "rung": "naive"}
    )
    layouts.write(plain, layouts.Timed(ways=kept.ways, rungs=(unknown,)))
    assert convolutions(planned()) == SCALED, "a rung that cannot read it is passed over"


def kept() -> layouts.Timed:
    found = layouts.read(planned(replace(HOW, layouts="none")))
    assert found is not None
    return found


def test_what_was_tried_is_kept_with_its_times_though_nothing_of_it_is_taken() -> None:
    timed_alone()
    chosen(Backend(gained=False))
    assert kept().rungs == ()
    (faster,) = (tried for tried in kept().tried if tried.time_ns == 8e3)
    own = {tried.rung: tried.time_ns for tried in kept().tried if tried.place == faster.place}
    assert (faster.rung, own["wgmma_scaled"]) == ("nhwc_tf32", 13e3), "the step's own, for who compares"


def test_of_what_could_not_be_tried_it_is_kept_why(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_alone()
    chosen(Backend(broken="nhwc_tf32"))
    refused = {tried.rung: tried.refused for tried in kept().tried}
    assert refused["nhwc_tf32"] == "it does not compile"
    assert not refused["wgmma_scaled"]
    monkeypatch.setattr(layout_rungs, "wrong", lambda *given: "element (0, 1) is off")
    layouts.forget(planned(replace(HOW, layouts="none")))
    chosen(Backend())
    refused = {tried.rung: tried.refused for tried in kept().tried}
    assert refused["nhwc_tf32"] == "element (0, 1) is off"


@pytest.mark.sampled(4, "long")
def test_a_choice_whose_process_ended_is_gone_on_with_and_not_followed() -> None:
    timed_alone()
    chosen(Backend())
    plain, done = planned(replace(HOW, layouts="none")), kept()
    layouts.write(plain, layouts.Timed(ways=msgspec.structs.replace(done.ways, best="none", done=False)))
    assert convolutions(planned()) == SCALED, "as if nothing were kept"
    assert any(step.writes != PLAIN for step in planned().steps)
    again = Backend()
    chosen(again)
    assert kept().ways.best == done.ways.best
    assert convolutions(planned())["conv3"] == "nhwc_tf32"
    ended = msgspec.structs.replace(done.ways, tried=(), done=False, trying="none", attempts=sweep.ATTEMPTS)
    layouts.write(plain, layouts.Timed(ways=ended))
    chosen(Backend())
    assert kept().ways.of("none").refused == sweep.ENDED


def test_a_kernel_that_takes_the_device_with_it_is_tried_once() -> None:
    timed_alone()
    with pytest.raises(DeviceLost):
        chosen(Backend(broken="wgmma_tf32"), lost=lambda: True)
    assert tuned.untimed(network(), BATCH, "tf32", HOW) is None
    assert convolutions(planned()) == SCALED


def test_what_was_ended_while_it_was_tried_is_tried_another_time() -> None:
    timed_alone()

    def end(text: str, fraction: float | None) -> None:
        if "kernels in the layouts" in text:
            raise KeyboardInterrupt

    found = tuned.untimed(network(), BATCH, "tf32", HOW)
    assert found is not None
    with pytest.raises(KeyboardInterrupt):
        tuned.choose(Backend(), network(), found, HOW, end)  # type: ignore[arg-type]
    assert tuned.untimed(network(), BATCH, "tf32", HOW) is not None


def test_kernels_are_compiled_side_by_side_before_they_are_tried() -> None:
    timed_alone()
    asked: list[tuple[str, str]] = []
    chosen(Backend(), compile_ahead=lambda steps: asked.extend((step.rung, step.reads) for step in steps))
    assert ("nhwc_tf32", ROUNDED) in asked
    assert ("wgmma_tf32", ROUNDED) in asked


def test_a_rung_is_judged_alone_in_every_image(monkeypatch: pytest.MonkeyPatch) -> None:
    conv = Conv(n=5, c=4, h=9, w=9, m=6, kh=3, kw=3, out_h=7, out_w=7, bias=True)
    rung = registry.find("cpu", "conv", "shift_and_add")
    assert RIGHT_ALONE(conv, rung, "fp32", 1) == ""
    prepare = rung_devices.prepare
    monkeypatch.setattr(
        rung_devices,
        "prepare",
        lambda rung, params, *rest: prepare(rung, replace(params, activation="relu"), *rest),
    )
    assert "error" in RIGHT_ALONE(conv, rung, "fp32", 1)

    def failing(*_: Any) -> Any:
        raise KernelError("it does not compile")

    monkeypatch.setattr(rung_devices, "prepare", failing)
    assert RIGHT_ALONE(conv, rung, "fp32", 1) == "it does not compile"


def test_passes_are_timed_in_turns() -> None:
    order: list[str] = []

    def session(name: str, ns: float) -> Any:
        def time_runs(count: int) -> int:
            order.append(name)
            return int(count * ns)

        return SimpleNamespace(time_runs=time_runs)

    assert whole_passes.pass_ns(session("a", 1e6), session("b", 2e6)) == [1e6, 2e6]
    assert "".join(order) == "aabb" + "ab" * 5
