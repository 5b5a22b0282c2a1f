"""Kernels are given to the nodes that launched them, also where nodes share a kernel's name."""

from __future__ import annotations

import json

import pytest

from bench.measure.profile import attribution as profile_attribution
from bench.measure.profile import ort as profile_ort
from bench.measure.profile.attribution import Launched
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from kernels.errors import InputError

# Two convolutions by one kernel, the second in two stages; constants copied before the first.
ORDER = (
    Launched("memcpy", ("c1", "r1"), "Conv"),
    Launched("conv", ("c1", "r1"), "Conv"),
    Launched("pool", ("p1",), "MaxPool"),
    Launched("conv", ("c2",), "Conv"),
    Launched("add_parts", ("c2",), "Conv"),
)


def launched(names, first=0, graph=0, correlation=None):
    """Activities one after the other, each with a call of its own or all with that of a graph's launch."""
    activities, calls = [], []
    for place, name in enumerate(names):
        at = first + 100 * place
        number = first + place + 1 if correlation is None else correlation
        activities.append(
            Activity(
                name="memcpy DtoD" if name == "memcpy" else name,
                kind="memcpy" if name == "memcpy" else "kernel",
                copy="DtoD" if name == "memcpy" else "",
                start_ns=at + 50,
                end_ns=at + 90,
                correlation=number,
                graph=graph,
            )
        )
        if correlation is None or not place:
            name = "cudaGraphLaunch" if graph else "cuLaunchKernel"
            calls.append(
                ApiCall(name=name, domain="driver", start_ns=at, end_ns=at + 10, correlation=number, thread=5)
            )
    return activities, calls


NAMES = [step.name for step in ORDER]


def test_kernels_of_one_name_are_told_apart_by_their_place_in_the_pass():
    activities, calls = launched(NAMES * 2)
    found = profile_attribution.by_order(activities, calls, ORDER)
    assert [a.nodes for a in found] == [step.nodes for step in ORDER] * 2
    assert [a.op_type for a in found][:5] == ["Conv", "Conv", "MaxPool", "Conv", "Conv"]


def test_nodes_of_a_cuda_graph_follow_the_devices_order():
    activities, calls = launched(NAMES, graph=3, correlation=77)
    found = profile_attribution.by_order(list(reversed(activities)), calls, ORDER)
    assert {(a.start_ns, a.nodes) for a in found} == {
        (a.start_ns, step.nodes) for a, step in zip(activities, ORDER, strict=True)
    }


def test_what_is_not_of_the_pass_stays_unattributed_and_the_next_pass_is_found():
    activities, calls = launched(["probe", "conv", *NAMES, "stray", *NAMES[:3]])
    copies, more = launched(["memcpy"], first=5000)
    copies = [Activity(name="memcpy HtoD", kind="memcpy", copy="HtoD", start_ns=5050, end_ns=5090)]
    found = profile_attribution.by_order([*activities, *copies], [*calls, *more], ORDER)
    assert [bool(a.nodes) for a in found] == [False] * 2 + [True] * 5 + [False] * 5


def test_constants_that_need_no_copy_in_a_graph_do_not_hide_the_order():
    activities, calls = launched(NAMES[1:])
    found = profile_attribution.by_order(activities, calls, ORDER)
    assert [a.nodes for a in found] == [step.nodes for step in ORDER[1:]]


def test_a_librarys_kernels_take_what_lies_between_our_own():
    order = (ORDER[2], Launched("cuBLAS", ("fc1",), "Gemm"), ORDER[3], Launched("cuBLAS", ("fc2",), "Gemm"))
    names = ["pool", "sm90_gemm", "splitK_reduce", "conv", "sm90_gemm"]
    activities, calls = launched(names * 2)
    found = profile_attribution.by_order(activities, calls, order)
    assert [a.nodes for a in found] == [("p1",), ("fc1",), ("fc1",), ("c2",), ("fc2",)] * 2


def node(name, start, end, op="Conv", thread=5):
    return HostSpan(
        name=name, kind="node", start_ns=start, end_ns=end, nodes=(name,), op_type=op, thread=thread
    )


def test_onnx_runtimes_kernels_go_to_the_node_that_launched_them_however_late_they_run():
    activities, calls = launched(["cudnn", "cudnn", "relu", "cast"])
    late = [
        Activity(name=a.name, kind="kernel", correlation=a.correlation, start_ns=900 + at, end_ns=905 + at)
        for at, a in enumerate(activities)
    ]
    nodes = [node("c1", -5, 95), node("c2", 95, 200), node("r2", 199, 250, "Relu")]
    found = profile_attribution.by_nodes(late, calls, nodes)
    assert [a.nodes for a in found] == [("c1",), ("c2",), ("r2",), ()]
    assert found[2].op_type == "Relu"


def test_a_launch_at_the_edge_is_given_within_the_clocks_error_alone():
    activities, calls = launched(["a", "b"])
    nodes = [node("n", 2, 50)]
    assert [a.nodes for a in profile_attribution.by_nodes(activities, calls, nodes)] == [(), ()]
    assert [a.nodes for a in profile_attribution.by_nodes(activities, calls, nodes, 3)] == [("n",), ()]


