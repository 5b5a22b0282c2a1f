"""A profile from the command line to the folder, in real workers on the CPU."""

from __future__ import annotations

import json

import pytest

import main
from bench.measure.profile import cold as profile_cold
from bench.results.event_files import events_in
from bench.results.profile_records import Profile, ProfileJob, planned
from bench.run import client
from bench.run.kinds.profile import KIND as PROFILE
from bench.views import trace as profile_trace
from kernels import registry
from kernels.spans import Span
from tests.bench.undrawn import undrawn

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of one profile of both CPU backends, and where its trace is."""
    base = tmp_path_factory.mktemp("profile")
    out, trace = base / "made", base / "trace.json"
    arguments = ["profile", "lenet5-digits", "--backend", "engine-cpu,ort-cpu", "--batch", "4", "--runs", "3"]
    options = ["--budget", "0.05", "--charts", "svg", "--format", "json", "--table", "breakdown"]
    (base / "mine" / "cpu" / "conv").mkdir(parents=True)
    source = registry.find("cpu", "conv", "shift_and_add").source
    source = source.replace('"shift_and_add"', '"my_own"').replace("rung = 1", "rung = 90")
    (base / "mine" / "cpu" / "conv" / "90_my_own.py").write_text(source)
    chosen = ["--kernels", str(base / "mine"), "--rung", "conv2=cpu/my_own", "--rung", "conv1=cuda/naive"]
    with pytest.MonkeyPatch.context() as patch:
        undrawn(patch)
        status = main.main([*arguments, *options, *chosen, "--out", str(out), "--trace", str(trace)])
    assert status == 0
    return PROFILE.open(out), trace


def test_each_backend_is_profiled_in_a_process_of_its_own(made):
    folder, _ = made
    ours, theirs = folder.measurements()
    assert (ours.disposition, theirs.disposition) == ("ok", "ok")
    for case in (ours, theirs):
        events = events_in(folder.path, case)
        found = case.breakdown()
        assert sum(share.time_ns for share in found.parts) == found.wall_ns
        assert found.passes == 3
        assert found.part("op:Conv", "op:Gemm") > 0
        assert len(case.samples_ns) > 0
        assert len(case.pass_ns) > 0
        assert len(case.profiled_ns) == 3
        assert {interval.run for interval in events.intervals if interval.nodes} == {None, 0, 1, 2}
        assert any("on a GPU the profile would also show" in note for note in case.notes)
        assert case.process.real_s > 0
        assert case.process.max_rss_nbytes > 10 << 20
        starts = [mark.start_ns for mark in case.cold]
        ends = [mark.end_ns for mark in case.cold]
        assert starts[0] == 0
        assert starts[1:] == ends[:-1]
        assert [mark.name for mark in case.cold][:2] == ["interpreter", "program"]
        assert case.cold[-1].name == "steady state"
    for case in (ours, theirs):
        nodes = {i.nodes[0] for i in events_in(folder.path, case).intervals if i.op_type == "Conv"}
        assert nodes == {"conv1", "conv2"}  # ONNX Runtime's own names are told in the model's
    assert ours.operators[0].rung
    assert ours.operators[0].flops > 0


def test_a_rung_chosen_for_a_device_is_profiled_there_a_kernel_of_ones_own_too(made):
    folder, _ = made
    rungs = {o.nodes[0]: o.rung for o in folder.measurements()[0].operators if o.op_type == "Conv"}
    assert rungs["conv2"] == "my_own"
    assert rungs["conv1"] in {rung.name for rung in registry.rungs("cpu", "conv")}  # not CUDA's


def test_onnx_runtimes_nodes_lie_in_the_passes_that_ran_them(made):
    folder, _ = made
    theirs = folder.measurements()[1]
    events = events_in(folder.path, theirs)
    (clock,) = theirs.clocks
    runs = {m.run: m for m in events.marks if m.kind == "stage" and m.name == "run" and m.run is not None}
    for interval in events.intervals:
        if interval.kind == "node" and interval.run is not None:
            run = runs[interval.run]
            assert run.start_ns - clock.error_ns <= interval.start_ns
            assert interval.end_ns <= run.end_ns + clock.error_ns


def test_its_trace_is_written_and_read_back(made):
    folder, trace = made
    cases = folder.measurements()
    for case, read in zip(cases, profile_trace.read(trace), strict=True):
        assert read.intervals == events_in(folder.path, case).intervals


def test_a_profile_is_shown_again(made, capsys):
    folder, _ = made
    assert (
        main.main(["profile", "--load", str(folder.path), "--table", "activities", "--format", "json"]) == 0
    )
    shown = json.loads(capsys.readouterr().out)
    assert [table["key"] for table in shown["tables"]] == ["activities-name"] * 2
    assert main.main(["profile", "--load", str(folder.path)]) == 0
    first = capsys.readouterr()
    assert first.out.startswith("lenet5-digits, fp32, batch 4: a pass takes ")
    assert "A profiled pass in parts" in first.out
    assert "Cold start" not in first.out, "a first look is short"
    assert "the clock of ONNX Runtime" not in first.err
    assert f"--load {folder.path} --table all" in first.err
    assert main.main(["profile", "--load", str(folder.path), "--table", "all"]) == 0
    whole = capsys.readouterr()
    assert "Cold start" in whole.out
    assert "the clock of ONNX Runtime" in whole.err
    assert (folder.path / "charts" / "profile-timeline.svg").is_file()


@pytest.mark.sampled(4, "long")
def test_a_backend_that_cannot_run_here_is_told_and_the_rest_goes_on(tmp_path, capsys):
    job = ProfileJob(model="lenet5-digits", backends=("no-such",), batches=(1,))
    folder = PROFILE.create(tmp_path / "p", Profile(job=job, cases=planned(job)))
    client.run(job, planned(job), folder)
    (case,) = folder.measurements()
    assert case.disposition != "ok"
    assert "no-such" in case.reason
    folder.close()
    assert main.main(["profile", "--load", str(tmp_path / "p")]) == 1
    shown = capsys.readouterr()
    assert "pass in parts" not in shown.out, "no tables of nothing"
    assert "no-such" in shown.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-model"], "no-such-model"),
        (["lenet5-digits", "--backend", "ort-cpuu"], "ort-cpu"),
        (["lenet5-digits", "--batch", "0"], "batch 0"),
        (["lenet5-digits", "--backend", "engine-cpu", "--runs", "-3"], "runs"),
        (["lenet5-digits", "--backend", "engine-cpu", "--runs", "0"], "runs 0"),
        (["lenet5-digits", "--rung", "nosuch=naive"], "has no node 'nosuch'"),
        (["--trace", "."], "is a folder"),
        (["lenet5-digits", "--table", "call"], "calls"),
        (["--load", "/nowhere"], "holds no profile"),
    ],
)
def test_what_is_typed_wrong_is_told_in_one_sentence(arguments, words, capsys):
    assert main.main(["profile", *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert words in line


def test_the_cold_start_is_divided_by_phases_and_by_what_was_watched():
    phases = {"load": 10, "alloc": 5, "upload": 15, "compile": 60}
    taken = [Span("NVRTC compile", 0, 30), Span("module load", 30, 45), Span("NVRTC compile", 45, 50)]
    found = {name: ns for name, ns, _ in profile_cold.divided(100, phases, taken, ort=False)}
    assert found == {
        "graph and planning": 10,
        "allocation": 5,
        "weights": 15,
        "NVRTC compile": 35,
        "module load": 15,
        "first launches, graph capture": 10,
        "rest of preparing": 10,
    }
    ort = profile_cold.divided(50, {"load": 20, "alloc": 5}, [Span("cuDNN and cuBLAS load", 0, 15)], ort=True)
    assert ort == [
        ("cuDNN and cuBLAS load", 15, ""),
        ("session creation", 20, ""),
        ("allocation", 5, ""),
        ("rest of preparing", 10, ""),
    ]
    assert sum(ns for _, ns, _ in profile_cold.divided(80, phases, (), ort=False)) == 80
