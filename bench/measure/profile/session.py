"""A session profiled from its creation to its close: its passes with marks round them, and what the profilers
of the device, of ONNX Runtime and of our own engine tell of them, on one clock.

The session is prepared anew for it. ONNX Runtime runs without a CUDA graph then, because the calls that start
its kernels have to fall into the intervals of its nodes; our engine runs as it does otherwise.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns

import numpy as np

from bench.measure.loaded_model import LoadedModel
from bench.measure.profile import merge as profile_merge
from bench.measure.profile.merge import Profiling, Readings
from bench.measure.profile.process import thread_clock
from bench.results.profile_records import ProfileJob
from bench.results.records import Case, Job
from engine import backends
from engine.backend import Backend, Launching, Options, Part, Planned, Session, Stepped, is_ort
from engine.cuda import cupti
from engine.cuda.copies import LayerCopies
from engine.cuda.runtime import EMPTY, FILL, free_spare, import_cupy
from engine.graph.graph import Graph
from engine.ort.profile import OrtProfile
from engine.ort.sessions import import_onnxruntime
from kernels.errors import KernelscopeError
from kernels.spans import recorded

IMAGES = 64  # different ones in a batch at the most; a larger one repeats them
NO_GPU = (
    "on a GPU the profile would also show every kernel, copy and call into CUDA, with the gaps between them"
)


def options_of(backend: Backend, options: Options, apart: bool = False) -> Options:
    """What the profiled session is prepared with: kernels one after another, so that each one's time is its
    own, and those of ONNX Runtime started by calls that can be seen. apart: each operator has a step of its
    own, so that a kind's time holds no other's."""
    graph = options.cuda_graph and not (is_ort(backend) and backend.device == "cuda")
    return replace(
        options, cuda_graph=graph, joins=not apart, early=options.early and backend.device != "cuda"
    )


def asked(job: ProfileJob, case: Case) -> Job:
    """A profile's job as one of comparisons, for one case."""
    return Job(
        models=(job.model,),
        backends=(case.backend,),
        precisions=(job.precision,),
        max_error=job.max_error,
        batches=(case.batch,),
        dataset=job.dataset,
        preprocess=job.preprocess,
        threads=job.threads,
        layers=False,
        cuda_graph=job.cuda_graph,
        rungs=dict(job.rungs),
        kernel_dirs=job.kernel_dirs,
        seed=job.seed,
    )


def batch_inputs(loaded: LoadedModel, batch: int) -> dict[str, np.ndarray]:
    """A full batch of the job's images, or of random numbers where the model takes no images."""
    if not loaded.takes_images:
        given = ((name, loaded.graph.batch_axes.get(name, 0), a) for name, a in loaded.given().items())
        return {name: np.take(a, np.arange(batch) % a.shape[axis], axis) for name, axis, a in given}
    pixels = loaded.feed.first_pixels(loaded.dataset(min(batch, IMAGES)), min(batch, IMAGES))
    return loaded.feed.inputs(np.ascontiguousarray(pixels[np.arange(batch) % len(pixels)]))


def load_libraries(backend: Backend) -> None:
    """Import what runs this backend's sessions. Raises UnavailableError."""
    if is_ort(backend):
        import_onnxruntime()
    if backend.device == "cuda":
        import_cupy()


def start_device() -> None:
    """Create the CUDA context and wait for it."""
    cupy = import_cupy()
    cupy.cuda.runtime.free(0)
    cupy.cuda.Device().synchronize()


def record(
    backend: Backend,
    loaded: LoadedModel,
    case: Case,
    options: Options,
    inputs: Mapping[str, np.ndarray],
    job: ProfileJob,
    origin_ns: int,
    inside: Sequence[Part] = (),
) -> Profiling:
    """Profile a session of the case: `job.warm_up` passes, then `job.runs` that count. inside: what is known
    of a kernel that does several steps, of a session just like it. Raises what `prepare` and the passes
    raise; where the device's profiler cannot run, a note says so."""
    taking = _Taking(backend, loaded.graph, case, inputs, job, origin_ns)
    taking.taken.inside = inside
    if backend.device == "cuda":
        free_spare()  # what the sessions before it left: getting such memory is a part of creating one
    recorder = taking.recorder()
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        profile = OrtProfile(Path(folder)) if is_ort(backend) else None
        try:
            with recorded(FILL, EMPTY) as taking.taken.staged:
                with profile.recording() if profile else contextlib.nullcontext():
                    session = taking.create(options)
                try:
                    taking.passes(session)
                    taking.end_profile(profile)
                    order = session.launch_order() if isinstance(session, Launching) else ()
                finally:
                    taking.close(session)
        finally:
            told = taking.told(recorder)
        taken = taking.taken
        taken.optimized = profile.optimized if profile else None
        taken.facts["profiled_cuda_graph"] = _graph_words(backend, options)
        return profile_merge.merged(taken, told, order)


