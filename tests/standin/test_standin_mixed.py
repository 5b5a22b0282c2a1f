"""A mixed precision is chosen for a real net, held against float64, and checked layer by layer, on the
stand-in GPU. What its kernels take says nothing of a GPU's, so that times are planted."""

from __future__ import annotations

import pytest

from tests.standin.conftest import Machine

MIXED = """
import sys
sys.path.insert(0, {root!r})
from contextlib import closing
from dataclasses import replace
from bench.measure.answers.layer_check import LayerCheck
from bench.measure.loaded_model import LoadedModel
from bench.measure.tuned import mixes
from bench.results.records import Case, Job
from engine.backends.engine_cuda import BACKEND
from engine.planning import mixed

MODEL, BATCH, WITHIN = "lenet5-digits", 8, "mixed-3e-5"
job = Job(models=(MODEL,), backends=("engine-cuda",), precisions=("mixed",), batches=(BATCH,), max_error=3e-5)
loaded = LoadedModel(MODEL, job, (BATCH,), lambda text, part: None)
how = replace(loaded.options_for("cuda"), one_kernel=False)
TAKES = dict(fp32=100e3, tf32=120e3, fp16=30e3, bf16=31e3)
TAKES["fp32-tc"] = 95e3
with closing(BACKEND.prepare(loaded.graph, BATCH, "fp32", how)) as session:
    kind, measured = type(session), type(session).op_times

def ns(step):
    return TAKES[step.asked] if mixed.multiplies(step.params) else 1.0

kind.op_times = lambda session, seconds: tuple(
    replace(time, time_ns=ns(step))
    for time, step in zip(measured(session, 0.01), session.plan.steps, strict=True)
)
kind.time_runs = lambda session, count, cold=False: int(count * sum(map(ns, session.plan.steps)))
subject = mixes.Subject(BACKEND, loaded, BATCH, WITHIN, how, lambda text, part: print(text))
assert mixes.wanted(subject)
best = dict(mixes.choose(subject).best)
assert {{*best.values()}} == {{"fp16", "fp32-tc"}}, best
assert not mixes.wanted(subject)
with closing(BACKEND.prepare(loaded.graph, BATCH, WITHIN, how)) as session:
    assert session.facts["mixed"] == mixed.words(best), session.facts
    placed = loaded.placement(BATCH, 0)
    session.bind(placed.inputs)
    session.run()
    session.synchronize()
    answer = loaded.check(session.fetch(), placed, WITHIN)
    assert answer.ok and answer.bound == 3e-5, answer
    case = Case(model=MODEL, backend="engine-cuda", precision=WITHIN, batch=BATCH)
    check = LayerCheck(case, BACKEND, how, loaded)
    check.before_timing(session)
    layers = {{layer.nodes[0]: layer for layer in check.measured(session, 0.01)}}
    bounds = dict(zip(("fp16", "fp32-tc"), (5e-3, 1e-5)))
    for node, precision in best.items():
        layer = layers[node]
        assert layer.isolated.bound == bounds[precision] and layer.isolated.ok, layer
        assert layer.precision in (precision, "fp32"), layer
    assert not check.warnings, check.warnings
print("within")
"""


@pytest.mark.sampled(4, "long")
def test_a_mix_is_found_held_against_float64_and_checked_layer_by_layer(machine: Machine) -> None:
    from tests.standin.conftest import ROOT

    out, _ = machine.python("-c", MIXED.format(root=str(ROOT)))
    assert "within" in out

    assert "with fc3 in fp16" in out
