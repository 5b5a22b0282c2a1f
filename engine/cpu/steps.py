"""The steps of a plan on the CPU: divided among threads and bound to memory; and the BLAS that they call."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from engine.cpu.program import Program, ProgramStep, Tensor, threads_for_work
from engine.graph.plan import Step
from kernels.cpu import Bound, CpuKernel
from kernels.cpu.compiled import Call
from kernels.cpu.split import Part, parts, ranged, whole
from kernels.errors import KernelError
from kernels.ops import Params
from kernels.ops.gemm import Gemm
from kernels.registry import Rung

ALIGNMENT = 256  # bytes; the plan's placements count on it

# A step takes one more thread for each of these that it is long, by a rough guess of its time: about what it
# costs to wake one. On many cores, a small step cut into a part a core is all waking and interpreter lock.
WORTH_DIVIDING_S = 100e-6
FLOPS_A_SECOND, BYTES_A_SECOND = 60e9, 10e9


@dataclass(frozen=True)
class CpuStep:
    """A step with its kernel and the parts that it is divided into. scratch: bytes of workspace of each part.
    blas_threads: how many threads BLAS may use in it; 1 where its parts run at the same time. holders: as
    Plan.aliases."""

    step: Step
    rung: Rung
    kernel: CpuKernel
    parts: tuple[Part, ...]
    scratch: tuple[int, ...]
    blas_threads: int
    holders: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace_nbytes(self) -> int:
        return sum(_rounded(nbytes) for nbytes in self.scratch)

    def bind(
        self, inputs: Sequence[np.ndarray], output: np.ndarray, workspace: np.ndarray, threads: int
    ) -> Bound:
        """A function that does the step. Arrays are dense; workspace has at least workspace_nbytes."""
        if self.rung.compiled:
            call = self.kernel.bind(self.step.params, inputs, output, workspace[: self.scratch[0] // 4])
            return Program([self._joint(call, inputs, output)], threads) if isinstance(call, Call) else call
        if len(self.parts) == 1:
            bound = self.kernel.bind(self.step.params, inputs, output, workspace)
            if not callable(bound):
                raise KernelError(
                    f"{self.rung.label}: bind returned {type(bound).__name__}, where it has to return the "
                    "function that computes one pass (end it with `return run`)"
                )
            return bound
        calls = []
        start = 0
        for part, nbytes in zip(self.parts, self.scratch, strict=True):
            read = [
                array if span is None else array.reshape(-1)[slice(*span)]
                for array, span in zip(inputs, part.inputs, strict=True)
            ]
            scratch = workspace[start // 4 : (start + nbytes) // 4]
            if part.columns:
                calls.append(self._bind_columns(part, read, output, scratch))
            else:
                written = output.reshape(-1)[slice(*part.output)]
                calls.append(self.kernel.bind(part.params, read, written, scratch))
            start += _rounded(nbytes)
        return partial(team(threads).run, calls)

    def _joint(self, call: Call, inputs: Sequence[np.ndarray], output: np.ndarray) -> ProgramStep:
        """The bound kernel as a step of a program."""
        p = self.step.params

        def tensor(name: str, array: np.ndarray) -> Tensor:
            return Tensor(self.holders.get(name, name), array.ctypes.data, array.nbytes)

        reads = tuple(tensor(self.step.inputs[i], inputs[i]) for i in p.data_inputs)
        stride = _rounded(self.scratch[0])
        return ProgramStep(call, stride, p.flops, p.nbytes, reads, tensor(self.step.output, output))

    def _bind_columns(
        self, part: Part, read: Sequence[np.ndarray], output: np.ndarray, workspace: np.ndarray
    ) -> Bound:
        """A part that computes columns of the output. Kernels write dense arrays, so the columns are computed
        at the end of the part's scratch and then copied."""
        low, high = part.output
        columns = output.reshape(-1, self.parts[-1].output[1])[:, low:high]
        if len(columns) == 1:
            return self.kernel.bind(part.params, read, columns[0], workspace)
        dense = workspace[len(workspace) - columns.size :].reshape(columns.shape)
        call = self.kernel.bind(part.params, read, dense, workspace[: len(workspace) - columns.size])

        def run() -> None:
            call()
            np.copyto(columns, dense)

        return run


def threads_worth(rung: Rung, p: Params, threads: int) -> int:
    """How many of `threads` such a step should use, by a rough guess of its time."""
    if rung.compiled:
        return threads_for_work(p.flops, p.nbytes, threads)
    guess_s = p.flops / FLOPS_A_SECOND + p.nbytes / BYTES_A_SECOND
    return min(threads, 1 + int(guess_s / WORTH_DIVIDING_S))


