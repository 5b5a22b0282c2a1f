"""Two passes of LeNet-5 at batch 16 as an H200 recorded them, of our engine in one CUDA graph whose kernels
begin early, and of ONNX Runtime: tables, parts and attribution, to the nanosecond."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.measure.profile import attribution as profile_attribution
from bench.measure.profile.attribution import Launched
from bench.results import parts as profile_parts
from bench.results.event_files import events_in
from bench.run.kinds.profile import KIND as PROFILE
from bench.views.charts import profile_charts
from bench.views.drawing import draw_timeline
from bench.views.sentences import profile_findings, profile_remarks
from bench.views.tables import course_report as profile_course
from bench.views.tables import profile_tables

FOLDER = PROFILE.open(Path(__file__).parents[2] / "data" / "lenet_on_h200")
OURS, THEIRS = FOLDER.measurements()
EVENTS = {case.case.backend: events_in(FOLDER.path, case) for case in (OURS, THEIRS)}


@pytest.fixture(params=(OURS, THEIRS), ids=lambda case: case.case.backend)
def case(request):
    return request.param


def rows(table):
    return {row["name"]: (row["calls"], row["time_ns"]) for row in table.rows}


def bare(events):
    """The device's activities as they are recorded, of no node."""
    return [msgspec.structs.replace(a, nodes=(), op_type="") for a in events.activities]


def test_parts_add_up_and_little_is_left(case):
    found, stored = profile_parts.breakdown(EVENTS[case.case.backend], "pass"), case.breakdown()
    # Stored before there was a part for what ONNX Runtime does on the host.
    assert (found.part("ort") > 0) == (case is THEIRS)
    assert stored.part("host") == found.part("host", "ort")
    named = {share.key: share for share in stored.parts}
    assert all(named[share.key] == share for share in found.parts if share.key not in ("host", "ort"))
    assert sum(share.time_ns for share in found.parts) == found.wall_ns
    assert found.part("rest") < profile_remarks.REST * found.wall
    (words,) = profile_remarks.waits(case)
    assert "launch-bound" in words


def test_parts_of_kernels_that_overlap_are_the_time_that_the_device_worked():
    found = {share.key: (share.time_ns, share.count) for share in OURS.breakdown().parts}
    assert found == {
        "op:Conv": (19_330, 4),
        "op:Gemm": (12_896, 6),
        "op:MaxPool": (3_520, 4),
        "op:Softmax": (2_014, 2),
        "h2d": (9_952, 2),
        "d2h": (2_943, 2),
        "launch": (47_811, 12),
        "sync": (18_664, 8),
        "host": (49_176, 8),
        "rest": (8_498, 0),
    }
    table = profile_tables.activities(OURS, EVENTS["engine-cuda"])
    assert rows(table)["softmax"] == (2, 28_671)  # it waits there for those in front of it
    assert any("overlap: their times add up to 175 µs, in 50.7 µs" in note for note in table.notes)
    table = profile_tables.activities(THEIRS, EVENTS["ort-cuda"])
    assert not any("overlap" in note for note in table.notes)


def test_onnx_runtimes_tables():
    events = EVENTS["ort-cuda"]
    by_node = rows(profile_tables.activities(THEIRS, events, "node"))
    assert by_node["fc3"] == (6, 110_689)  # bias, memset and product, twice
    assert by_node["conv1"] == (4, 14_206)
    by_operator = rows(profile_tables.activities(THEIRS, events, "operator"))
    assert by_operator == {
        "Gemm": (16, 131_777),
        "Conv": (8, 30_621),
        "Tanh": (8, 9_985),
        "memcpy HtoD": (2, 9_504),
        "MaxPool": (4, 8_160),
        "memcpy DtoH": (2, 2_976),
        "Softmax": (2, 2_272),
    }
    calls = rows(profile_tables.calls(THEIRS, events))
    launches = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel")
    kernels = [activity for activity in events.activities if activity.kind == "kernel"]
    assert sum(calls[name][0] for name in launches) == len(kernels) == 36
    assert calls["cudaMemcpyAsync"] == (4, 21_522)
    row = profile_course.row(THEIRS, events)
    assert (row["cudaMemcpy_ns"], row["cudaMemcpy_calls"]) == (21_522, 4)
    assert (row["conv_ns"], row["fc_ns"], row["cudaMalloc_calls"]) == (30_621, 131_777, 0)
    assert not profile_attribution.unrecorded(events.calls, events.activities)


def test_onnx_runtimes_kernels_are_of_the_nodes_that_launched_them():
    events = EVENTS["ort-cuda"]
    found = profile_attribution.by_nodes(
        bare(events), events.calls, events.intervals, THEIRS.clocks[-1].error_ns
    )
    assert [a.nodes for a in found] == [a.nodes for a in events.activities]
    assert profile_attribution.attributed_share(found) == 1
    names = {a.nodes: a.name for a in found if "xmma_fprop" in a.name}
    assert set(names) == {("conv1",), ("conv2",)}  # one kernel, two nodes


def test_a_graphs_kernels_are_of_the_steps_in_their_order():
    events = EVENTS["engine-cuda"]
    kernels = [a for a in events.activities if a.kind == "kernel"]
    order = [Launched(a.name, a.nodes, a.op_type) for a in kernels[: len(kernels) // 2]]
    assert len({step.name for step in order}) < len(order) == 8  # several nodes share a kernel
    found = profile_attribution.by_order(bare(events), events.calls, order)
    assert [a.nodes for a in found] == [a.nodes for a in events.activities]


def test_what_holds_an_operator_back_is_one_thing(case):
    limits = FOLDER.header.limits["cuda"]
    found = profile_findings.findings(case, EVENTS[case.case.backend], limits)
    assert all(finding.sentence.count(";") <= 1 for finding in found)
    assert all(finding.sentence.startswith("far from every limit (") for finding in found)
    assert not any("bound by" in finding.sentence for finding in found), "none is near a limit"
    if case is THEIRS:
        words = {finding.label: finding.sentence for finding in found}
        assert words["fc3"] == "far from every limit (0.1 % of memory)"
        assert "; launch-bound: 1 kernel of 1.34 µs on average, shorter than the 4.97 µs" in words["tanh1"]


def test_the_picture_of_a_pass_names_every_colour_in_it(case):
    events = EVENTS[case.case.backend]
    tints = profile_charts.colours(profile_charts.keys_of([case]))
    drawn = draw_timeline.rows(events, tints)
    named = {colour for colour, _ in draw_timeline.legend(drawn, tints)}
    assert {colour for _, spans in drawn for *_, colour in spans} == named
    labels = [label for _, label in draw_timeline.legend(drawn, tints)]
    assert len(set(labels)) == len(labels)
    assert {"Conv", "copy in", "call: launch", "call: wait", "run"} <= set(labels)
    assert ("step without a kernel" in labels) == (case is THEIRS)  # Flatten
