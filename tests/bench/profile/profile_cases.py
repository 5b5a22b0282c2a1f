"""A small recorded profile: one GPU case of two passes, whose kernels share names, with round times."""

from __future__ import annotations

from bench.results import parts as profile_parts
from bench.results.events import Activity, ApiCall, Events, HostSpan, Mark
from bench.results.machine_limits import MachineLimits
from bench.results.profile_records import Breakdown, CaseProfile, DeviceFacts, Operator, ProcessUse
from bench.results.records import Case

CASE = Case(model="small", backend="engine-cuda", precision="fp32", batch=16)
CONV, POOL, FC = ("conv1", "relu1"), ("pool1",), ("fc1",)
SGEMM = "_ZN7cutlass6KernelINS_4gemm4GemmIfEEEEvNT_6ParamsE"
OP_TYPES = {CONV: "Conv", POOL: "MaxPool", FC: "Gemm"}
LIMITS = MachineLimits(
    device="cuda",
    bytes_per_s=1e9,
    flops_per_s=1e10,
    copied_by="a copy",
    multiplied_by="multiply-adds",
    measured_on="here",
    measured_at="now",
)


def _pass(start: int, number: int) -> tuple[list[Activity], list[ApiCall]]:
    activities, calls = [], []

    def started(name: str, call: str, at: int, begins: int, lasts: int, **fields: object) -> None:
        correlation = 100 * (number + 1) + len(activities)
        calls.append(
            ApiCall(name=call, domain="runtime", start_ns=start + at, end_ns=start + at + 50, thread=7,
                    correlation=correlation)
        )  # fmt: skip
        activities.append(
            Activity(
                name=name,
                start_ns=start + begins,
                end_ns=start + begins + lasts,
                correlation=correlation,
                stream=13,
                **fields,  # type: ignore[arg-type]
            )
        )

    copies = {"kind": "memcpy", "nbytes": 1000}
    started("memcpy HtoD", "cudaMemcpyAsync", 0, 100, 200, copy="HtoD", **copies)
    for nodes, name, at, begins, lasts, blocks in (
        (CONV, SGEMM, 400, 500, 1000, 200),
        (POOL, "pool", 450, 1500, 30, 4),
        (FC, SGEMM, 500, 1600, 500, 200),
    ):
        started(
            name, "cudaLaunchKernel", at, begins, lasts,
            kind="kernel", grid=(blocks, 1, 1), block=(128, 1, 1), nodes=nodes, op_type=OP_TYPES[nodes],
            run=number,
        )  # fmt: skip
    started("memcpy DtoH", "cudaMemcpyAsync", 2150, 2250, 100, copy="DtoH", **copies)
    calls.append(
        ApiCall(
            name="cudaStreamSynchronize",
            domain="runtime",
            start_ns=start + 560,
            end_ns=start + 2120,
            thread=7,
        )
    )
    return activities, calls


def events() -> Events:
    """Created from 0 to 10,000, two passes of 2,500 ns, closed until 20,000."""
    activities: list[Activity] = []
    calls = [
        ApiCall(name="cudaMalloc", domain="runtime", start_ns=1000, end_ns=3000, thread=7, correlation=1),
        ApiCall(name="cuMemAlloc_v2", domain="driver", start_ns=1200, end_ns=2900, thread=7, correlation=2),
        ApiCall(name="cudaHostAlloc", domain="runtime", start_ns=4000, end_ns=5000, thread=7, correlation=3),
        ApiCall(
            name="cudaFreeHost", domain="runtime", start_ns=16_000, end_ns=19_000, thread=7, correlation=4
        ),
    ]
    marks = [
        Mark(name="create", kind="window", start_ns=0, end_ns=10_000),
        Mark(name="close", kind="window", start_ns=15_500, end_ns=20_000),
    ]
    for number, start in enumerate((10_000, 12_600)):
        its, made = _pass(start, number)
        activities += its
        calls += made
        marks.append(Mark(name="pass", kind="window", start_ns=start, end_ns=start + 2500, run=number))
        marks.append(Mark(name="bind", kind="stage", start_ns=start, end_ns=start + 380, run=number))
    return Events(
        activities=tuple(activities),
        calls=tuple(sorted(calls, key=lambda call: call.start_ns)),
        intervals=(HostSpan(name="activity buffer", kind="overhead", start_ns=6000, end_ns=6500),),
        marks=tuple(sorted(marks, key=lambda mark: mark.start_ns)),
    )


def profile(**changes: object) -> CaseProfile:
    found: tuple[Breakdown, ...] = profile_parts.breakdowns(events())
    fields: dict[str, object] = {
        "case": CASE,
        "disposition": "ok",
        "device": "cuda",
        "samples_ns": (2000.0, 2010.0),
        "pass_ns": (2400.0, 2420.0, 2410.0),
        "profiled_ns": (2500.0, 2500.0),
        "cold": (
            Mark(name="interpreter", kind="cold", start_ns=0, end_ns=20_000_000),
            Mark(name="NVRTC compile", kind="cold", start_ns=20_000_000, end_ns=90_000_000, text="0 of 3"),
            Mark(name="steady state", kind="cold", start_ns=90_000_000, end_ns=90_002_400),
        ),
        "breakdowns": found,
        "operators": (
            Operator(nodes=CONV, op_type="Conv", flops=8_000, nbytes=100),
            Operator(nodes=POOL, op_type="MaxPool", flops=10, nbytes=15),
            Operator(nodes=FC, op_type="Gemm", flops=400, nbytes=400),
        ),
        "attributed": 1.0,
        "dropped": 0,
        "gpu": DeviceFacts(name="a GPU", multiprocessors=132),
        "process": ProcessUse(real_s=4.3, user_s=3.1, system_s=1.06, max_rss_nbytes=1 << 30, minor_faults=12),
    }
    return CaseProfile(**(fields | changes))  # type: ignore[arg-type]
