"""One CUDA kernel of the ladder as a session of a single step, with a stream, CUDA events and CUDA graphs of
its own."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.cuda import bounds
from engine.cuda import runtime as cuda_runtime
from engine.cuda.runtime import ON_DEVICE, Staging, capability_of, import_cupy, load_module, translated
from engine.cuda.stages import kernel_calls
from engine.cuda.stirring import CudaTensor
from engine.cuda.stream import Stream
from engine.cuda.trains import CudaTrains, KernelSession
from engine.graph.plan import Plan
from engine.planning import traffic
from engine.rung_rows import Given, picked
from engine.rung_session import GUARD, GUARD_NBYTES, Picked, Stray, layout, one_step, strays
from kernels import launch, nvrtc, occupancy
from kernels.errors import UnavailableError
from kernels.languages.compiling import settled
from kernels.ops import Params
from kernels.registry import Rung

PACKED_NBYTES = 512 << 20  # of packed weights that are kept for the next session that asks for them
FETCHED_NBYTES = 64 << 20  # of an output over new inputs, after each train of them
LONGEST_GRAPH = 256  # launches captured as one; longer trains replay it
# Page-locked memory takes long to be had, a session is opened for moments, and pieces of this size fill the
# bus. What lies in many places is gathered on the device in as much.
PIECE_NBYTES = 4 << 20


class CudaRungSession(KernelSession):
    """See engine.rung_session.RungSession. An error of a launch appears in `run`, or in the next call that
    waits."""

    _held = ("_trains", "_staging", "_arena", "_stages", "_stream")

    def __init__(self, rung: Rung, params: Params, inputs: Sequence[Given]) -> None:
        self._what = f"{rung.label} on the GPU"
        self._cupy = import_cupy()
        self._facts = {}
        try:
            with translated(self._what):
                self._prepare(rung, params, inputs)
        except BaseException:
            self.close()
            raise

    def _prepare(self, rung: Rung, params: Params, inputs: Sequence[Given]) -> None:
        cupy = self._cupy
        capability = capability_of(cupy)
        digits = "".join(map(str, capability))
        shape = launch.launch(params, rung)
        cubin = nvrtc.compile_rung(rung, f"sm_{digits}", shape.defines)
        shape = settled(shape, rung, cubin)
        bounds.admit(cupy, rung, cubin, shape.workspace_nbytes or 0)
        module = load_module(cupy, cubin)
        self._pool = cupy.cuda.MemoryPool()
        self._stream = Stream(cupy, self._pool)
        # A weight that the launch packs lies there packed, once: it never changes while the session lives.
        arrays = [
            packed(shape.packed[i], np.asarray(array)) if i in shape.packed else array
            for i, array in enumerate(inputs)
        ]
        self.moved = traffic.bytes_moved(params, {i: arrays[i].nbytes for i in shape.packed})
        made = one_step(rung, params, arrays)
        self._lay(made, dict(zip(made.steps[0].inputs, arrays, strict=True)), shape.workspace_nbytes or 0)
        self._rows, self._random = params.output_rows, np.random.default_rng()
        pointers = [self._pointer(name) for name in made.steps[0].inputs]
        output, scratch = map(self._pointer, ("output", "workspace"))
        self._stages = kernel_calls(cupy, module, rung, shape, pointers, output, scratch)
        self._timed_by(
            CudaTrains(
                cupy, self._pool, self._stream, self._staging, self._launch, self._inputs, self._outputs,
                self._lying, longest=LONGEST_GRAPH,
            )
        )  # fmt: skip
        kernel, compiled = compiled_facts(cubin, shape, rung.op, digits)
        self.compiled: Mapping[str, float] = compiled
        self._facts |= {
            **launch_facts(shape, rung.op, kernel),
            "compute_capability": ".".join(map(str, capability)),
            "multiprocessors": str(cupy.cuda.Device().attributes["MultiProcessorCount"]),
        }

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts | ({} if self._closed else self._trains.facts)

    def _lay(self, made: Plan, arrays: Mapping[str, Given], scratch: int) -> None:
        """Allocate one arena with guards for all buffers, and copy the inputs there. scratch: bytes of the
        workspace."""
        self._layout = laid = layout(made, scratch)
        self._arena = self._pool.malloc(laid.nbytes + PIECE_NBYTES)
        self._arena.memset_async(GUARD, laid.nbytes, self._stream.on)
        largest = max(size for _, size in laid.places.values())
        self._staging = Staging(self._cupy, self._stream.on, min(PIECE_NBYTES, max(largest, GUARD_NBYTES)))
        placed = {
            name: CudaTensor(self._pointer(name), it.shape, np.dtype(it.dtype))
            for name, it in made.tensors.items()
        }
        self._inputs = {name: placed[name] for name in made.inputs}
        self._outputs = {name: placed[name] for name in made.outputs}
        first = {name: self._kept(array, np.dtype(array.dtype)) for name, array in arrays.items()}
        for name, array in first.items():
            self._staging.upload(array, self._pointer(name))
        self._stream.synchronize()
        self._weights = {name: array for name, array in first.items() if name in made.weights}
        self._bound = {name: first[name] for name in made.inputs}

    def _pointer(self, name: str) -> int:
        """The address of a buffer; 0 for a workspace of no bytes."""
        places = self._layout.places
        return int(self._arena.ptr) + places[name][0] if name in places else 0

    def poison(self, byte: int) -> None:
        with self._in_words:
            for name in {"output", "workspace"} & self._layout.places.keys():
                offset, size = self._layout.places[name]
                (self._arena + offset).memset_async(byte, size, self._stream.on)

    def _start(self) -> None:
        self._stream.put(self._launch)

    def _launch(self) -> None:
        for stage in self._stages:
            stage()

    def output(self, rows: Picked = None) -> np.ndarray:
        placed, offset = self._outputs["output"], self._layout.places["output"][0]
        if rows is None:
            shape, pieces = placed.shape, [self._layout.places["output"]]
        else:
            each = math.prod(self._rows[1:]) * placed.dtype.itemsize
            places = picked(rows, self._rows[0])
            shape = (len(places), *self._rows[1:])
            pieces = [(offset + each * at, each * count) for at, count in _runs(places.tolist())]
        with self._in_words:
            return self._read(pieces).view(placed.dtype).reshape(shape)

    def _answer(self) -> Mapping[str, np.ndarray] | None:
        small = self._layout.places["output"][1] <= FETCHED_NBYTES
        return self._copied_out() if small else None

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        self._settle()
        with self._in_words:
            inputs = {**self._weights, **self._bound}
            return tuple(strays(self._layout, inputs, self._read, whole, self._random))

    def _read(self, pieces: Sequence[tuple[int, int]]) -> np.ndarray:
        """Bytes of the arena at these (offset, bytes), one after the other. Small pieces are collected on the
        device first, so that the host waits for few copies."""
        fetched = np.empty(sum(nbytes for _, nbytes in pieces), np.uint8)
        base = int(self._arena.ptr)
        gathered = base + self._layout.nbytes
        copied = waiting = 0
        for offset, nbytes in pieces:
            if waiting and waiting + nbytes > PIECE_NBYTES:
                self._staging.download(gathered, fetched[copied - waiting : copied])
                waiting = 0
            if nbytes > PIECE_NBYTES:
                self._staging.download(base + offset, fetched[copied : copied + nbytes])
            else:
                copy = self._cupy.cuda.runtime.memcpyAsync
                copy(gathered + waiting, base + offset, nbytes, ON_DEVICE, self._stream.on.ptr)
                waiting += nbytes
            copied += nbytes
        if waiting:
            self._staging.download(gathered, fetched[copied - waiting : copied])
        return fetched


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Rows that follow each other, as (first, how many)."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][0] + runs[-1][1] == place:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((place, 1))
    return runs


_packed: OrderedDict[tuple[launch.Pack, int], tuple[np.ndarray, np.ndarray]] = OrderedDict()


def packed(pack: launch.Pack, array: np.ndarray) -> np.ndarray:
    """A weight rearranged by `pack`. The results for the last arrays are kept: one step is tried at many
    batch sizes, each time with the same weights."""
    key = (pack, id(array))  # the array is held, so that no other gets its id
    if key not in _packed:
        _packed[key] = (array, pack(array))
    _packed.move_to_end(key)
    while (
        len(_packed) > 1 and sum(array_packed.nbytes for _, array_packed in _packed.values()) > PACKED_NBYTES
    ):
        _packed.popitem(last=False)
    return _packed[key][1]


def compiled_facts(
    cubin: Any, shape: launch.Launch, op: str, digits: str
) -> tuple[launch.Stage | None, dict[str, float]]:
    """The compile-time facts of a launch (see RungSession.compiled), and the kernel that they are of. With
    several kernels it is the one of lowest occupancy. None and nothing where a library does the work."""
    kernels = shape.kernels(op)
    if len(kernels) == 0 or any(isinstance(stage, launch.Product) for stage in shape.stages(op)):
        return None, {}
    per_stage = []
    for stage in kernels:
        used = nvrtc.resources(cubin, stage.function)
        if used is None:
            return None, {}
        threads = stage.block[0] * stage.block[1] * stage.block[2]
        shared = used.shared_nbytes + stage.shared_nbytes
        facts: dict[str, float] = {
            "registers": used.registers,
            "shared_nbytes": shared,
            "stack_nbytes": used.stack_nbytes,
            "spill_nbytes": used.spill_nbytes,
            "threads": threads,
        }
        full = occupancy.theoretical((int(digits[:-1]), int(digits[-1])), threads, used.registers, shared)
        if full is not None:
            facts["occupancy"] = full
        per_stage.append((stage, facts))
    return min(per_stage, key=lambda item: item[1].get("occupancy", 0.0))


def launch_facts(shape: launch.Launch, op: str, kernel: launch.Stage | None) -> dict[str, str]:
    """Grid and block of this kernel (None: of the first kernel). With several stages also their names, in
    order, each with how often it is started."""
    stages = shape.stages(op)
    facts: dict[str, str] = {}
    if kernel := kernel or next(iter(shape.kernels(op)), None):
        facts |= {"grid": "×".join(map(str, kernel.grid)), "block": "×".join(map(str, kernel.block))}
    if len(stages) > 1 or kernel is None:
        counts = Counter(stage.function for stage in stages)
        words = (name if count == 1 else f"{count} × {name}" for name, count in counts.items())
        facts |= {"stages": ", ".join(words)} | ({"kernel": kernel.function} if kernel else {})
    return facts


def lost() -> bool:
    """Whether the CUDA context of this process has failed for good, as after an illegal access."""
    try:
        return cuda_runtime.lost(import_cupy())
    except UnavailableError:
        return True