class _Taking:
    """One profiled session in the making."""

    def __init__(
        self,
        backend: Backend,
        graph: Graph,
        case: Case,
        inputs: Mapping[str, np.ndarray],
        job: ProfileJob,
        origin_ns: int,
    ) -> None:
        self._backend, self._inputs, self._job = backend, inputs, job
        self._graph, self._case = graph, case
        self._copies: LayerCopies | None = None
        self.taken = Readings(graph, case.batch, origin_ns, case.precision)

    def recorder(self) -> cupti.Recorder | None:
        """The device's profiler, started; None on a CPU, and where it cannot run, which is noted."""
        if self._backend.device != "cuda":
            if not any(backends.get(name).device == "cuda" for name in self._job.backends):
                self.taken.notes.append(NO_GPU)
            return None
        made = cupti.Recorder()
        try:
            made.start()
        except KernelscopeError as error:
            self.taken.notes.append(f"no kernel, copy or call is recorded: {error}")
            return None
        return made

    def told(self, recorder: cupti.Recorder | None) -> cupti.Recording | None:
        """What the device's profiler recorded; a failure of it is noted."""
        if recorder is None:
            return None
        try:
            return recorder.stop()
        except KernelscopeError as error:
            self.taken.notes.append(f"what was recorded of the GPU is lost: {error}")
            return None

    def create(self, options: Options) -> Session:
        with self._window("create"):
            made = backends.prepared_within(
                self._backend, self._graph, self._case.batch, self._case.precision, options
            )
            if self._job.copies and self._backend.device == "cuda" and isinstance(made, Planned):
                sizes = [4 * math.prod(step.params.output_shape) for step in made.plan.steps]
                self._copies = LayerCopies(import_cupy(), sizes, self._job.copies)
            return made

    def passes(self, session: Session) -> None:
        numbers = [*[None] * self._job.warm_up, *range(self._job.runs)]
        ran_for = thread_clock()
        for number in numbers:
            self.taken.numbers.append(number)
            before = ran_for() if ran_for else 0
            # A stage ends where the next begins: what a pass takes lies in one of them, and the marks cost it
            # little.
            started = perf_counter_ns()
            session.bind(self._inputs)
            bound = perf_counter_ns()
            self._run(session, number)
            ran = perf_counter_ns()
            session.synchronize()
            if self._copies is not None:
                self._copies.run()
            waited = perf_counter_ns()
            session.fetch()
            ended = perf_counter_ns()
            if ran_for:
                self.taken.cpu_ns[started] = ran_for() - before
            self.taken.spans += [
                ("warm-up" if number is None else "pass", "window", number, started, ended),
                ("bind", "stage", number, started, bound),
                ("run", "stage", number, bound, ran),
                ("synchronize", "stage", number, ran, waited),
                ("fetch", "stage", number, waited, ended),
            ]

    def _run(self, session: Session, number: int | None) -> None:
        if not isinstance(session, Stepped):
            session.run()
            return
        # Made into records when the pass is over, which is not to wait for that.
        self.taken.steps.append((number, session.run_timed()))

    def end_profile(self, profile: OrtProfile | None) -> None:
        if profile is None:
            return
        started = perf_counter_ns()
        self.taken.ort_file = profile.end()
        self.taken.writing = (started, perf_counter_ns())
        self.taken.ort_zeros = profile.zeros_ns

    def close(self, session: Session) -> None:
        with self._window("close"):
            if self._copies is not None:
                self._copies.close()
            session.close()
            if self._backend.device == "cuda":
                free_spare()  # as a program does that ends: cudaFreeHost

    @contextlib.contextmanager
    def _window(self, name: str) -> Iterator[None]:
        started = perf_counter_ns()
        yield
        self.taken.spans.append((name, "window", None, started, perf_counter_ns()))


def _graph_words(backend: Backend, options: Options) -> str:
    if backend.device != "cuda":
        return "no: there is none on a CPU"
    if is_ort(backend):
        return "no: the calls that start its kernels have to be seen one by one"
    return "yes" if options.cuda_graph else "no: not asked for"
