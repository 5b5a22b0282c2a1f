"""A plan on an NVIDIA GPU: memory, kernels, and one CUDA graph of them that is replayed for each run.

A session allocates once (weights, one arena for all activations) and computes only with the rungs of its
plan: no cuDNN, no arithmetic of CuPy, and cuBLAS only if a yardstick was named. The forward pass runs on a
stream of its own, and CUDA events on that stream are its clock.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.backend import OpTime, Options, Part
from engine.cuda.calls import Call, Constant, compile_calls, device_constants, in_turns, start_all
from engine.cuda.replays import overlap as cuda_overlap
from engine.cuda.replays.one_kernel import Taken, Trial
from engine.cuda.runtime import Staging, capability_of, import_cupy, machine, translated
from engine.cuda.stages import Launches, launch_orders_of
from engine.cuda.stirring import CudaTensor
from engine.cuda.stream import Stream, Work
from engine.cuda.trains import CudaTrains, KernelSession
from engine.graph.graph import Graph
from engine.graph.memory import ALIGNMENT
from engine.graph.plan import Plan, Step
from engine.planning import early as planned_early
from engine.planning import mixed, planner, traffic
from engine.rung_rows import Given
from kernels.errors import InputError, KernelError
from kernels.net.text import FILE
from kernels.precision import budget


class EngineCudaSession(KernelSession):
    """A plan on the current device; see engine.backend.Session.

    An error of a launch appears in `run` or, because the device is asynchronous, in the next call that waits.
    """

    backend = "engine-cuda"
    _held = (
        "_trains", "_calls", "_of_steps", "_graph", "_one", "_staging", "_arena", "_weights", "_workspace",
        "_stream",
    )  # fmt: skip

    def __init__(self, graph: Graph, batch: int, precision: str, options: Options) -> None:
        self.batch, self.precision = batch, precision
        self._what = f"{graph.name} on engine-cuda at batch {batch} in {precision}"
        self._graph: Any = None
        self._one: Taken | None = None
        self._bound = {}
        self._op_types = {node.name: node.op_type for node in graph.nodes}
        self._phases: dict[str, int] = {}
        self._facts: dict[str, str] = {}
        self.phases: Mapping[str, int] = self._phases
        self.facts: Mapping[str, str] = self._facts
        self._cupy = import_cupy()
        try:
            with translated(self._what):
                self._prepare(graph, options)
        except BaseException:
            self.close()
            raise

    @property
    def plan(self) -> Plan:
        """The frozen plan that this session runs."""
        return self._plan

    # ------------------------------------------------------------------------------------------- preparing

    def _prepare(self, graph: Graph, options: Options) -> None:
        cupy, clock = self._cupy, time.perf_counter_ns
        started = clock()
        capability = capability_of(cupy)
        choose = planner.ladder_choice(options, capability)
        launches = Launches(options)
        self._plan = planner.plan(
            graph, self.batch, "cuda", self.precision, options, choose=choose, workspace=launches.workspace
        )
        self._shapes = [launches.of_step(self._plan.at_once(i)) for i in range(len(self._plan.steps))]
        constants, self._packed = device_constants(self._plan, [shape for _, shape in self._shapes])
        packed = [{i: constants[key].nbytes for i, key in its.items()} for its in self._packed]
        self._plan = replace(self._plan, steps=traffic.with_traffic(self._plan.steps, packed))
        planned = clock()
        self._pool = cupy.cuda.MemoryPool()
        self._stream = Stream(cupy, self._pool)
        self._allocate(self._plan, constants)
        allocated = clock()
        self._upload_weights(constants)
        uploaded = clock()
        self._of_steps, early = compile_calls(
            cupy, capability, self._plan, self._shapes, self._packed, self._pointers,
            lambda name: int(self._pointer(name)), int(self._workspace.ptr) if self._workspace else 0,
        )  # fmt: skip
        self._calls = in_turns(self._plan, self._of_steps)
        self._facts |= {"kernels": self._plan.chosen_words, **machine(cupy, capability)}
        if budget(self.precision) is not None:
            self._facts["mixed"] = mixed.fact(self._plan, graph, self.precision, options)
        if self._plan.turns is not None:
            self._facts["turns"] = self._plan.turns_words
        # Loads the code onto the device and shows a launch that fails, before any capture.
        self._launch_all()
        self._stream.synchronize()
        if options.cuda_graph:
            self._graph, reason = self._capture(self._calls)
            self._facts["cuda_graph"] = f"no: {reason}" if reason else "yes"
            if self._graph is not None and early and options.early:
                self._begin_early(early, options)
                self._of_steps = self._calls
            apart = self._plan.turns is not None or not options.one_kernel or self._plan.mixed
            if self._graph is not None and not apart and (options.tuned or options.anyway):
                self._as_one_kernel(options)
        else:
            self._facts["cuda_graph"] = "no: not asked for"
        # Each pass is one CUDA graph, the stirring in front of it, where the session uses graphs. Launching
        # one takes the host less than the device needs for it: what is taken off is the device's.
        trains = CudaTrains(
            cupy, self._pool, self._stream, self._staging, lambda: start_all(self._calls), *self._stirred(),
            self._lying, longest=1, capturing=self._graph is not None,
        )  # fmt: skip
        self._timed_by(trains)
        self.users = any(rung.user for rung, _ in self._shapes)
        self._phases |= {
            "load": planned - started,
            "alloc": allocated - planned,
            "upload": uploaded - allocated,
            "compile": clock() - uploaded,
        }

    def _allocate(self, plan: Plan, constants: Mapping[Constant, np.ndarray]) -> None:
        """Allocate device memory for weights, activations and workspace, and pinned memory for copies; decide
        where tensors lie."""
        offsets: dict[Constant, int] = {}
        end = 0
        for name, array in constants.items():
            offsets[name] = end
            end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        self._weights = self._pool.malloc(max(end, ALIGNMENT))
        self._arena = self._pool.malloc(max(plan.arena_nbytes, ALIGNMENT))
        self._workspace = self._pool.malloc(plan.workspace_nbytes) if plan.workspace_nbytes else None
        self._arena.memset_async(0, max(plan.arena_nbytes, ALIGNMENT), self._stream.on)
        weights, arena = int(self._weights.ptr), int(self._arena.ptr)
        self._pointers: dict[Constant, int] = {name: weights + offset for name, offset in offsets.items()}
        self._pointers |= {name: arena + place.offset for name, place in plan.placements.items()}
        self._inputs = {name: self._placed(name) for name in plan.inputs}
        self._outputs = {name: self._placed(name) for name in plan.outputs}
        copied = [array.nbytes for array in constants.values()]
        copied += [plan.tensors[name].nbytes for name in (*plan.inputs, *plan.outputs)]
        self._staging = Staging(self._cupy, self._stream.on, max(copied, default=0))
        self.memory: Mapping[str, int] = {
            "weights": sum(array.nbytes for array in constants.values()),
            "arena": plan.arena_nbytes,
            "workspace": plan.workspace_nbytes,
            "pinned": self._staging.nbytes,
        }

    def _upload_weights(self, constants: Mapping[Constant, np.ndarray]) -> None:
        for name, array in constants.items():
            self._staging.upload(np.ascontiguousarray(array), self._pointers[name])
        self._stream.synchronize()

    def _pointer(self, name: str) -> np.uint64:
        while name in self._plan.aliases:
            name = self._plan.aliases[name]
        return np.uint64(self._pointers[name])

    def _stirred(self) -> tuple[dict[str, CudaTensor], dict[str, CudaTensor]]:
        """The inputs, and the outputs that a pass writes; each buffer once."""
        input_pointers = {tensor.pointer for tensor in self._inputs.values()}
        input_pointers |= {self._pointers[name] for name in self._plan.weights if name in self._pointers}
        outputs = {}
        for name, placed in self._outputs.items():
            if placed.pointer not in input_pointers:
                input_pointers.add(placed.pointer)
                outputs[name] = placed
        return self._inputs, outputs

    def _placed(self, name: str) -> CudaTensor:
        spec = self._plan.tensors[name]
        return CudaTensor(int(self._pointer(name)), spec.shape, np.dtype(spec.dtype))

    def _launch_all(self) -> None:
        self._stream.put(lambda: start_all(self._calls))

    def _capture(self, calls: Sequence[Call]) -> tuple[Any, str]:
        """These launches as one CUDA graph, or None and why it did not work."""
        graph, reason = self._stream.capture(lambda: start_all(calls))
        if graph is None:
            self._staging.move_to(self._stream.on)
            return None, f"the capture failed ({reason})"
        return graph, ""

    def _begin_early(self, calls: list[Call], options: Options) -> None:
        """Let some kernels begin before the one in front has ended, those with which a pass is faster. A
        block that waits takes room on the device, so each is tried."""
        rungs = [rung for rung, _ in self._shapes]
        known = planned_early.read(self._plan, rungs) if options.tuned else None
        begun, graph = cuda_overlap.fastest_graph(
            self._stream, self._calls, calls, self._graph, lambda chosen: self._capture(chosen)[0], known
        )
        if options.tuned and begun != known:
            with contextlib.suppress(KernelError):  # a cache that cannot be written: it is tried again
                planned_early.write(self._plan, rungs, begun)
        if begun:
            self._graph, self._calls = graph, cuda_overlap.with_early(self._calls, calls, begun)
            self._facts["cuda_graph"] = f"yes, {len(begun)} of its {len(calls)} steps begin early"

    def _as_one_kernel(self, options: Options) -> None:
        """Compute a run of steps by one kernel, where that is faster."""
        trial = Trial(
            self._cupy, self._pool, self._stream, self._plan, capability_of(self._cupy),
            lambda name: int(self._pointer(name)), self._staging.upload, self._staging.download,
            self.fetch, self._captured,
            options.early, options.anyway,
        )  # fmt: skip
        outcome = trial.taken(self._graph, [call.start for call in self._calls])
        self._arena.memset_async(0, max(self._plan.arena_nbytes, ALIGNMENT), self._stream.on)
        if isinstance(outcome, str):
            self._facts["one_kernel"] = f"no: {outcome}"
            return
        self._one, self._graph = outcome
        self._calls = [Call((start,)) for start in self._one.starts([c.start for c in self._calls])]
        self._facts["kernels"] += f"; {self._one.words}"
        self._facts["one_kernel"] = f"{len(self._one.run.steps)} of {len(self._plan.steps)} steps"

    def _captured(self, work: Callable[[], None]) -> Any:
        """`work` as a CUDA graph; None where that fails."""
        return self._capture([Call((work,))])[0]

    # --------------------------------------------------------------------------------------------- running

    def _check(self, inputs: Mapping[str, Given]) -> None:
        plan = self._plan
        if set(inputs) != set(plan.inputs):
            raise InputError(
                f"the model's inputs are {', '.join(sorted(plan.inputs))}; given were "
                f"{', '.join(sorted(inputs)) or 'none'}"
            )
        for name, array in inputs.items():
            spec = plan.tensors[name]
            if tuple(array.shape) != spec.shape:
                raise InputError(
                    f"input {name} has shape {tuple(array.shape)}; the session takes {spec.shape}"
                )
            if not np.can_cast(array.dtype, spec.dtype, "same_kind"):
                raise InputError(f"input {name} is {array.dtype}; the session takes {spec.dtype}")

    def _start(self) -> None:
        if self._graph is None:
            self._launch_all()
        else:
            self._graph.launch(self._stream.on)

    def launch_order(self) -> tuple[tuple[Step, str], ...]:
        """What a pass starts on the device, in order; see engine.backend.Launching."""
        launches = launch_orders_of(self._plan, self._shapes)
        return tuple(item for its in (self._one.order(launches) if self._one else launches) for item in its)

    def launch_parts(self) -> tuple[Part, ...]:
        """See engine.backend.Parted."""
        return self._one.parts() if self._one else ()

    # ---------------------------------------------------------------------------------------------- timing

    def op_times(self, seconds: float) -> tuple[OpTime, ...]:
        """See `step_times`. A whole pass at the end restores the outputs."""
        self._check_open()
        with translated(self._what):
            self._stream.put(lambda: start_all(self._of_steps))
            self._stream.synchronize()
            capture = None if self._graph is None else self._captured
            calls = [call.start for call in self._of_steps]
            times = step_times(self._stream, self._plan.steps, calls, self._one, capture, seconds)
            self._start()
            self._stream.synchronize()
        return tuple(replace(time, op_type=self._op_types.get(time.nodes[0], time.op_type)) for time in times)


_TRAIN_NS = 500_000  # a train lasts about so long, far above the clock's resolution
_LONGEST_TRAIN = 100

Capture = Callable[[Work], Any]


def step_times(
    stream: Stream,
    steps: Sequence[Step],
    starts: Sequence[Work],
    one: Taken | None,
    capture: Capture | None,
    seconds: float,
) -> list[OpTime]:
    """The time of each step of a plan, measured in about `seconds` in all. A step is timed in trains of its
    own launches, as a CUDA graph if the session uses one. Steps that are one kernel in a pass (`one`) get
    their share of its time. starts: what launches each step alone; capture: see train_ns."""
    shares = one.shares() if one is not None else None
    within: dict[int, float] = {}
    if one is not None and shares is not None:
        whole = train_ns(stream, one.start, capture, seconds / 2)
        within = {one.run.start + i: share * whole for i, share in enumerate(shares)}
    times = []
    for i, (step, start) in enumerate(zip(steps, starts, strict=True)):
        if one is not None and i in within:
            nbytes = one.moved[i - one.run.start]
            times.append(OpTime(step.nodes, step.op, within[i], "stamps", FILE.stem, "timed", nbytes))
        else:
            time_ns = train_ns(stream, start, capture, seconds / len(steps))
            times.append(OpTime(step.nodes, step.op, time_ns, "events", step.rung, step.chosen, step.nbytes))
    return times


def train_ns(stream: Stream, start: Work, capture: Capture | None, seconds: float) -> float:
    """Median nanoseconds of one launch, out of trains that take about `seconds` together. capture: makes a
    graph of launches, None where it does not work; without it steps below about 4 µs are bound by the
    host."""

    def once() -> None:
        stream.put(start)

    shortest = min(stream.elapsed_ns(once) for _ in range(3))
    length = min(_LONGEST_TRAIN, max(1, math.ceil(_TRAIN_NS / max(shortest, 1))))

    def several() -> None:
        for _ in range(length):
            start()

    graph = capture(several) if capture is not None else None

    def train() -> None:
        if graph is not None:
            graph.launch(stream.on)
        else:
            for _ in range(length):
                once()

    return stream.median_ns(train, seconds) / length