def divide(
    step: Step,
    rung: Rung,
    kernel: CpuKernel,
    packed: Sequence[np.ndarray | None],
    threads: int,
    holders: Mapping[str, str] | None = None,
) -> CpuStep:
    """The step in parts for so many threads. packed: the result of the kernel's pack, None for inputs that
    exist only at run time. A step whose packed weights would have to be divided stays whole."""
    p = step.params
    if rung.compiled:
        return CpuStep(step, rung, kernel, (whole(p),), (kernel.workspace(p),) * threads, 1, holders or {})
    sharing = threads_worth(rung, p, threads)
    step_parts = parts(p, sharing) if sharing > 1 else (whole(p),)
    if kernel.packs and ranged(packed, step_parts[0]):
        step_parts = (whole(p),)
    return CpuStep(
        step=step,
        rung=rung,
        kernel=kernel,
        parts=step_parts,
        scratch=tuple(kernel.workspace(part.params) + _product_nbytes(part) for part in step_parts),
        blas_threads=sharing if len(step_parts) == 1 else 1,
        holders=holders or {},
    )


def _product_nbytes(part: Part) -> int:
    """Bytes of the dense output of a part that computes columns; else 0."""
    if not part.columns or not isinstance(part.params, Gemm):
        return 0
    return part.params.m * part.params.n * 4


def calls_of_pass(
    steps: Sequence[CpuStep],
    calls: Sequence[Bound],
    limit: Callable[[int], None],
    threads: int,
    outputs: Collection[str] | None = None,
    joined: bool = True,
) -> tuple[Bound, ...]:
    """All calls of one pass, in order. Compiled steps that follow each other become one Program
    (joined=False: each is a call of its own). BLAS is told before a step that wants another number of
    threads. outputs: tensors that are read after the pass; None: all of them."""
    ordered: list[Bound] = []
    blas_threads = 0
    groups: list[tuple[CpuStep | None, Bound]] = []
    pairs = enumerate(zip(steps, calls, strict=True))
    for together, run in itertools.groupby(pairs, lambda pair: joined and isinstance(pair[1][1], Program)):
        places, several = zip(*run, strict=True)
        if together:
            others = [step for i, step in enumerate(steps) if i not in places]
            read_by_others = {step.holders.get(name, name) for step in others for name in step.step.inputs}
            joints = [joint for _, call in several if isinstance(call, Program) for joint in call.steps]
            read = None if outputs is None else read_by_others.union(outputs)
            groups.append((None, Program(joints, threads, read)))
        else:
            groups += several
    for step, call in groups:
        if step is None:
            ordered.append(call)
            continue
        if step.blas_threads != blas_threads:
            blas_threads = step.blas_threads
            ordered.append(partial(limit, blas_threads))
        ordered.append(call)
    return tuple(ordered)


class Blas:
    """The BLAS library that NumPy calls, and how many threads it uses."""

    def __init__(self) -> None:
        self._libraries = _blas_libraries()

    @property
    def words(self) -> str:
        named = []
        for library in self._libraries:
            kernels = getattr(library, "architecture", None) or "generic"
            named.append(f"{library.internal_api} {library.version} ({kernels} kernels)")
        return ", ".join(named) or "unknown"

    def limit(self, threads: int) -> None:
        """Set the number of threads. The current number is read first, which is quick: another session may
        have changed it."""
        for library in self._libraries:
            if library.get_num_threads() != threads:
                library.set_num_threads(threads)


@functools.cache
def _blas_libraries() -> tuple[Any, ...]:
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def aligned(nbytes: int) -> np.ndarray:
    """Memory of so many bytes that begins on a multiple of ALIGNMENT. It is written once, so that the first
    pass does not pay for its pages."""
    room = np.empty(nbytes + ALIGNMENT, np.uint8)
    room.fill(0)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + nbytes]


def _rounded(nbytes: int) -> int:
    return math.ceil(nbytes / ALIGNMENT) * ALIGNMENT


# ------------------------------------------------------------- threads that share the parts of one NumPy step
#
# NumPy releases the interpreter lock inside its loops. Each free thread takes the next part, and so does the
# caller. So a thread that the system does not run in time delays nobody (BLAS's own threads wait for each
# other), and on a busy machine the caller does all the work.


class _Job:
    """The tasks of one step; each is done once."""

    def __init__(self, tasks: Sequence[Callable[[], None]]) -> None:
        self.tasks = tasks
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()
        # next() of a count is atomic: no two threads get one number
        self._taken = itertools.count()
        self._finished = itertools.count(1)

    def work(self) -> None:
        count = len(self.tasks)
        while (index := next(self._taken)) < count:
            try:
                self.tasks[index]()
            except BaseException as error:
                self.error = error
            if next(self._finished) == count:
                self.done.release()


class Team:
    """`threads` threads, the caller among them. Members live as long as the process, asleep between jobs."""

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._helpers = threads - 1
        for index in range(self._helpers):
            threading.Thread(target=self._serve, name=f"engine-cpu-{index + 1}", daemon=True).start()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Do all tasks, several at a time; returns when all are done, raises what one of them raised."""
        job = _Job(tasks)
        for _ in range(min(self._helpers, len(tasks) - 1)):
            self._jobs.put(job)
        job.work()
        job.done.acquire()
        if job.error is not None:
            raise job.error

    def _serve(self) -> None:
        with np.errstate(all="ignore"):  # NumPy keeps this by thread
            while True:
                self._jobs.get().work()


@functools.cache
def team(threads: int) -> Team:
    """The process's team of that size."""
    return Team(threads)
