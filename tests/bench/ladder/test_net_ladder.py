"""A whole net as a ladder: how its steps are put together, from a call a step to one call for all."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import main
from bench.measure import net_operator as net
from bench.measure.ladder import describe
from bench.measure.ladder.assembly import answer as assembly
from bench.questions import ladder_plan
from bench.questions.ladder_questions import AssemblyQuestion, LadderQuestion
from bench.results.ladder_records import RungMeasurement
from bench.run import client
from bench.run.kinds.ladder import KIND as LADDER
from engine import net_rungs
from engine.backend import Options
from engine.backends.engine_cpu import BACKEND
from engine.graph import importer
from kernels import numba_support, nvrtc, registry
from kernels.errors import InputError
from models import catalogue
from models.names import DEFAULT_MODEL

pytestmark = pytest.mark.usefixtures("in_a_folder")

COMPILED = ("compiled_call_a_step", "one_compiled_call")


def climb(path: Path, **fields: object) -> dict[str, RungMeasurement]:
    step, _ = ladder_plan.node_of(DEFAULT_MODEL, "net", "0", 3, "cpu")
    told = {"budget_s": 0.02, "threads": 1, "quick": True, "instances": 1} | fields
    job = ladder_plan.job_of(step.params, "cpu", model=DEFAULT_MODEL, node=step.nodes[0], batch=3, **told)
    planned = ladder_plan.plan(job)
    folder = LADDER.create(path, planned)
    client.run(job, planned.cases, folder)
    return {m.case.key: m for m in folder.measurements()}


@pytest.mark.sampled(4, "long")
def test_each_way_of_running_it_is_checked_and_timed_beside_the_reference(tmp_path: Path) -> None:
    found = climb(tmp_path / "ladder")
    assert list(found) == ["numpy_call_a_step", *COMPILED, "reference"]
    here = numba_support.unavailable() is None
    assert {name: m.disposition for name, m in found.items()} == {
        name: "ok" if here or name not in COMPILED else "unsupported" for name in found
    }
    timed = [m for m in found.values() if m.disposition == "ok"]
    assert all(m.samples_ns and m.checks and m.error is not None and m.error.ok for m in timed)
    assert "compiled" not in found["numpy_call_a_step"].facts
    if here:
        apart, joined = (int(found[name].facts["calls"].split()[0]) for name in COMPILED)
        assert joined < apart


def test_its_rungs_differ_in_how_they_run_and_not_in_what_they_answer() -> None:
    graph = importer.load(catalogue.path(DEFAULT_MODEL))
    facts = []
    for rung in net_rungs.rungs("cpu"):
        if rung.compiled and numba_support.unavailable():
            continue
        session = BACKEND.prepare_here(graph, 2, options=net_rungs.options(rung, Options(threads=1)))
        facts.append((session.facts["calls"], session.facts.get("compiled", "")))
        assert net_rungs.refusal(rung, session.facts) is None
        session.close()
    assert len(set(facts)) == len(facts)


@pytest.mark.parametrize("said", ["no: its kernels one by one are faster here", ""])
def test_a_session_that_did_not_do_as_it_was_asked_is_not_shown_as_that_rung(said: str) -> None:
    rung = net_rungs.find("cuda", "one_kernel")
    assert net_rungs.refusal(rung, {"one_kernel": said} if said else {})
    assert net_rungs.refusal(rung, {"one_kernel": "6 of 6 steps"}) is None


def test_it_is_asked_for_as_any_operator_is() -> None:
    def ask(**fields: object) -> describe.LadderAnswer:
        asked = {"model": DEFAULT_MODEL, "op": "net", "device": "cpu", "batch": 5} | fields
        return describe.answer(LadderQuestion(number=1, **asked))

    answer = ask(whole_model=True)
    assert answer.error == ""
    assert answer.ladder is not None
    job = answer.ladder.job
    assert (job.op, job.node, job.whole_model, job.precision) == ("net", net.NODE, False, "fp32")
    assert [info.case.rung for info in answer.rungs] == [rung.name for rung in net_rungs.rungs("cpu")]
    assert all(info.source and info.case.idea and Path(info.path).is_file() for info in answer.rungs)
    one = ask(node="conv1", op="conv").ladder
    assert one is not None
    assert one.job.op == "conv"
    assert ask(device="cuda").ladder is not None or ask(device="cuda").to_read is not None


@pytest.mark.parametrize("precision", ["", "tf32", "fp16"])
def test_its_rungs_and_the_reference_are_of_the_precision_asked_for(precision: str) -> None:
    step, _ = ladder_plan.node_of(DEFAULT_MODEL, "net", net.NODE, 2, "cuda")
    job = ladder_plan.job_of(step.params, "cuda", model=DEFAULT_MODEL, node=net.NODE, precision=precision)
    found = ladder_plan.plan(job)
    assert {case.precision for case in found.cases} == {precision or "fp32"}
    assert found.cases[-1].is_reference
    assert found.flops > found.nbytes > 0
    alone = ladder_plan.plan(ladder_plan.job_of(step.params, "cuda", model=DEFAULT_MODEL, rungs=("3",)))
    assert [case.rung for case in alone.cases] == ["one_kernel", "reference"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--whole-model"], "--whole-model is of one operator's rungs"),
        (["--tune"], "--tune is of one operator's rungs"),
        (["--rung", "one_kernl", "--device", "cpu"], "no rung 'one_kernl' of net"),
        (["--compile"], "net has no kernels but those of other operators"),
        (["--new", "mine"], "net has no kernels but those of other operators"),
        (["--node", "conv1"], "has no net 'conv1'"),
    ],
)
def test_what_it_has_not_is_told_in_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = arguments[0] == "--new"
    typed = ["net", "mine", "--new"] if new else ["net", "--model", DEFAULT_MODEL, *arguments]
    assert main.main(["ladder", *typed]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert err.count("\n") == 1
    assert not out


def test_a_record_from_elsewhere_is_not_trusted_to_say_what_a_net_is() -> None:
    told = {field.name: 1 for field in dataclasses.fields(net.Net)}
    assert net.net_of(told).words
    for broken in ({}, told | {"steps": "many"}, told | {"batch": None}):
        with pytest.raises(InputError, match="whole net says"):
            net.net_of(broken)


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason="NVRTC is not here")
def test_there_is_no_listing_of_it() -> None:
    step, _ = ladder_plan.node_of(DEFAULT_MODEL, "net", "0", 1, "cuda")
    job = ladder_plan.job_of(step.params, "cuda", model=DEFAULT_MODEL)
    assert "those of other operators" in assembly(AssemblyQuestion(job=job, rung="one_kernel")).error


def test_no_operator_has_its_name() -> None:
    assert net.OP not in registry.OPS
