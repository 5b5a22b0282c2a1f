"""A CUDA ladder that is compiled and not timed: what the compiler says of every rung, without a GPU too.

A RungMeasurement a rung and architecture (facts["architecture"]), with the same compile-time facts as a rung
that ran; "failed" has the compiler's message at the line of the rung's file. Where it is asked for, a rung
also runs on the CPU and is judged as on a GPU (bench.measure.ladder.simulated): "incorrect" has what is wrong
with it, `counted` and facts["counts"] what it costs, as numbers and as a sentence a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.measure.ladder import simulated
from bench.measure.ladder.entrants import job_params
from bench.questions import ladder_plan
from bench.results.ladder_records import ARCHITECTURE, LadderJob, RungMeasurement
from bench.words.version import requirements
from engine.cuda import rung as rung_cuda
from engine.machine import driver as cuda_driver
from kernels import launch, nvrtc, registry
from kernels.environment import installing
from kernels.errors import InputError, KernelError, UnavailableError, UnsupportedError
from kernels.gpus import Gpu
from kernels.languages.compiling import settled
from kernels.ops import Params
from kernels.registry import Rung

# For rungs that name no architecture, where no GPU does: the oldest that the ladder is held to.
OLDEST = "sm_75"
_ARCH = re.compile(r"(?:sm_)?(\d{2,3})a?")

Progress = Callable[[str, float | None], None]


def check_compiler() -> None:
    """Raises UnavailableError where NVRTC is not installed, saying what brings it."""
    if reason := nvrtc.unavailable():
        mends = installing(*requirements("nvrtc"))
        raise UnavailableError(f"nothing can be compiled here: {reason.partition(';')[0]}; {mends} brings it")


def architectures(names: Sequence[str]) -> tuple[str, ...]:
    """ "sm_80" (or "80") → what the compiler is told. Raises InputError with those it knows, and
    UnavailableError."""
    check_compiler()
    known = nvrtc.architectures()
    found = []
    for name in names:
        match = _ARCH.fullmatch(name)
        if match is None or f"sm_{match[1]}" not in known:
            raise InputError(
                f"architecture {name!r} is not one that this compiler knows; it knows {', '.join(known)}"
            )
        found.append(f"sm_{name.removeprefix('sm_')}")
    return tuple(dict.fromkeys(found))


def meant_for(rung: Rung) -> str:
    """What a rung is compiled for where nobody says: this machine's GPU, else the architecture or compute
    capability that its header asks for, else OLDEST."""
    device = cuda_driver.device()
    asked = rung.needs.get("architecture", rung.needs.get("compute_capability"))
    capability = device.capability if device else asked
    return f"sm_{capability[0]}{capability[1]}" if capability else OLDEST


def run(
    job: LadderJob,
    archs: Sequence[str] = (),
    progress: Progress = lambda text, fraction: None,
    gpu: Gpu | None = None,
) -> tuple[RungMeasurement, ...]:
    """Every rung of the job's ladder, compiled for each of `archs` (none: what it is `meant_for`);
    simulated ones are also run. gpu: whose floor is told. Raises InputError as
    bench.questions.ladder_plan.plan does, UnavailableError."""
    check_compiler()
    names = [case.rung for case in ladder_plan.plan(job).cases if not case.is_reference]
    dirs = [Path(folder) for folder in job.kernel_dirs]
    params = job_params(job)
    rungs = [registry.find(job.device, job.op, name, dirs) for name in dict.fromkeys(names)]
    wanted = [(rung, arch) for rung in rungs for arch in archs or (meant_for(rung),)]
    found = []
    for number, (rung, arch) in enumerate(wanted):
        progress(f"compiling {rung.label} for {arch}", number / len(wanted))
        measured = compiled(rung, params, arch)
        if job.simulated and measured.disposition == "ok":
            progress(f"running {rung.label} without a GPU", number / len(wanted))
            measured = simulated.judged(rung, params, measured, job.seed, job.quick, arch)
            measured = simulated.with_floor(rung, params, measured, gpu) if gpu is not None else measured
        found.append(measured)
    return tuple(found)


def compiled(rung: Rung, params: Params, arch: str) -> RungMeasurement:
    """One rung for one architecture, as it would be launched on these params."""
    case, facts = ladder_plan.case_of(rung), {ARCHITECTURE: arch}
    digits = re.sub(r"\D", "", arch)
    if refused := rung.refusal(params, (int(digits[:-1]), int(digits[-1]))):
        reason = refused.removeprefix(f"{rung.label} ")
        return RungMeasurement(case=case, disposition="unsupported", reason=reason, facts=facts)
    try:
        how = launch.launch(params, rung)
        cubin = nvrtc.compile_rung(rung, arch, how.defines)
        how = settled(how, rung, cubin)
        _check_names(rung, how, cubin)
        kernel, figures = rung_cuda.compiled_facts(cubin, how, rung.op, digits)
        _check_fits(rung, arch, figures)
    except (UnsupportedError, UnavailableError) as error:
        reason = str(error).removeprefix(f"{rung.label} ")
        return RungMeasurement(case=case, disposition="unsupported", reason=reason, facts=facts)
    except KernelError as error:
        return RungMeasurement(case=case, disposition="failed", reason=str(error), facts=facts)
    facts |= rung_cuda.launch_facts(how, rung.op, kernel)
    return RungMeasurement(case=case, disposition="ok", compiled=figures, facts=facts)


def _check_names(rung: Rung, how: launch.Launch, cubin: Path) -> None:
    """Raises KernelError where the file lacks what its launch names, which loading it would find."""
    for stage in how.kernels(rung.op):
        if nvrtc.resources(cubin, stage.function) is None:
            raise KernelError(f'{rung.path}: it must define extern "C" __global__ void {stage.function}(…)')
    if how.constant is not None and how.constant[0].encode() not in cubin.read_bytes():
        raise KernelError(f'{rung.path}: it must define extern "C" __constant__ … {how.constant[0]}[]')


def _check_fits(rung: Rung, arch: str, figures: dict[str, float]) -> None:
    """Raises KernelError where not one block fits a multiprocessor: no such launch is ever started."""
    if figures.get("occupancy") == 0:
        raise KernelError(
            f"{rung.path}: a block of {figures['threads']:,.0f} threads with {figures['registers']:.0f} "
            f"registers each and {figures['shared_nbytes']:,.0f} bytes of shared memory does not fit a "
            f"multiprocessor of {arch}"
        )
