"""Profiles to show: two GPU backends whose events follow a simple rule, so that every figure can be told."""

from bench.results.event_files import write_events
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from bench.results.parts import breakdowns
from bench.results.profile_records import CaseProfile, Operator, ProcessUse, Profile, ProfileJob
from bench.results.records import Case
from bench.run.kinds.profile import KIND as PROFILE

MS, US = 1_000_000, 1_000
OPS = (("conv1", "Conv", 40), ("pool1", "MaxPool", 8), ("conv2", "Conv", 70), ("fc1", "Gemm", 20))
MANGLED = "_ZN6kernel4convIfEEvPKfPf"


def gpu_events(slow=1.0, passes=3, begin=300 * MS, kernels=4):
    """Passes of a copy in, `kernels` launches, a copy out, a wait; a call 5 µs before what it starts."""
    marks, calls, activities = [], [], []
    phases = (("context creation", 0, 0.5), ("NVRTC compile", 0.5, 0.8), ("first run", 0.8, 1.0))
    marks += [
        Mark(name=name, kind="cold", start_ns=round(a * begin), end_ns=round(b * begin), text="3 of 4 cached")
        for name, a, b in phases
    ]
    correlation, at = 0, begin

    def call(name, start, length, made=0):
        calls.append(
            ApiCall(
                name=name,
                domain="runtime",
                thread=11,
                start_ns=start,
                end_ns=start + length,
                correlation=made,
            )
        )

    for run in range(passes):
        start, correlation = at, correlation + 1
        call("cudaMemcpyAsync_v3020", at, 4 * US, correlation)
        activities.append(
            Activity(
                name="memcpy HtoD", kind="memcpy", copy="HtoD", stream=7, correlation=correlation,
                start_ns=at + 5 * US, end_ns=at + 15 * US, nbytes=100_000, from_memory="pinned",
                to_memory="device", run=run,
            )
        )  # fmt: skip
        device, host = at + 20 * US, at + 6 * US
        for index in range(kernels):
            node, op_type, length = OPS[index % len(OPS)]
            correlation += 1
            call("cudaLaunchKernel_v7000", host, 3 * US, correlation)
            device = max(device, host + 5 * US)
            end = device + round(slow * length * US)
            activities.append(
                Activity(
                    name=MANGLED if op_type == "Conv" else node, kind="kernel", stream=7, start_ns=device,
                    end_ns=end, correlation=correlation, grid=(16, 6, 1), block=(256, 1, 1), registers=40,
                    static_shared_nbytes=2048, nodes=(node,), op_type=op_type, run=run,
                )
            )  # fmt: skip
            host, device = host + 5 * US, end + US
        correlation += 1
        call("cudaMemcpyAsync_v3020", host, 2 * US, correlation)
        activities.append(
            Activity(
                name="memcpy DtoH", kind="memcpy", copy="DtoH", stream=7, correlation=correlation,
                start_ns=device, end_ns=device + 2 * US, nbytes=4_000, run=run,
            )
        )  # fmt: skip
        call("cudaStreamSynchronize_v3020", host + 3 * US, device + 4 * US - host)
        at = device + 12 * US
        marks.append(Mark(name="pass", kind="window", start_ns=start, end_ns=at, run=run))
        marks.append(Mark(name="run", kind="stage", start_ns=start + US, end_ns=host, run=run))
        at += 30 * US
    return Events(activities=tuple(activities), calls=tuple(calls), marks=tuple(sorted(marks, key=_start)))


def cpu_events(slow=1.0, passes=3, begin=50 * MS):
    marks = [Mark(name="model load", kind="cold", start_ns=0, end_ns=begin)]
    intervals, at = [], begin
    for run in range(passes):
        start = at
        for node, op_type, length in OPS:
            end = at + round(slow * length * US)
            intervals.append(
                HostSpan(
                    name=node, kind="step", start_ns=at, end_ns=end, thread=1, rung="im2col", nodes=(node,),
                    op_type=op_type, run=run,
                )
            )  # fmt: skip
            at = end + US
        marks.append(Mark(name="pass", kind="window", start_ns=start, end_ns=at, run=run))
        at += 10 * US
    return Events(intervals=tuple(intervals), marks=tuple(marks))


def measured(backend, events, batch=1, model="lenet5-digits", **others):
    passes = [m.time_ns for m in events.marks if m.name == "pass"]
    given = {
        "case": Case(model=model, backend=backend, precision="fp32", batch=batch),
        "disposition": "ok",
        "device": "A GPU",
        "samples_ns": tuple(0.8 * ns for ns in passes),
        "pass_ns": tuple(0.9 * ns for ns in passes),
        "profiled_ns": tuple(map(float, passes)),
        "cold": tuple(m for m in events.marks if m.kind == "cold"),
        "breakdowns": breakdowns(events),
        "operators": tuple(Operator(nodes=(n,), op_type=o, flops=10**7, nbytes=10**5) for n, o, _ in OPS),
        "attributed": 1.0 if events.activities else None,
        "process": ProcessUse(1.2, 1.9, 0.3, 512 << 20, 10_000, 2, 300 << 20),
        "events": {"activities": len(events.activities), "calls": len(events.calls)},
    }
    return CaseProfile(**(given | others))


def failed(backend, batch=1, model="lenet5-digits"):
    case = Case(model=model, backend=backend, precision="fp32", batch=batch)
    return CaseProfile(case=case, disposition="unsupported", reason="no profiler can be attached here")


def write(path, found, model="lenet5-digits"):
    """A profile's folder of these (CaseProfile, Events)."""
    job = ProfileJob(
        model=model,
        backends=tuple(dict.fromkeys(m.case.backend for m, _ in found)),
        batches=tuple(dict.fromkeys(m.case.batch for m, _ in found)),
    )
    folder = PROFILE.create(path, Profile(job=job, cases=tuple(m.case for m, _ in found)))
    for case, events in found:
        file = write_events(path, case.case.key, events) if case.disposition == "ok" else ""
        folder.append(
            CaseProfile(**{f: getattr(case, f) for f in case.__struct_fields__ if f != "file"}, file=file)
        )
    return path


def two_gpus(path, batches=(1, 16)):
    """The profile of two GPU backends at these batch sizes."""
    found = []
    for batch in batches:
        for backend, slow in (("engine-cuda", 1.0), ("ort-cuda", 1.5)):
            events = gpu_events(slow * batch**0.8, begin=round(300 * slow) * MS)
            found.append((measured(backend, events, batch), events))
    return write(path, found)


def _start(event):
    return event.start_ns
