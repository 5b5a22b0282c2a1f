"""The small print under every chart: on what machine, with what versions, how and when it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.records import Measurement, Run


def footer(runs: Sequence[Run], measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Two or three lines: machine, driver, versions; clock, L2 mode, date; the command."""
    if not runs:
        return ()
    env, job = runs[-1].environment, runs[-1].job
    cpu = f"{env.cpu or 'CPU'} ({env.cores} cores)" if env.cores else env.cpu
    machine = [env.machine, cpu, env.gpu, f"driver {env.driver}" if env.driver else "", env.os]
    packages = [f"{name} {version}" for name, version in env.packages.items() if name in SHOWN_PACKAGES]
    cuda = f"CUDA {env.cuda}" if env.cuda else ""
    versions = [f"Kernelscope {env.kernelscope}" if env.kernelscope else "", cuda, *packages]
    if env.python:
        versions.append(f"Python {env.python}")
    threads = f"{job.threads} threads" if job.threads else "threads: one a core"
    how = [clock(measurements), f"L2 {job.l2}", threads, runs[-1].created_at.replace("T", " ")[:16]]
    commands = "; ".join(dict.fromkeys(run.command for run in runs if run.command))
    lines = [" · ".join(filter(None, part)) for part in (machine, versions, how)]
    return tuple(line for line in (*lines, commands) if line)


SHOWN_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "cupy", "cupy-cuda13x", "cupy-cuda12x", "numpy")


def clock(measurements: Iterable[Measurement]) -> str:
    """What the forward pass was timed by, and the SM clock the device ran at meanwhile, where known."""
    measurements = list(measurements)
    cuda = any(m.case.backend.endswith("cuda") for m in measurements if m.samples_ns)
    cpu = any(not m.case.backend.endswith("cuda") for m in measurements if m.samples_ns)
    used = " and ".join([*(["CUDA events"] if cuda else []), *(["host clock"] if cpu else [])])
    mhz = sorted(value for m in measurements for value in m.telemetry.sm_clock_mhz)
    if not used:
        return ""
    return f"timed by {used}" + (f", SM clock {mhz[len(mhz) // 2]:.0f} MHz" if mhz else "")
