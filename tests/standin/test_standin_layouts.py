"""A net whose tensors travel as NHWC float16 answers as one whose tensors do not, on the stand-in GPU."""

from __future__ import annotations

import pytest

from tests.standin.conftest import Machine

ANSWERS = """
import sys
sys.path.insert(0, {root!r})
import numpy as np
from engine.backends.engine_cuda import BACKEND
from engine.options import Options
from engine.planning import traffic
from tests.engine.planning.test_layouts import NHWC, network, products

def answer(batch, outputs, **options):
    how = Options(tuned=False, rungs=NHWC, one_kernel=False, **options)
    session = BACKEND.prepare(network(outputs), batch, "fp16", how)
    x = np.random.default_rng(1).standard_normal((batch, 3, 35, 35)).astype(np.float32)
    session.bind({{"x": x}})
    session.run()
    session.synchronize()
    steps = [step.name for step in session.plan.steps if step.writes != "nchw float32"]
    found = session.fetch()
    session.close()
    return steps, found

for batch in (1, 7):
    steps, found = answer(batch, ("y",))
    none, plain = answer(batch, ("y",), layouts="none")
    fewer, layers = answer(batch, ("y", "r2", "n1"))
    assert (steps, none) == (["conv1", "conv2", "conv3"], []), (steps, none)
    for name, array in found.items():
        assert np.isfinite(array).all()
        for other in (plain, layers):
            error = np.linalg.norm(array - other[name]) / np.linalg.norm(plain[name])
            assert error < 2e-3, (batch, name, error)
    assert layers["r2"].shape == (batch, 64, 7, 7) and layers["r2"].dtype == np.float32

def of_products(batch, layouts):
    how = Options(tuned=False, one_kernel=False, layouts=layouts)
    session = BACKEND.prepare(products(), batch, "fp16", how)
    session.bind({{"x": np.random.default_rng(1).standard_normal((batch, 130)).astype(np.float32)}})
    session.run()
    session.synchronize()
    found = session.fetch()["y"]
    told = [time.nbytes for time in session.op_times(0.02)]
    counted = traffic.planned_traffic(session.plan, [launch for _, launch in session._shapes])
    launched = {{step.name: step.moved for step, _ in session.launch_order()}}  # some in several stages
    assert told == [step.moved for step in counted] == list(launched.values()), (told, counted, launched)
    halves = 2 * 130 * 45 + 4 * 45  # a float16 a weight at least, a float32 a bias
    ends = batch * 130 * 4 + batch * (45 * 4 if layouts == "none" else 48 * 2)
    assert halves <= told[0] - ends < 2 * halves, (batch, layouts, told)
    session.close()
    return [step.writes for step in session.plan.steps], found

for batch in (1, 130):
    (ways, found), (plain, expected) = of_products(batch, "all"), of_products(batch, "none")
    assert ways == ["nhwc float16", "nhwc float16", "nchw float32"] and set(plain) == {{"nchw float32"}}
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < 2e-3, batch

# A net of several precisions, whose layers hand on what both of two neighbours know.
mix = dict(conv1="fp16", conv2="fp16", conv3="tf32", fc4="fp32")
made = {{}}
for how in (mix, dict.fromkeys(mix, "fp32")):
    session = BACKEND.prepare(network(), 7, "mixed-1e-3", Options(tuned=False, mix=how))
    session.bind({{"x": np.random.default_rng(1).standard_normal((7, 3, 35, 35)).astype(np.float32)}})
    session.run()
    session.synchronize()
    made[session.facts["mixed"]] = session.plan, session.fetch()["y"]
    session.close()
(said, (plan, mixed)), (plain, (_, expected)) = made.items()
assert (said, plain) == ("conv1 to conv2 in fp16, conv3 in tf32, fc4 in fp32", "all in fp32")
assert {{s.name: s.precision for s in plan.steps if s.name in mix}} == mix
assert {{s.name: s.writes for s in plan.steps if s.name in mix}}["conv1"] == "nhwc float16"
assert 1e-6 < np.linalg.norm(mixed - expected) / np.linalg.norm(expected) < 2e-3
print("alike")
"""


@pytest.mark.sampled(4, "long")
def test_layouts_change_no_answer(machine: Machine) -> None:
    from tests.standin.conftest import ROOT

    assert "alike" in machine.python("-c", ANSWERS.format(root=str(ROOT)))[0]


TRIED = """
import sys
sys.path.insert(0, {root!r})
from dataclasses import replace
import numpy as np
from bench.measure import timing
from bench.measure.tuned import layout_rungs, whole_passes
from bench.measure.tuned import layouts as tuned
from engine.backends.engine_cuda import BACKEND
from engine.options import Options
from engine.planning import choices, layouts, planner
from tests.engine.planning.test_layouts import network

HOW, BATCH = Options(one_kernel=False), 3
own, other = "wgmma_fp16", "nhwc_fp16"
plain = planner.plan(network(), BATCH, "cuda", "fp16", replace(HOW, layouts="none"))
for step in plain.steps:
    if step.op == "conv":
        rungs = layouts.candidates(plain, step)
        tried = tuple(choices.Tried(variant=name, first_ns=ns) for name, ns in ((own, 1e3), (other, 1.1e3)))
        kept = choices.Choice(default=rungs[0].name, best=own, tried=tried, done=True)
        choices.write("cuda", step.params, "fp16", rungs, None, kept)

# What a stand-in takes says nothing of a kernel: its clock is told what to say.
def planted(session, seconds):
    return tuple(
        replace(time, time_ns=1.0 if time.rung == other else 2.0) for time in measured(session, seconds)
    )

def pass_ns(*sessions):
    return [
        1.0 + sum(step.rung == own for step in s.plan.steps)
        + 10.0 * all(step.writes == "nchw float32" for step in s.plan.steps)
        for s in sessions
    ]

session_of = type(BACKEND.prepare(network(), BATCH, "fp16", HOW))
measured = session_of.op_times
session_of.op_times = planted
session_of.time_runs = lambda session, count, cold=False: int(count * 1e6 * pass_ns(session)[0])
layout_rungs.pass_ns = pass_ns
found = tuned.untimed(network(), BATCH, "fp16", HOW)
tuned.choose(BACKEND, network(), found, HOW, lambda text, _: print(text))

session = BACKEND.prepare(network(), BATCH, "fp16", HOW)
convs = [(step.rung, step.chosen) for step in session.plan.steps if step.op == "conv"]
assert convs == [(other, "layout")] * 3, convs
without = BACKEND.prepare(network(), BATCH, "fp16", replace(HOW, layouts="none"))
inputs = whole_passes.drawn(plain)
one, two = (timing.answers(each, inputs) for each in (session, without))
assert whole_passes.agree(one, two, "fp16")
print("kept and alike")
"""


@pytest.mark.sampled(4, "long")
def test_rungs_that_are_faster_in_a_layout_are_tried_and_kept(machine: Machine) -> None:
    from tests.standin.conftest import ROOT

    out, _ = machine.python("-c", TRIED.format(root=str(ROOT)))
    assert "kept and alike" in out
    assert "conv3 nhwc_fp16 for wgmma_fp16" in out
