"""The reference on the CPU: ONNX Runtime's CPUExecutionProvider in its fastest form.

Each batch size has a session of its own, so that the optimiser knows every shape; buffers are allocated once
and bound; there is one thread for each physical core.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from engine.backend import OpTime, Options, check_inputs
from engine.graph.graph import Graph
from engine.isolated.session import IsolatedSession
from engine.isolated.slots import Copies
from engine.machine import host
from engine.machine.host import free_nbytes
from engine.options import Configuration
from engine.ort import binding as ort_binding
from engine.ort import profile as ort_profile
from engine.ort import sessions as ort
from engine.ort.fused_conv import fused
from kernels.errors import KernelError, OutOfMemoryError, UnsupportedError
from kernels.precision import FP32

PROVIDER = "CPUExecutionProvider"
APART = "ort"  # see engine.isolated.pool.KINDS

# Models at batches whose bound pass answered as a plain one, in this process, so configured.
_agreed: set[tuple[str, int, str, str]] = set()


class OrtCpuSession:
    """A model at one batch size on the CPU provider; see engine.backend.Session."""

    backend = "ort-cpu"
    precision = FP32
    provider = PROVIDER
    _settings: Mapping[str, str] = {}
    _helps = "install the extra cpu"

    def __init__(self, graph: Graph, batch: int, options: Options) -> None:
        self._ort = ort.import_onnxruntime()
        self._graph = graph
        self.batch = batch
        self._threads = options.threads or host.physical_cores()
        self._what = f"{graph.name} on {self.backend} at batch {batch}"

        configured = options.ort or Configuration()
        self._configured = configured.words
        started = time.perf_counter_ns()
        self._model = fused(graph) if configured.fused_conv else graph
        self._session = self._create(
            lambda: ort.session_options(self._ort, self._threads, configured.optimization)
        )
        placed = ort.check_placement(self._session, self.provider, self._what, self._helps)
        loaded = time.perf_counter_ns()
        inputs = ort.buffers_of(self._session.get_inputs())
        if inputs is None:
            raise UnsupportedError(f"an input of {self._what} has a dimension that is not known")
        self._expected = inputs
        self._inputs: dict[str, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray] = {}
        self._ran = self._checked = False
        self._unbound: list[str] = []  # outputs that ONNX Runtime allocates
        self._notes: dict[str, str] = {}
        self._copied = False  # ONNX Runtime allocates the outputs in every run, and they are copied
        with ort.translated(f"the inputs and outputs of {self._what}"):
            self._allocate()
            self._binding = self._bind_to(self._session)
        self.phases: Mapping[str, int] = {
            "load": loaded - started,
            "alloc": time.perf_counter_ns() - loaded,
        }
        self.memory: Mapping[str, int] = {
            "weights": sum(array.nbytes for array in graph.initializers.values()),
            "inputs": sum(array.nbytes for array in self._inputs.values()),
            "outputs": sum(array.nbytes for array in self._outputs.values()),
        }
        self.facts: Mapping[str, str] = {
            "provider": self._session.get_providers()[0],
            "onnxruntime": self._ort.__version__,
            "threads": str(self._threads),
            **placed,
            **({"configuration": configured.words} if options.ort else {}),
        }

    def _create(self, options):
        return ort.create_session(
            self._ort, self._model, self.batch, options, [(self.provider, dict(self._settings))]
        )

    def _allocate(self) -> None:
        # An output whose shape is not known beforehand is allocated by ONNX Runtime in every run.
        outputs = ort.buffers_of(self._session.get_outputs()) or {}
        needed = sum(
            int(np.prod(shape, dtype=np.float64)) * dtype.itemsize
            for shape, dtype in (*self._expected.values(), *outputs.values())
        )
        available = free_nbytes()
        if needed > available:  # Linux would grant it, and kill the process at the first touch
            raise OutOfMemoryError(
                f"the inputs and outputs of {self._what} need {needed / 2**30:.1f} GiB of memory and "
                f"{available / 2**30:.1f} GiB are available: take a smaller batch"
            )
        self._inputs = {name: np.zeros(shape, dtype) for name, (shape, dtype) in self._expected.items()}
        # An output that is an input is the input's own memory: ONNX Runtime hands it on and copies nothing.
        self._outputs = {
            name: self._inputs[name] if name in self._inputs else np.zeros(shape, dtype)
            for name, (shape, dtype) in outputs.items()
        }

    def _bind_to(self, session):
        binding = session.io_binding()
        value = self._ort.OrtValue.ortvalue_from_numpy  # shares the array's memory on a CPU
        for name, array in self._inputs.items():
            binding.bind_ortvalue_input(name, value(array))
        self._unbound = []
        for argument in session.get_outputs():
            name = argument.name
            if name in self._outputs and name not in self._inputs and not self._copied:
                binding.bind_ortvalue_output(name, value(self._outputs[name]))
            else:
                binding.bind_output(name, "cpu")
                self._unbound.append(name)
        return binding

    def _pass(self) -> None:
        # What ONNX Runtime allocated in a pass is bound in the next: another shape would not fit it.
        for name in self._unbound:
            self._binding.bind_output(name, "cpu")
        self._session.run_with_iobinding(self._binding)

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        check_inputs(inputs, self._expected)
        for name, array in inputs.items():
            np.copyto(self._inputs[name], array, casting="same_kind")

    def run(self) -> None:
        self._ran = True
        try:
            with ort.translated(self._what):
                self._pass()
        except KernelError:
            if not self._outputs or self._copied:
                raise
            # Shape inference below opset 22 counts pooling windows of ceil_mode that the operator leaves out:
            # an output of the inferred shape is then refused, and ONNX Runtime has to allocate it itself.
            self._allocated_there()
            return
        self._collect()

    def _allocated_there(self) -> None:
        """A pass whose outputs ONNX Runtime allocates; so do all later passes."""
        self._copied = True
        with ort.translated(self._what):
            self._binding = self._bind_to(self._session)
            self._session.run_with_iobinding(self._binding)
        self._collect()

    def _collect(self) -> None:
        if not self._copied:
            return
        for name, array in self._values().items():
            if name in self._inputs:
                continue
            if self._outputs[name].shape != array.shape:
                self._outputs[name] = np.zeros(array.shape, array.dtype)
            np.copyto(self._outputs[name], array)

    def _values(self) -> dict[str, np.ndarray]:
        """The outputs of the last pass as ONNX Runtime has them."""
        values = zip(self._session.get_outputs(), self._binding.get_outputs(), strict=True)
        return {argument.name: value.numpy() for argument, value in values}

    def synchronize(self) -> None:
        """Nothing to wait for: `run` returns when the pass has ended."""

    def fetch(self) -> dict[str, np.ndarray]:
        return {name: np.array(array, np.float32) for name, array in self.answers().items()}

    @property
    def given(self) -> Mapping[str, np.ndarray]:
        """The inputs, where a pass reads them."""
        return self._inputs

    def answers(self) -> dict[str, np.ndarray]:
        """The outputs of the last pass; not copied. The first answer is compared with that of a plain `run`
        over the same inputs; if they differ, outputs are no longer bound, and `notes` says so."""
        key = (self._graph.sha256, self.batch, self.provider, self._configured)
        if self._ran and self._outputs and not self._checked and key not in _agreed:
            self._checked = True
            why = self._unlike_plain()
            if why is None:
                _agreed.add(key)
            else:
                self._notes = {"binding": f"no: bound, it does not answer as a plain run does: {why}"}
                self._allocated_there()
        if self._outputs or not self._ran:
            return self._outputs
        return self._values()

    def notes(self) -> dict[str, str]:
        """Facts that are known only after the first answer."""
        return self._notes

    def _unlike_plain(self) -> str | None:
        with ort.translated(self._what):
            names = [argument.name for argument in self._session.get_outputs()]
            plain = dict(zip(names, self._session.run(names, self._inputs), strict=True))
        return ort_binding.differs(self._outputs, plain)

    def _passing(self) -> Callable[[], None]:
        """A function that runs a pass, with as little as possible besides ONNX Runtime's own work."""
        return self._pass if self._unbound else partial(self._session.run_with_iobinding, self._binding)

    def each(self, copies: Sequence[Copies]) -> None:
        """One pass for each of these inputs, its answer copied to where it belongs."""
        run = self._passing()
        with ort.translated(self._what):
            for inputs, outputs in copies:
                for to, of in inputs:
                    np.copyto(to, of)
                run()
                self._collect()
                for to, of in outputs:
                    np.copyto(to, of)

    def time_runs(self, count: int, cold: bool = False) -> int:
        if cold:
            host.overwrite_caches()
        run = self._passing()
        with ort.translated(self._what):
            started = time.perf_counter_ns()
            for _ in range(count):
                run()
            elapsed_ns = time.perf_counter_ns() - started
            self._collect()
            return elapsed_ns

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """From ONNX Runtime's own profiler, in a second session, so that the timed session is not slowed
        down."""
        return ort_profile.op_times(self._create, self._bind_to, self._graph, self._threads, seconds)

    def close(self) -> None:
        del self._binding, self._session
        self._inputs.clear()
        self._outputs.clear()


