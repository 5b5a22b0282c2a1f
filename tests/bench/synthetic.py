"""Runs as a worker would have measured them, made from the records' own constructors with a fixed seed.

Times follow a plain model (an overhead a pass, a cost an image) with noise, so that intervals, verdicts and
charts have something real to say; nothing here was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.results.records import (
    Accuracy,
    BackendInfo,
    Case,
    Disposition,
    EndToEnd,
    Environment,
    ErrorStats,
    Job,
    Layer,
    Measurement,
    ModelInfo,
    Run,
    Telemetry,
    Validity,
)

BACKENDS = ("engine-cuda", "ort-cuda", "engine-cpu", "ort-cpu")
REFERENCE = {
    "engine-cuda": "ort-cuda",
    "ort-cuda": "ort-cuda",
    "engine-cpu": "ort-cpu",
    "ort-cpu": "ort-cpu",
    "ort-cuda-tuned": "ort-cuda",
    "ort-cuda-tuned-strict": "ort-cuda",
    "torch-cuda-graph": "ort-cuda",
    "torch-compile-cuda": "ort-cuda",
    "torch-compile-cuda-tuned": "ort-cuda",
}
# Overhead a pass and cost an image, in microseconds.
COSTS = {
    "engine-cuda": (9, 0.9),
    "ort-cuda": (31, 0.55),
    "engine-cpu": (60, 45.0),
    "ort-cpu": (25, 30.0),
    "ort-cuda-tuned": (28, 0.5),
    "ort-cuda-tuned-strict": (29, 0.52),
    "torch-cuda-graph": (33, 0.8),
    "torch-compile-cuda": (35, 0.4),
    "torch-compile-cuda-tuned": (30, 0.35),
}
DOUBLING = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
OPS = (
    ("Conv+Tanh", 0.45),
    ("MaxPool", 0.1),
    ("Conv+Tanh", 0.25),
    ("MaxPool", 0.05),
    ("Gemm", 0.1),
    ("Softmax", 0.05),
)


def measurement(
    case: Case,
    disposition: Disposition = "ok",
    reason: str = "",
    seed: int = 0,
    layers: bool = True,
    top1: float = 0.9725,
    agreement: float = 1.0,
) -> Measurement:
    """One case as measured; with a disposition that has no numbers, only the reason."""
    reference = REFERENCE[case.backend]
    if disposition not in ("ok", "incorrect"):
        return Measurement(case=case, disposition=disposition, reason=reason, reference=reference)
    # The window's fake worker starts for nearly every test of it, and most of those measure nothing: loading
    # NumPy would be most of what it does.
    import numpy as np

    rng = np.random.default_rng([seed, *case.key.encode()])
    overhead, cost = COSTS[case.backend]
    scale = {"fp32": 1.0, "tf32": 0.6, "fp16": 0.4}.get(case.precision, 0.8)
    base = 1e3 * (overhead + cost * case.batch * scale)
    samples = tuple(float(v) for v in base * (1 + 0.02 * rng.standard_normal(30) ** 2))
    cuda = case.backend.endswith("cuda")
    h2d, d2h = (4e3 + 300 * case.batch, 3e3 + 5 * case.batch) if cuda else (900.0, 400.0)
    phases = {
        "load": 4.1e6,
        "compile": 2.2e8 if case.backend == "engine-cuda" else 0.0,
        "alloc": 3e5,
        "upload": 6e5,
    }
    phases |= {
        "h2d": h2d,
        "compute": base * (0.2 if cuda else 1.0),
        "d2h": d2h,
        "sync": base * 0.82 if cuda else 0.0,
    }
    wall = h2d + d2h + base * 1.06
    own = tuple(
        Layer(
            nodes=(f"node{i}",),
            op_type=op_type,
            output=f"t{i}",
            shape=(case.batch, 6, 12, 12),
            parameters=156 if "Conv" in op_type else 0,
            flops=10**5 * case.batch,
            nbytes=4 * 864 * case.batch,
            rung="naive" if case.backend.startswith("engine") else "",
            time_ns=base * share * 0.97,
            clock="events" if cuda else "host",
            isolated=ErrorStats(
                rel_l2=1.1e-7, max_abs=3e-7, mean_abs=5e-8, max_rel=4e-7, bound=1e-5, ok=True, ratio=1.4
            ),
        )
        for i, (op_type, share) in enumerate(OPS)
    )
    good = disposition == "ok"
    rel = 2.1e-7 if good else 3.4e-2
    return Measurement(
        case=case,
        disposition=disposition,
        reason=reason,
        reference=reference,
        samples_ns=samples if good else (),
        rounds=(0, 10, 20),
        first_run_ns=int(base * 3),
        phases=phases,
        wall_ns=wall,
        dataset_ns={
            "wall": wall * -(-case.images // case.batch),
            "compute": base * -(-case.images // case.batch),
        },
        layers=own if layers else (),
        accuracy=Accuracy(
            images=case.images,
            labelled=True,
            top1=top1,
            top5=0.9990,
            agreement=agreement,
            reference=reference,
            checked=min(8, case.batch),
            output=ErrorStats(
                rel_l2=rel, max_abs=rel, mean_abs=rel / 9, max_rel=rel * 2, bound=1e-5, ok=good, ratio=1.8
            ),
        ),
        telemetry=Telemetry(device="GPU-1", sm_clock_mhz=(1980.0, 1965.0, 1980.0)) if cuda else Telemetry(),
        validity=Validity(stop_reason="interval"),
        facts={"provider": "CUDAExecutionProvider" if cuda else "CPUExecutionProvider"},
        memory={"weights": 177_000, "arena": 52_000 * case.batch},
        started_at="2026-01-02T03:04:05",
    )


def end_to_end(ns: float) -> EndToEnd:
    """A batch takes that long; at 100 µs the bus is full."""
    return EndToEnd(
        samples_ns=(ns, ns, ns, ns), rounds=(0, 2), batches=12, lanes=3, carries="uint8", nbytes_in=64 * 784,
        nbytes_out=2560, bus_bytes_per_s=64 * 784 * 1e4, checked=6,
    )  # fmt: skip


def run(
    models: Sequence[str] = ("lenet5-digits",),
    backends: Sequence[str] = BACKENDS,
    batches: Sequence[int] = DOUBLING,
    precisions: Sequence[str] = ("fp32",),
    images: Sequence[int] = (1000,),
    failures: Mapping[tuple[str, int], tuple[Disposition, str]] | None = None,
    layers: bool = True,
) -> tuple[Run, list[Measurement]]:
    """A run and its measurements; `failures` by (backend, batch): disposition and reason."""
    failures = failures or {}
    cases = tuple(
        Case(model=m, backend=b, precision=p, batch=n, images=i)
        for m in models
        for i in images
        for n in batches
        for b in backends
        for p in (precisions if b == "ort-cuda" else precisions[:1])
    )
    measured = [
        measurement(case, *failures.get((case.backend, case.batch), ("ok", "")), layers=layers)
        for case in cases
    ]
    return record(cases), measured


def rivals() -> tuple[Run, list[Measurement]]:
    """Four backends in four precisions, of which three have references of their own."""
    backends = {"engine-cuda": 5.0, "ort-cuda": 30.0, "ort-cuda-tuned": 20.0, "torch-cuda-graph": 25.0}
    cases, measured = [], []
    for precision in ("fp32", "fp32-tc", "tf32", "fp16"):
        for batch in (1, 8):
            for backend, us in backends.items():
                case = Case(model="lenet5-digits", backend=backend, precision=precision, batch=batch)
                made = Measurement(case=case, disposition="ok", reference="ort-cuda",
                                   samples_ns=(us * 1e3, us * 1.01e3) * 6, rounds=(0, 4, 8))  # fmt: skip
                if precision == "fp32-tc" and backend != "engine-cuda":
                    made = Measurement(
                        case=case, disposition="unsupported", reason="it does not offer fp32-tc"
                    )
                cases.append(case)
                measured.append(made)
    return record(cases), measured


def record(cases: Iterable[Case]) -> Run:
    """`run.json` for those cases."""
    cases = tuple(cases)

    def unique(field: str) -> tuple:
        return tuple(dict.fromkeys(getattr(case, field) for case in cases))

    environment = Environment(
        machine="bench-7",
        os="Linux 6.8",
        python="3.12.4",
        cpu="Example CPU 9000",
        cores=16,
        memory_nbytes=137_438_953_472,
        gpu="Example GPU 80 GB",
        driver="580.65",
        cuda="13.0",
        packages={"onnxruntime-gpu": "1.28.0", "numpy": "2.3.1", "cupy-cuda13x": "14.0"},
        backends=tuple(
            BackendInfo(name=b, device=b.split("-")[1], precisions=("fp32",), reference=REFERENCE[b])
            for b in BACKENDS
        ),
        kernelscope="0.1.0",
    )
    job = Job(
        models=unique("model"),
        backends=unique("backend"),
        precisions=unique("precision"),
        batches=unique("batch"),
        images=unique("images"),
    )
    return Run(
        job=job,
        cases=cases,
        command="python main.py compare "
        + " ".join(job.models)
        + " --batch "
        + ",".join(map(str, job.batches)),
        created_at="2026-01-02T03:04:05",
        environment=environment,
        models=tuple(ModelInfo(name=m, title="", parameters=44_426) for m in job.models),
    )
