"""A profiled window divided: every nanosecond goes to one thing, and the parts add up."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.results import api_calls as profile_api
from bench.results import kernel_names as profile_names
from bench.results import parts as profile_parts
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from bench.results.parts import Ranked


def mark(name, start, end, kind="window", run=None):
    return Mark(name=name, kind=kind, start_ns=start, end_ns=end, run=run)


def kernel(start, end, op="Conv", correlation=0, stream=7):
    return Activity(
        name="k",
        kind="kernel",
        start_ns=start,
        end_ns=end,
        op_type=op,
        correlation=correlation,
        stream=stream,
    )


def copy(start, end, way="HtoD", correlation=0):
    return Activity(
        name=f"memcpy {way}", kind="memcpy", start_ns=start, end_ns=end, copy=way, correlation=correlation
    )


def call(name, start, end, correlation=0, thread=1):
    domain = "runtime" if name.startswith("cuda") else "driver"
    return ApiCall(
        name=name, domain=domain, start_ns=start, end_ns=end, correlation=correlation, thread=thread
    )


def times(events, window="pass"):
    found = profile_parts.breakdown(events, window)
    assert sum(share.time_ns for share in found.parts) == found.wall_ns
    return {share.key: share.time_ns for share in found.parts}


def test_a_pass_is_divided_by_what_went_on():
    events = Events(
        activities=(copy(20, 30, "HtoD", 1), kernel(50, 80, "Conv", 2), kernel(82, 90, "Gemm", 3)),
        calls=(
            call("cudaMemcpyAsync", 15, 18, 1),
            call("cudaLaunchKernel", 40, 45, 2),
            call("cudaLaunchKernel", 45, 48, 3),
            call("cudaStreamSynchronize", 60, 95),
            call("cudaMalloc", 96, 98),
            call("cudaEventRecord", 98, 99),
        ),
        marks=(
            mark("pass", 0, 110, run=0),
            mark("bind", 0, 35, "stage", 0),
            mark("run", 35, 60, "stage", 0),
        ),
    )
    assert times(events) == {
        "op:Conv": 30,
        "op:Gemm": 8,
        "h2d": 10,
        "launch": 5 + 10 + 2,  # before the copy; from the first launch to its kernel; between the kernels
        "alloc": 2,
        "sync": 5,
        "api": 1,
        "host": 15 + 5 + 5,  # in the stage run too: the device is idle and CUDA is not called
        "rest": 1 + 11,  # behind the last stage
    }


def test_a_stage_of_which_nothing_was_recorded_is_not_the_hosts():
    stages = (
        mark("pass", 0, 100, run=0),
        mark("bind", 0, 10, "stage", 0),
        mark("run", 10, 70, "stage", 0),
        mark("synchronize", 70, 90, "stage", 0),
        mark("fetch", 90, 100, "stage", 0),
        mark("pass", 100, 200, run=1),
        mark("run", 100, 200, "stage", 1),
    )
    events = Events(calls=(call("cudaGetLastError", 120, 125),), marks=stages)
    assert times(events) == {"host": 95, "api": 5, "rest": 100}
    steps = (HostSpan(name="s", kind="step", start_ns=20, end_ns=60, op_type="Conv"),)
    assert times(Events(intervals=steps, marks=stages)) == {"op:Conv": 40, "host": 60, "rest": 100}
    assert times(Events(marks=stages)) == {"rest": 200}
    # What was watched in it alone is known; of the host's other work nothing is.
    assert times(Events(intervals=(interval("staging", 0, 6),), marks=stages)) == {"staging": 6, "rest": 194}


def interval(kind, start, end, op="", provider=""):
    return HostSpan(name="i", kind=kind, start_ns=start, end_ns=end, op_type=op, provider=provider)


def test_filling_page_locked_memory_is_no_code_of_the_hosts_and_hides_behind_the_device():
    events = Events(
        activities=(copy(40, 60, "HtoD", 1), copy(65, 80, "HtoD", 2), kernel(90, 95, correlation=3)),
        calls=(
            call("cudaMemcpyAsync", 30, 33, 1),
            call("cudaMemcpyAsync", 61, 63, 2),
            call("cudaStreamSynchronize", 70, 82),
            call("cudaLaunchKernel", 84, 88, 3),
        ),
        intervals=(interval("staging", 2, 30), interval("staging", 35, 61)),
        marks=(
            mark("pass", 0, 100, run=0),
            mark("bind", 0, 83, "stage", 0),
            mark("run", 83, 100, "stage", 0),
        ),
    )
    assert times(events) == {
        "op:Conv": 5,
        "h2d": 20 + 15,
        "staging": 28 + 1,  # what the first copy hides is the copy's; until it begins, its launch's
        "launch": 10 + 4 + 6,
        "sync": 2,
        "host": 2 + 2 + 5,
    }


def test_what_onnx_runtime_does_on_the_host_is_not_pythons():
    steps = (
        interval("run", 10, 90),
        interval("node", 20, 50, "Conv", "CUDAExecutionProvider"),
        interval("node", 50, 70, "Flatten", "CPUExecutionProvider"),
    )
    stages = (mark("pass", 0, 100, run=0), mark("run", 0, 100, "stage", 0))
    events = Events(intervals=steps, marks=stages)
    assert times(events) == {"op:Flatten": 20, "ort": 60, "host": 20}


def test_time_in_which_the_thread_had_no_core_is_not_the_hosts():
    stages = tuple(mark("run", low, low + 100, "stage", run) for run, low in enumerate((0, 100, 200)))
    passes = [
        msgspec.structs.replace(mark("pass", 100 * run, 100 * run + 100, run=run), cpu_ns=cpu)
        # Waits in the step, and 30 more; loses what is in no step and more; tells nothing of its clock.
        for run, cpu in enumerate((40, 0, None))
    ]
    steps = tuple(interval("step", low + 10, low + 40, "Conv") for low in (0, 100, 200))
    found = profile_parts.breakdown(Events(intervals=steps, marks=(*passes, *stages)), "pass")
    assert {share.key: share.time_ns for share in found.parts} == {"op:Conv": 90, "host": 110, "rest": 100}
    assert (found.idle_ns, found.cpu_ns) == (100, None)
    told = profile_parts.breakdown(Events(intervals=steps, marks=(*passes[:2], *stages)), "pass")
    assert (told.idle_ns, told.cpu_ns) == (100, 40)
    alone = profile_parts.breakdown(Events(intervals=steps, marks=(*passes[2:], *stages)), "pass")
    assert (alone.part("host"), alone.part("rest"), alone.idle_ns) == (70, 0, 0)


def test_kernels_that_overlap_on_two_streams_are_not_counted_twice():
    events = Events(
        activities=(kernel(10, 50, "Conv"), kernel(30, 70, "Gemm", stream=8), copy(60, 90, "DtoH")),
        marks=(mark("pass", 0, 100, run=0),),
    )
    assert times(events) == {"op:Conv": 40, "op:Gemm": 20, "d2h": 20, "rest": 20}


def test_what_lies_over_the_edge_of_a_window_counts_for_its_part_inside():
    events = Events(
        activities=(kernel(0, 30), kernel(90, 130)),
        marks=(mark("pass", 10, 100, run=0), mark("pass", 120, 140, run=1)),
    )
    found = profile_parts.breakdown(events, "pass")
    assert (found.passes, found.wall_ns, found.wall) == (2, 110, 55)
    assert found.part("op:Conv") == (20 + 10 + 10) / 2
    assert {share.key: share.count for share in found.parts} == {"op:Conv": 3, "rest": 0}


def test_a_pass_that_warms_up_is_in_the_whole_alone():
    events = Events(
        activities=(kernel(5, 6), kernel(15, 16)),
        marks=(
            mark("create", 0, 4),
            mark("warm-up", 4, 10),
            mark("pass", 10, 20, run=0),
            mark("close", 22, 25),
        ),
    )
    windows = {made.window: made.wall_ns for made in profile_parts.breakdowns(events)}
    assert windows == {"pass": 10, "create": 4, "close": 3, "all": 25}
    assert times(events, "all")["op:Conv"] == 2
    assert times(events)["op:Conv"] == 1


def test_steps_of_a_cpu_are_its_kernels_and_a_gpu_node_is_the_hosts_work():
    steps = (
        interval("step", 10, 40, "Conv"),
        interval("node", 40, 60, "Gemm", "CPUExecutionProvider"),
        interval("node", 60, 70, "MaxPool", "CUDAExecutionProvider"),
        interval("overhead", 80, 90),
        HostSpan(name="lazy function loading", kind="overhead", start_ns=90, end_ns=95),
    )
    events = Events(intervals=steps, marks=(mark("pass", 0, 100, run=0),))
    assert times(events) == {"op:Conv": 30, "op:Gemm": 20, "ort": 10, "profiler": 10, "api": 5, "rest": 25}


CLAIMS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(-50, 150), st.integers(0, 80), st.sampled_from("abcd")),
    max_size=30,
)
WINDOWS = st.lists(st.integers(0, 120), min_size=2, max_size=8, unique=True).map(sorted)


@given(CLAIMS, WINDOWS)
def test_the_parts_add_up_and_are_what_a_look_at_every_nanosecond_finds(drawn, edges):
    claims = [Ranked(rank, start, start + length, key) for rank, start, length, key in drawn]
    windows = list(zip(edges[::2], edges[1::2], strict=False))
    shares = profile_parts.divide(claims, windows)
    assert sum(share.time_ns for share in shares.values()) == sum(high - low for low, high in windows)
    expected: dict[str, int] = {}
    for low, high in windows:
        for now in range(low, high):
            going = [claim for claim in claims if claim.start <= now < claim.end]
            key = min(going).key if going else "rest"
            expected[key] = expected.get(key, 0) + 1
    assert {key: share.time_ns for key, share in shares.items()} == expected


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("cudaLaunchKernel_v7000", "launch"),
        ("cuLaunchKernelEx", "launch"),
        ("cudaGraphLaunch_v10000", "launch"),
        ("cuMemcpyHtoDAsync_v2", "copy"),
        ("cudaMemsetAsync_ptsz", "copy"),
        ("cudaMemGetInfo", "other"),
        ("cuMemFree_v2", "alloc"),
        ("cudaHostAlloc", "alloc"),
        ("cudaFreeHost", "alloc"),
        ("cuStreamSynchronize", "sync"),
        ("cudaEventSynchronize", "sync"),
        ("cudaEventRecord", "other"),
        ("cuModuleLoadData", "load"),
        ("cuGraphInstantiateWithFlags", "load"),
        ("cuKernelGetFunction", "load"),
        ("cuKernelGetName", "other"),
    ],
)
def test_calls_are_told_apart_by_what_they_are_for(name, purpose):
    assert profile_api.purpose(name) == purpose


def test_a_family_sums_every_variant_and_no_call_inside_another():
    calls = [
        call("cudaMemcpyAsync_v3020", 0, 10),
        call("cuMemcpyHtoDAsync_v2", 2, 8),  # the runtime's own
        call("cuMemcpyDtoH_v2", 20, 25),
        call("cuMemcpyDtoH_v2", 3, 6, thread=2),
        call("cudaMemset", 30, 40),
        call("cudaMallocHost", 50, 60),
        call("cuMemAlloc_v2", 70, 71),
    ]
    assert sum(c.time_ns for c in profile_api.variants(calls, "cudaMemcpy")) == 10 + 5 + 3
    assert len(profile_api.variants(calls, "cudaMalloc")) == 1
    assert profile_api.variants(calls, "cudaFreeHost") == ()


@pytest.mark.parametrize(
    ("name", "whole", "short"),
    [
        ("conv", "conv", "conv"),
        ("_Z3addPfi", "add(float*, int)", "add"),
        (
            "_ZN7cutlass6KernelINS_4gemm4GemmIfEEEEvNT_6ParamsE",
            "void cutlass::Kernel<cutlass::gemm::Gemm<float> >(cutlass::gemm::Gemm<float>::Params)",
            "Gemm",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_tn_align1>(A::Params)",
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_tn_align1>(A::Params)",
            "cutlass_80_simt_sgemm_128x32_8x5_tn_align1",
        ),
        ("_Znonsense", "_Znonsense", "_Znonsense"),
        ("volta_sgemm_128x128_tn", "volta_sgemm_128x128_tn", "volta_sgemm_128x128_tn"),
        ("memcpy HtoD", "memcpy HtoD", "memcpy HtoD"),
        ("void (anonymous namespace)::fill<float, 4>(float*)",) * 2 + ("fill",),
    ],
)
def test_names_are_demangled_and_shortened(name, whole, short):
    assert profile_names.demangled(name) == whole
    assert profile_names.short(name) == short


def test_a_long_name_is_cut():
    assert profile_names.short("implicit_convolve_sgemm", 10) == "implicit_…"
