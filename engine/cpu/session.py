"""Runs the steps of a plan on the CPU: the kernels are bound once, then called one after the other.

The same code runs in an isolated process (engine.isolated) and in this one: it knows the plan and its
kernels, and nothing of models, of ONNX or of the caller."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import metadata

import numpy as np

from engine.cpu.program import Program
from engine.cpu.steps import Blas, CpuStep, aligned, calls_of_pass, divide
from engine.graph.memory import ALIGNMENT
from engine.graph.plan import Plan, Step
from engine.isolated import slots
from engine.isolated.slots import Copies
from engine.machine import host
from engine.machine.host import free_nbytes
from kernels.cpu import Bound, CpuKernel, line_in, load
from kernels.errors import KernelError, KernelscopeError, OutOfMemoryError
from kernels.registry import Rung

LARGE_NBYTES, MOST_NBYTES = 4 << 20, 64 << 20  # from the first on NumPy asks for large pages itself
version = functools.cache(metadata.version)  # a process opens many sessions


class CpuSession:
    """A plan on our CPU kernels. what: the model, backend and batch, for errors. given: the input arrays that
    a pass reads; phases, memory, facts: as in engine.backend.Session. joined: compiled steps that follow each
    other are one call. guarded: it has no memory of its own, and runs once `place` has given it some;
    memory["workspace"] is what a pass needs for itself alone."""

    _calls: tuple[Bound, ...] = ()  # of a pass

    @staticmethod
    def find_libraries() -> None:
        """For a process that is about to have another root, in which it finds them no more."""
        Blas()

    def __init__(
        self,
        made: Plan,
        rungs: Sequence[Rung],
        what: str,
        threads: int,
        joined: bool = True,
        guarded: bool = False,
    ) -> None:
        self._what = what
        self._threads = threads
        self._blas = Blas()
        self._steps: tuple[CpuStep, ...] = ()
        clock = [time.perf_counter_ns()]
        kernels = [load(rung) for rung in rungs]
        clock.append(time.perf_counter_ns())
        self._plan, self._guarded = made, guarded
        self._lent: dict[str, np.ndarray] = {}  # flat bytes by holder, in the arena's place
        packed = []
        steps = []
        for step, rung, kernel in zip(made.steps, rungs, kernels, strict=True):
            with self._in_words("preparing", rung):
                packed.append(self._packed(kernel, step))
                steps.append(divide(step, rung, kernel, packed[-1], self._threads, made.aliases))
        self._steps = tuple(steps)
        with self._in_words("preparing"):
            _together(packed, made.weights.values())
        scratch = max((step.workspace_nbytes for step in steps), default=0)
        clock.append(time.perf_counter_ns())
        self._packed_steps, self._joined = packed, joined
        specs = {name: made.tensors[name] for name in (*made.inputs, *made.outputs)}
        self._views = {n: np.broadcast_to(np.zeros((), it.dtype), it.shape) for n, it in specs.items()}
        if not guarded:
            refuse_too_large(what, made.arena_nbytes + scratch)
            with self._in_words("preparing"):
                self._arena = aligned(made.arena_nbytes)
                self._workspace = aligned(scratch).view(np.float32)
        clock.append(time.perf_counter_ns())
        if not guarded:
            self._bind_steps()
        clock.append(time.perf_counter_ns())

        compiling, packing, allocating, binding = np.diff(clock).tolist()
        self.phases: Mapping[str, int] = {
            "compile": compiling + binding,
            "alloc": allocating,
            "upload": packing,
        }
        sizes = {id(array): array.nbytes for arrays in packed for array in arrays if array is not None}
        self.memory: Mapping[str, int] = {
            "weights": sum(sizes.values()),
            "arena": made.arena_nbytes,
            "workspace": scratch
            + sum(call.local_nbytes for call in self._calls if isinstance(call, Program)),
        }
        self.facts: Mapping[str, str] = {
            "numpy": version("numpy"),
            "blas": self._blas.words,
            "threads": str(self._threads),
            **self._compiled(),
            "calls": f"{sum(map(_computes, self._calls))} a pass",
            **({"parts": ", ".join(str(len(step.parts)) for step in steps)} if guarded else {}),
        }

    def _bind_steps(self) -> None:
        plan, steps = self._plan, self._steps
        self._by_step = tuple(self._bound(*pair) for pair in zip(steps, self._packed_steps, strict=True))
        read = {plan.holder(name) for name in plan.outputs}
        self._calls = calls_of_pass(steps, self._by_step, self._blas.limit, self._threads, read, self._joined)
        self._views = {name: self._tensor(name) for name in (*plan.inputs, *plan.outputs)}

    def hold(self, given: Mapping[str, np.ndarray], left: Mapping[str, np.ndarray]) -> None:
        """From now on a pass reads its inputs from the arrays `given`, and writes its outputs into `left`."""
        plan = self._plan
        self._lent = {name: array.reshape(-1).view(np.uint8) for name, array in given.items()}
        copied = []
        for name, array in left.items():
            holder = plan.holder(name)
            if (
                holder in plan.weights or holder in self._lent
            ):  # a weight, an input, or another output's bytes
                copied.append(name)
            else:
                self._lent[holder] = array.reshape(-1).view(np.uint8)
        self._bind_steps()
        self._calls += tuple(partial(np.copyto, left[name], self._views[name]) for name in copied)

    def place(self, places: Mapping[str, tuple[int, int]], arena: np.ndarray) -> None:
        """Of a guarded session: compute in these bytes from now on. places: offset and size of each tensor,
        of weights, too, and of "workspace" if there is one. A step that takes a weight as it is reads it
        there."""
        self._lent = {name: arena[offset : offset + size] for name, (offset, size) in places.items()}
        self._workspace = self._lent.pop("workspace", arena[:0]).view(np.float32)
        self._bind_steps()

    def _compiled(self) -> dict[str, str]:
        """How many steps are compiled, and by what; for the record."""
        count = sum(step.rung.compiled for step in self._steps)
        if not count:
            return {}
        return {"compiled": f"{count} of {len(self._steps)} steps, Numba {version('numba')}"}

    @property
    def given(self) -> Mapping[str, np.ndarray]:
        return {name: self._views[name] for name in self._plan.inputs}

    def answers(self) -> dict[str, np.ndarray]:
        """The outputs of the last pass; not copied."""
        return {name: self._views[name] for name in self._plan.outputs}

    def run(self) -> None:
        with self._in_words("running"):
            for call in self._calls:
                call()

    def time_runs(self, count: int, cold: bool = False) -> int:
        calls = self._calls
        with self._in_words("running"):
            if cold:
                host.overwrite_caches()
            started = time.perf_counter_ns()
            for _ in range(count):
                for call in calls:
                    call()
            return time.perf_counter_ns() - started

    def each(self, copies: Sequence[Copies]) -> None:
        """One pass for each of these inputs, its answer copied to where it belongs."""
        with self._in_words("running"):
            slots.each(self._calls, copies)

    def passes(self, untimed: int, count: int, done: Callable[[], None]) -> None:
        """See engine.isolated.slots.passes."""
        with self._in_words("running"):
            slots.passes(self._calls, untimed, count, done)

    def step_times(self, seconds: float) -> tuple[float, ...]:
        """The median time of each step in nanoseconds, over whole passes, so that each step finds the caches
        as in a forward pass."""
        self.run()
        samples: list[list[int]] = [[] for _ in self._steps]
        timed = list(zip(self._steps, self._by_step, samples, strict=True))
        clock = time.perf_counter_ns
        until = clock() + int(seconds * 1e9)
        with self._in_words("running"):
            while True:
                for step, call, times in timed:
                    self._blas.limit(step.blas_threads)
                    started = clock()
                    call()
                    times.append(clock() - started)
                if clock() >= until:
                    break
        return tuple(float(statistics.median(times)) for times in samples)

    def run_stepwise(self) -> tuple[tuple[int, int], ...]:
        """As `run`; for each step perf_counter_ns before and after it."""
        clock = time.perf_counter_ns
        spans = []
        with self._in_words("running"):
            for step, call in zip(self._steps, self._by_step, strict=True):
                self._blas.limit(step.blas_threads)
                started = clock()
                call()
                spans.append((started, clock()))
        return tuple(spans)

    def close(self) -> None:
        def closed() -> None:
            raise KernelError(f"the session of {self._what} is closed: prepare another")

        self._calls = (closed,)
        self._views = {}
        self._by_step = ()
        self._arena = self._workspace = np.empty(0, np.float32)

    def _tensor(self, name: str) -> np.ndarray:
        """A tensor of the plan as an array: its place in the arena, or the weight that it is."""
        spec = self._plan.tensors[name]
        holder = self._plan.aliases.get(name, name)
        if holder in self._lent:
            return self._lent[holder].view(spec.dtype).reshape(spec.shape)
        if holder in self._plan.weights:
            return self._plan.weights[holder].reshape(spec.shape)
        start = self._plan.placements[holder].offset
        return self._arena[start : start + spec.nbytes].view(spec.dtype).reshape(spec.shape)

    def _packed(self, kernel: CpuKernel, step: Step) -> list[np.ndarray | None]:
        holders = [self._plan.aliases.get(name, name) for name in step.inputs]
        inputs = zip(step.inputs, holders, strict=True)
        weights = [self._tensor(name) if of in self._plan.weights else None for name, of in inputs]
        if self._guarded:  # they lie in the arena, too: what the kernel makes of these is its own
            weights = [None if array is None else np.array(array) for array in weights]
        return kernel.pack(step.params, weights)

    def _bound(self, made: CpuStep, packed: list[np.ndarray | None]) -> Bound:
        inputs = [self._read(*pair) for pair in zip(made.step.inputs, packed, strict=True)]
        with self._in_words("preparing", made.rung):
            return made.bind(inputs, self._tensor(made.step.output), self._workspace, self._threads)

    def _read(self, name: str, packed: np.ndarray | None) -> np.ndarray:
        """Where a step reads an input. packed: what its kernel made of it, None where it is no weight."""
        if packed is None or (name in self._lent and np.array_equal(packed, self._tensor(name))):
            return self._tensor(name)
        return packed

    @contextmanager
    def _in_words(self, doing: str, rung: Rung | None = None) -> Iterator[None]:
        """Turns MemoryError, and whatever a kernel raises, into one of our errors. NumPy tells nobody of
        what has no number."""
        try:
            with np.errstate(all="ignore"):
                yield
        except KernelscopeError:
            raise
        except MemoryError as error:
            raise OutOfMemoryError(
                f"memory did not suffice for {doing} {self._what}: take a smaller batch"
            ) from error
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise KernelError(f"{self._what}: {doing} failed{self._where(error, rung)}: {text}") from error

    def _where(self, error: Exception, rung: Rung | None) -> str:
        """The file and line of the kernel that raised it, as far as the traceback shows them."""
        for tried in [rung] if rung else dict.fromkeys(step.rung for step in self._steps):
            line = line_in(tried, error)
            if line is not None or rung:
                where = f":{line}" if line is not None else ""
                return f" in {tried.path}{where}"
        return ""


def _computes(call: Bound) -> bool:
    """Whether the call computes something (and does not only set the number of BLAS threads)."""
    return not (isinstance(call, partial) and getattr(call.func, "__func__", None) is Blas.limit)


def _together(packed: list[list[np.ndarray | None]], weights: Iterable[np.ndarray]) -> None:
    """Puts what kernels made of the weights where vectors do not lie on two cache lines, which takes twice as
    long to read; and what is small side by side, for a large block of memory has large pages. What is so
    large that nobody wants it twice stays where it is."""
    given = {array.ctypes.data for array in weights}
    found = {id(array): array for arrays in packed for array in arrays if array is not None}
    made = [array for array in found.values() if array.flags.c_contiguous and array.ctypes.data not in given]
    small = [array for array in made if array.nbytes < LARGE_NBYTES]
    large = {id(array) for array in made if LARGE_NBYTES <= array.nbytes <= MOST_NBYTES}
    starts = np.cumsum([0, *(-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in small)])
    block = aligned(int(starts[-1]))
    places = {id(array): block[start:] for array, start in zip(small, starts, strict=False)}
    for arrays in packed:
        for i, array in enumerate(arrays):
            if array is None:
                continue
            if id(array) in large:
                places.setdefault(id(array), aligned(array.nbytes))
            if (room := places.get(id(array))) is not None:
                arrays[i] = there = room[: array.nbytes].view(array.dtype).reshape(array.shape)
                there[...] = array


def refuse_too_large(what: str, needed: int) -> None:
    """Raise OutOfMemoryError: Linux would grant the memory, and kill the process when it is used."""
    available = free_nbytes()
    if needed > available:
        raise OutOfMemoryError(
            f"{what} needs {needed / 2**30:.1f} GiB of memory for its activations and "
            f"{available / 2**30:.1f} GiB are available: take a smaller batch"
        )