class OrtCpuIsolated(IsolatedSession):
    """The same in an isolated process, woken and timed as our kernels are."""

    backend = "ort-cpu"

    def __init__(self, graph: Graph, batch: int, options: Options, kind: str = APART) -> None:
        what = f"{graph.name} on ort-cpu at batch {batch}"
        self._noted = False
        super().__init__(kind, what, batch, (graph, batch, options), threads=options.threads or 0)

    def fetch(self) -> dict[str, np.ndarray]:
        outputs = super().fetch()
        if not self._noted:
            self._noted = True
            self._facts = {**self._facts, **self._asked("ask", "notes", answers=dict[str, str])}
        return outputs

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        times = self._asked("ask", "op_times", seconds, answers=tuple[OpTime, ...])
        return tuple(times)


class OrtCpu:
    """ONNX Runtime on the CPU; see engine.backend.Backend."""

    name = "ort-cpu"
    title = "ONNX Runtime (CPU)"
    device = "cpu"
    reference = "ort-cpu"
    end_to_end = "model"
    precisions: tuple[str, ...] = (FP32,)
    apart = APART

    def unavailable(self) -> str | None:
        if importlib.util.find_spec("onnxruntime") is None:
            return "ONNX Runtime is not installed: install the extra cpu (or cuda, for a GPU)"
        return None

    def supports(self, graph: Graph, batch: int, precision: str) -> str | None:
        return ort.refusal(graph, batch, precision, self.precisions, self.name)

    def prepare(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> OrtCpuIsolated:
        """A session ready to bind and run.

        Raises UnsupportedError (batch, precision or a node), UnavailableError, OutOfMemoryError, KernelError.
        """
        reason = self.supports(graph, batch, precision)
        if reason is not None:
            raise UnsupportedError(reason)
        return OrtCpuIsolated(graph, batch, options or Options())

    def prepare_here(
        self, graph: Graph, batch: int, precision: str = FP32, options: Options | None = None
    ) -> OrtCpuSession:
        """As `prepare`, in this process, for whoever looks at a session from within."""
        reason = self.supports(graph, batch, precision)
        if reason is not None:
            raise UnsupportedError(reason)
        return OrtCpuSession(graph, batch, options or Options())


BACKEND = OrtCpu()
