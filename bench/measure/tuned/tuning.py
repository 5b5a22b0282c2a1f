"""What is measured once for a case before it is prepared, where this machine does not know it yet: in the
worker, before anything of the case's group is on the device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from msgspec.structs import replace as replace_record

from bench.measure.answers.samples import repeated
from bench.measure.loaded_model import LoadedModel
from bench.measure.tuned import layouts, mixes, reference, rungs
from bench.measure.tuned.rungs import Untimed, wanted
from bench.measure.tuned.sweep import DeviceLost, Progress
from bench.results.records import Case, Job
from engine import backends
from engine import options as ort_configuration
from engine.backend import Answering, Backend, Options, Swapping, Variant
from engine.cuda.replays import one_kernel
from engine.cuda.runtime import import_cupy
from engine.cuda.stages import Launches
from engine.graph.graph import Graph
from engine.graph.plan import Step
from engine.machine import driver as cuda_driver
from engine.machine import host
from engine.machine.driver import CudaDevice
from engine.options import Configuration
from engine.ort import tuning as ort_tuning
from engine.ort.fused_conv import fused
from engine.planning import groups, planner, submodel
from engine.planning.mixed import Mix
from kernels import launch, nvrtc, registry
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError, UnsupportedError
from kernels.header import Define
from kernels.precision import budget
from kernels.registry import Rung


def options(backend: Backend, loaded: LoadedModel, job: Job) -> Options:
    """What a case of this backend is prepared with."""
    device = backend.rungs_of if isinstance(backend, Answering) else backend.device
    how = loaded.options_for(device, isinstance(backend, Swapping))
    return replace(how, tuned=job.tune != "none")


def tune(case: Case, loaded: LoadedModel, job: Job, begin: Callable[[], None], progress: Progress) -> None:
    """Measure what is not known yet; `begin` is called before, where there is something. Raises what the
    backend raises, sweep.DeviceLost, and what `progress` raises."""
    backend = backends.get(case.backend)
    if backend.unavailable() is not None:
        return
    if isinstance(backend, Variant):
        if job.tune_reference and _lacks_sweep(case, backend, loaded.graph):
            begin()
            _sweep(case, backend, loaded, progress)
        return
    if not _chooses(backend, job):
        return
    how = options(backend, loaded, job)
    if budget(case.precision) is not None:
        _mix(case, loaded, job, how, begin, progress)
        return
    missing = wanted(loaded.graph, case.batch, backend.device, case.precision, how)
    if missing:
        begin()
        if backend.device == "cuda":
            _compile_ahead(case, loaded, job, how, progress)
    for number, item in enumerate(missing):
        progress(f"a kernel for {item.node}, step {number + 1} of {len(missing)}", number / len(missing))
        _choose(item, case, backend, how, progress)
    if backend.device == "cuda":
        _lay_out(case, loaded, backend, how, begin, progress)


def _mix(
    case: Case, loaded: LoadedModel, job: Job, how: Options, begin: Callable[[], None], progress: Progress
) -> None:
    """What each product of a mixed net computes in; first the kernels of every precision."""
    backend = backends.get(case.backend)
    lost = _lost if backend.device == "cuda" else _never
    subject = mixes.Subject(backend, loaded, case.batch, case.precision, how, progress, lost)
    if not mixes.wanted(subject):
        return
    for precision in registry.precisions(backend.device):
        tune(replace_record(case, precision=precision), loaded, job, begin, progress)
    begin()

    def lay_out(mix: Mix) -> None:
        _lay_out(case, loaded, backend, replace(how, mix=dict(mix)), begin, progress)

    try:
        mixes.choose(subject, lay_out)
    except DeviceLost:
        raise
    except (KernelError, OutOfMemoryError, UnsupportedError) as error:
        progress(f"{loaded.graph.name} stays in fp32: {error}", None)


def _chooses(backend: Backend, job: Job) -> bool:
    """Whether the kernels of its steps are chosen by their times."""
    return job.tune in ("all", backend.device) and backend.name == f"engine-{backend.device}"


def compiles(case: Case, job: Job) -> bool:
    """Whether kernels are compiled for a case before it is prepared."""
    backend = backends.get(case.backend)
    return backend.device == "cuda" and _chooses(backend, job) and backend.unavailable() is None


def _lay_out(
    case: Case,
    loaded: LoadedModel,
    backend: Backend,
    how: Options,
    begin: Callable[[], None],
    progress: Progress,
) -> None:
    found = layouts.untimed(loaded.graph, case.batch, case.precision, how)
    if found is None:
        return
    begin()

    def compile_ahead(steps: Sequence[Step]) -> None:
        launches = Launches(how)
        ready = [launches.of_step(step) for step in steps]
        _compile(loaded, [(rung, launch.defines) for rung, launch in ready], progress)

    try:
        layouts.choose(backend, loaded.graph, found, how, progress, compile_ahead, _lost)
    except DeviceLost:
        raise
    except KernelError as error:
        progress(f"{loaded.graph.name} keeps the layouts of its kernels: {error}", None)


def _compile_ahead(case: Case, loaded: LoadedModel, job: Job, how: Options, progress: Progress) -> None:
    """The kernels that this case and the model's other batch sizes will try, alone and as one kernel for
    several steps, compiled side by side, once for each precision, before anything is timed: one after the
    other they take most of a first comparison. Meanwhile what they will be judged by is worked out, and
    something else begun, where there are cores for that."""
    gpu = cuda_driver.device()
    if gpu is None or case.precision in loaded.compiled:
        return
    loaded.compiled.add(case.precision)
    if _cores_to_spare():
        loaded.beside()
    # What drives the device is loaded beside them, too.
    _beside_compilers(case, loaded, job, how, gpu, progress, loaded.golden, import_cupy)


def make_ready(case: Case, loaded: LoadedModel, job: Job, progress: Progress) -> None:
    """The same of a run's next model, of which this is the first case with kernels of ours for a GPU: all
    that is kept for when its turn comes, without a session of any backend. Raises what `progress` raises."""
    gpu = cuda_driver.device()
    if gpu is not None:
        how = options(backends.get(case.backend), loaded, job)
        _beside_compilers(case, loaded, job, how, gpu, progress, loaded.work_out)


def _beside_compilers(
    case: Case,
    loaded: LoadedModel,
    job: Job,
    how: Options,
    gpu: CudaDevice,
    progress: Progress,
    *first: Callable[[], object],
) -> None:
    """first: what is done of all that is not compiling, before samples of the steps are worked out."""
    batches = {case.batch, *job.batches_of(case.model)}
    items = [item for batch in batches for item in wanted(loaded.graph, batch, "cuda", case.precision, how)]
    tried: list[tuple[Rung, Mapping[str, Define]]] = []
    if gpu.multiprocessors and how.one_kernel and how.cuda_graph:
        tried = _nets(case, loaded, job, how, gpu, sorted(batches))  # these take longest: they go first
    tried += [(rung, launch.launch(item.params, rung).defines) for item in items for rung in item.rungs]
    tried += _alone(case, loaded, how)

    with ThreadPoolExecutor(1) as beside:
        compiling = beside.submit(_compile, loaded, tried, progress)
        for each in first:
            _worked_out(each)
        for item in items:
            _worked_out(partial(repeated, item.params))
        compiling.result()


def _compile(
    loaded: LoadedModel, tried: Sequence[tuple[Rung, Mapping[str, Define]]], progress: Progress
) -> None:
    """Side by side, where there is a device to compile for."""
    gpu = cuda_driver.device()
    if gpu is None:
        return

    def told(done: int, total: int) -> None:
        progress(f"compiling kernels for {loaded.graph.name}: {done} of {total}", done / total)

    digits = "".join(map(str, gpu.capability))
    nvrtc.compile_ahead(tried, f"sm_{digits}", host.physical_cores(), told)


def _worked_out(answer: Callable[[], object]) -> None:
    """Have what is judged by, which takes one core while compilers have the others. What is wrong with it is
    told where it is wanted."""
    try:
        answer()
    except Exception:
        return


def _cores_to_spare() -> bool:
    return host.physical_cores() >= host.SPARE_CORES


def _nets(
    case: Case, loaded: LoadedModel, job: Job, how: Options, gpu: CudaDevice, batches: Sequence[int]
) -> list[tuple[Rung, Mapping[str, Define]]]:
    """Of each batch size, by the plan that the ladder's order gives: which kernels are taken for its steps
    changes nothing of the one kernel for all of them. With clock stamps, which the times of layers take,
    where there are cores for what may not be needed."""
    stamped = job.times_layers(case.backend) and _cores_to_spare()
    choose = planner.ladder_choice(how, gpu.capability)
    found: list[tuple[Rung, Mapping[str, Define]]] = []
    for batch in batches:
        with contextlib.suppress(KernelscopeError):  # it is told where the case is prepared
            plan = planner.plan(loaded.graph, batch, "cuda", case.precision, how, choose=choose)
            found += one_kernel.to_compile(plan, gpu.capability, gpu.multiprocessors, stamped)
    return found


def _alone(case: Case, loaded: LoadedModel, how: Options) -> list[tuple[Rung, Mapping[str, Define]]]:
    """Of each layer alone, as bench.measure.answers.layer_errors looks at it before anything is timed."""
    found: list[tuple[Rung, Mapping[str, Define]]] = []
    launches, images = Launches(how), loaded.golden_images
    with contextlib.suppress(KernelscopeError):  # it is told where the layers are looked at
        for part in groups.groups(loaded.graph, images):
            layer = submodel.extract(loaded.graph, part.nodes, images)
            plan = planner.plan(layer, layer.fixed_batch or images, "cuda", case.precision, how)
            ready = [launches.of_step(step) for step in plan.steps]
            found += [(rung, at.defines) for rung, at in ready]
    return found


def _choose(item: Untimed, case: Case, backend: Backend, how: Options, progress: Progress) -> None:
    lost = _lost if backend.device == "cuda" else _never
    try:
        rungs.choose(item, backend.device, case.precision, how, progress, lost)
    except DeviceLost:
        raise
    except (KernelError, OutOfMemoryError, UnsupportedError) as error:
        # The step cannot be tried alone, or nothing be kept: then the ladder's order decides.
        progress(f"{item.node} keeps the ladder's kernel: {error}", None)


def _lacks_sweep(case: Case, backend: Variant, graph: Graph) -> bool:
    plain = backends.get(backend.variant_of)
    if plain.supports(graph, case.batch, case.precision) is not None:
        return False
    known = ort_tuning.read(plain.name, graph, case.batch, case.precision)
    return known is None or known.unfinished


def _sweep(case: Case, backend: Variant, loaded: LoadedModel, progress: Progress) -> None:
    plain = backends.get(backend.variant_of)
    at = (plain.name, loaded.graph, case.batch, case.precision)
    lost = _lost if plain.device == "cuda" else _never
    subject = reference.Subject(plain, loaded, case.batch, case.precision, loaded.options, lost)
    reference.sweep(
        subject,
        configurations(loaded.graph),
        lambda choice: ort_tuning.write(*at, choice),
        progress,
        ort_tuning.read(*at),
    )


def _lost() -> bool:
    from engine.cuda import rung as rung_cuda

    return rung_cuda.lost()


def _never() -> bool:
    return False


def configurations(graph: Graph) -> tuple[Configuration, ...]:
    """Those of the CUDA provider that differ for this model."""
    same = fused(graph) is graph
    return tuple(c for c in ort_configuration.cuda() if not (c.fused_conv and same))