def test_copies_between_host_and_device_are_of_no_node():
    _, calls = launched(["a"])
    copies = [
        Activity(name="m", kind="memcpy", copy=way, start_ns=20, end_ns=30, correlation=1)
        for way in ("HtoD", "DtoD")
    ]
    found = profile_attribution.by_nodes(copies, calls, [node("n", 0, 50)])
    assert [a.nodes for a in found] == [(), ("n",)]


def test_an_activity_belongs_to_the_pass_that_started_it_and_shares_are_of_time():
    activities, calls = launched(["a", "b", "c"])
    marks = tuple(
        Mark(name=name, kind="window", start_ns=start, end_ns=end, run=run)
        for name, start, end, run in (("warm-up", 0, 90, None), ("pass", 90, 195, 0), ("pass", 195, 205, 1))
    )
    events = profile_attribution.with_runs(
        Events(activities=tuple(activities), calls=tuple(calls), marks=marks)
    )
    assert [a.run for a in events.activities] == [None, 0, 1]
    found = profile_attribution.by_nodes(events.activities, calls, [node("n", 90, 150)])
    assert profile_attribution.attributed_share(found) == 0.5
    assert profile_attribution.attributed_share(()) is None


# ------------------------------------------------------------------------------------ ONNX Runtime's profile


def written(tmp_path, runs, cut=0):
    """A profile with these runs: (ts, dur, [(node, op, ts, dur)]) in µs."""
    events = [
        {
            "cat": "Session",
            "name": "session_initialization",
            "ts": 1,
            "dur": 5,
            "tid": 1,
            "args": {},
            "ph": "X",
        }
    ]
    for ts, dur, nodes in runs:
        for name, op, at, lasts in nodes:
            arguments = {"op_name": op, "provider": "CUDAExecutionProvider"}
            events.append(
                {
                    "cat": "Node",
                    "name": f"{name}_kernel_time",
                    "ts": at,
                    "dur": lasts,
                    "tid": 5,
                    "args": arguments,
                }
            )
        events.append({"cat": "Session", "name": "model_run", "ts": ts, "dur": dur, "tid": 5, "args": {}})
    text = json.dumps(events)
    file = tmp_path / "profile.json"
    file.write_text(text[: len(text) - cut])
    return file


def test_the_offset_puts_every_run_into_its_span(tmp_path):
    offset = 40_000_000
    runs = [(10, 9, []), (100, 50, [("c1", "FusedConv", 110, 20), ("x", "Cast", 130, 5)]), (200, 50, [])]
    found = profile_ort.read(written(tmp_path, runs))
    spans = [(offset + (ts - 4) * 1000, offset + (ts + dur + 4) * 1000) for ts, dur, _ in runs[1:]]
    clock = profile_ort.align(found, spans)
    assert abs(-clock.offset_ns - offset) <= clock.error_ns
    assert clock.error_ns <= 5000

    def op_type_of(nodes):
        return "Conv" if "conv1" in nodes else ""

    made = profile_ort.intervals(found, clock, (0, 1), {"c1": ("conv1", "relu1")}, op_type_of)
    assert [(i.name, i.nodes, i.op_type, i.run) for i in made if i.kind == "node"] == [
        ("c1", ("conv1", "relu1"), "Conv", 0),
        ("x", (), "Cast", 0),
    ]
    assert abs(made[1].start_ns - (offset + 110_000)) <= clock.error_ns
    assert [(i.run, i.thread, i.time_ns) for i in made if i.kind == "run"] == [(0, 5, 50_000), (1, 5, 50_000)]


def test_a_run_whose_microseconds_were_cut_off_still_holds_its_nodes(tmp_path):
    found = profile_ort.read(written(tmp_path, [(100, 50, [("c1", "Conv", 110, 41)])]))
    clock = profile_ort.align(found, [(90_000, 160_000)])
    run, node = profile_ort.intervals(found, clock, (0,), {}, lambda nodes: "Conv")
    assert (run.kind, node.kind) == ("run", "node")
    assert (run.time_ns, run.end_ns) == (51_000, node.end_ns)


def test_the_moment_at_which_the_profile_began_is_taken_where_the_runs_allow_it(tmp_path):
    found = profile_ort.read(written(tmp_path, [(100, 50, []), (200, 50, [])]))
    spans = [(1_090_000, 1_170_000), (1_190_000, 1_260_000)]
    assert profile_ort.align(found, spans, (77, 1_002_500)).offset_ns == -1_002_500
    assert profile_ort.align(found, spans, (77, 1_500_000)).error_ns > 5000


def test_runs_that_do_not_fit_are_told(tmp_path):
    found = profile_ort.read(written(tmp_path, [(100, 50, []), (200, 50, [])]))
    with pytest.raises(InputError, match="does not fit"):
        profile_ort.align(found, [(0, 60_000), (400_000, 460_000)])
    with pytest.raises(InputError, match="tells of 2 runs where 3"):
        profile_ort.align(found, [(0, 1)] * 3)


def test_a_broken_profile_is_told_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match="broken or cut short"):
        profile_ort.read(written(tmp_path, [(100, 50, [])], cut=20))
    (tmp_path / "other.json").write_text('[{"cat": "Node", "name": "a_kernel_time"}]')
    with pytest.raises(InputError, match="no profile of ONNX Runtime"):
        profile_ort.read(tmp_path / "other.json")
    with pytest.raises(InputError, match="cannot be read"):
        profile_ort.read(tmp_path / "missing.json")
