"""The small print under every chart: on what machine, with what versions, how and when it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from bench.results.records import Environment, Measurement, Run, stem
from bench.words import units


def footer(runs: Sequence[Run], measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Lines of the machine, or of each of several, with its driver; of versions; of clock, L2 mode and date;
    of the command, or of many NAMED, as all of them would be more than the chart; of what was taken for what
    a model's file leaves open."""
    if not runs:
        return ()
    machines = list(dict.fromkeys(map(machine, runs)))
    lines = [*machines, versions(runs[-1]), settings(runs[-1], measurements)]
    commands = list(dict.fromkeys(run.command for run in runs if run.command))
    more = [f"and {len(commands) - NAMED} more like it"] if len(commands) > NAMED else []
    shown = {measured.case.model for measured in measurements}
    models = {m.name: m.notes for run in runs for m in run.models if m.name in shown}
    notes = [f"{stem(name)}: {note}" for name, told in models.items() for note in told]
    return tuple(line for line in (*lines, "; ".join([*commands[:NAMED], *more]), *notes[:NOTED]) if line)


NAMED = 2  # commands
NOTED = 4  # sentences of what models leave open


class Recorded(Protocol):
    """What was measured somewhere: a run, a ladder."""

    @property
    def environment(self) -> Environment: ...


def machine(run: Recorded) -> str:
    """Host, processors, driver and system, as far as they are known."""
    env = run.environment
    cpu = f"{env.cpu or 'CPU'} ({units.count(env.cores, 'core')})" if env.cores else env.cpu
    return _joined([env.machine, cpu, env.gpu, f"driver {env.driver}" if env.driver else "", env.os])


def device(run: Recorded) -> str:
    """The GPU that it has, else the CPU."""
    return run.environment.gpu or run.environment.cpu or "an unknown machine"


def devices(runs: Iterable[Recorded]) -> str:
    """Those of several runs, each named once."""
    return " and ".join(dict.fromkeys(map(device, runs)))


def processors(run: Recorded, cuda: bool = True) -> str:
    """The GPU, where `cuda` was measured on, and the CPU, as far as they are known."""
    env = run.environment
    cores = f" ({units.count(env.cores, 'core')})" if env.cores else ""
    return " and ".join(
        filter(None, [env.gpu if cuda else "", f"{env.cpu or 'CPU'}{cores}" if env.cpu or cores else ""])
    )


def versions(run: Recorded) -> str:
    """Versions of the software that what was measured depends on."""
    env = run.environment
    packages = [f"{name} {version}" for name, version in env.packages.items() if name in SHOWN_PACKAGES]
    cuda = f"CUDA {env.cuda}" if env.cuda else ""
    python = f"Python {env.python}" if env.python else ""
    return _joined([f"Kernelscope {env.kernelscope}" if env.kernelscope else "", cuda, *packages, python])


def settings(run: Run, measurements: Sequence[Measurement]) -> str:
    """Clock, L2 mode, threads, instances, the rivals' versions and the date."""
    job = run.job
    threads = units.count(job.threads, "thread") if job.threads else "threads: one a core"
    date = run.created_at.replace("T", " ")[:16]
    several = units.instances(m.instances for m in measurements if m.samples_ns)
    told = rivals(measurements)
    told |= {f"{m.case.backend}: {m.facts['swapped']}" for m in measurements if "swapped" in m.facts}
    return _joined([clock(measurements), f"L2 {job.l2}", threads, several, *sorted(told), date])


def rivals(measurements: Iterable[Measurement], names: Sequence[str] | None = None) -> set[str]:
    """The versions of rivals (None: RIVALS) as they told them when they ran; an environment knows what is
    installed beside ours, which may be another."""
    names = RIVALS if names is None else names
    return {f"{name} {m.facts[name]}" for m in measurements for name in names if name in m.facts}


def _joined(parts: Iterable[str]) -> str:
    return " · ".join(filter(None, parts))


# Facts of a case: their packages may be of another Python than ours.
RIVALS = ("torch", "openvino", "cudnn_frontend", "tensorrt")
SHOWN_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "cupy", "cupy-cuda13x", "cupy-cuda12x", "numpy")


def clock(measurements: Iterable[Measurement]) -> str:
    """What the forward pass was timed by, and the SM clock the device ran at meanwhile, where known."""
    measurements = list(measurements)
    cuda = any("-cuda" in m.case.backend for m in measurements if m.samples_ns)
    cpu = any("-cuda" not in m.case.backend for m in measurements if m.samples_ns)
    used = " and ".join([*(["CUDA events"] if cuda else []), *(["host clock"] if cpu else [])])
    mhz = sorted(value for m in measurements for value in m.telemetry.sm_clock_mhz)
    if not used:
        return ""
    return f"timed by {used}" + (f", SM clock {mhz[len(mhz) // 2]:.0f} MHz" if mhz else "")
