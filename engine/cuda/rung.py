"""One CUDA kernel of the ladder as a session of a single step, with a stream, CUDA events and CUDA graphs of
its own."""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.cuda import runtime as cuda_runtime
from engine.cuda.renewing import OverNew
from engine.cuda.rung_memory import RungMemory
from engine.cuda.runtime import capability_of, import_cupy, load_module, translated
from engine.cuda.stages import kernel_calls
from engine.cuda.stream import Stream
from engine.cuda.trains import CudaTrains
from engine.planning import traffic
from engine.rung_rows import Given
from engine.rung_session import Picked, Stray
from engine.stirring import Stirring, Witness
from kernels import launch, nvrtc, occupancy
from kernels.errors import UnavailableError
from kernels.languages.compiling import settled
from kernels.ops import Params
from kernels.registry import Rung

PACKED_NBYTES = 512 << 20  # of packed weights that are kept for the next session that asks for them
FETCHED_NBYTES = 64 << 20  # of an output over new inputs, after each train of them
LONGEST_GRAPH = 256  # launches captured as one; longer trains replay it


class CudaRungSession:
    """See engine.rung_session.RungSession. An error of a launch appears in `run`, or in the next call that
    waits."""

    def __init__(self, rung: Rung, params: Params, inputs: Sequence[Given]) -> None:
        self._what = f"{rung.label} on the GPU"
        self._cupy = cupy = import_cupy()
        self._open = True
        self._pool: Any = None
        try:
            with translated(self._what):
                capability = capability_of(cupy)
                digits = "".join(map(str, capability))
                shape = launch.launch(params, rung)
                cubin = nvrtc.compile_rung(rung, f"sm_{digits}", shape.defines)
                shape = settled(shape, rung, cubin)
                module = load_module(cupy, cubin)
                pointers = self._allocate(rung, params, inputs, shape)
                output, scratch = map(self._memory.pointer, ("output", "workspace"))
                self._stages = kernel_calls(cupy, module, rung, shape, pointers, output, scratch)
                self._trains = CudaTrains(
                    cupy, self._pool, self._stream, self._memory.staging, self._launch,
                    *self._memory.stirred, self._memory.data, longest=LONGEST_GRAPH,
                )  # fmt: skip
                self._over_new = OverNew(self._trains, self._put, self._small_output)
                kernel, compiled = compiled_facts(cubin, shape, rung.op, digits)
                self.compiled: Mapping[str, float] = compiled
        except BaseException:
            self.close()
            raise
        self._facts: dict[str, str] = {
            **launch_facts(shape, rung.op, kernel),
            "compute_capability": ".".join(map(str, capability)),
            "multiprocessors": str(cupy.cuda.Device().attributes["MultiProcessorCount"]),
            **({"stirring": f"no: {self._trains.refusal}"} if self._trains.refusal else {}),
        }

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts | (self._trains.facts if self._open else {})

    def _allocate(
        self, rung: Rung, params: Params, inputs: Sequence[Given], shape: launch.Launch
    ) -> list[int]:
        """Allocate the memory of all buffers. Returns the addresses of the inputs."""
        cupy = self._cupy
        self._pool = cupy.cuda.MemoryPool()
        self._stream = Stream(cupy, self._pool)
        # A weight that the launch packs lies there packed, once: it never changes while the session lives.
        arrays = [
            packed(shape.packed[i], np.asarray(array)) if i in shape.packed else array
            for i, array in enumerate(inputs)
        ]
        self.moved = traffic.bytes_moved(params, {i: arrays[i].nbytes for i in shape.packed})
        scratch = shape.workspace_nbytes or 0
        self._memory = RungMemory(cupy, self._pool, self._stream, rung, params, arrays, scratch)
        return [self._memory.pointer(f"input {i}") for i in range(len(inputs))]

    def bind(self, inputs: Mapping[str, Given]) -> None:
        with translated(self._what):
            self._trains.forget()
            self._memory.write(inputs)
            self._over_new.written()

    def _settle(self) -> None:
        """Restore the inputs to what was written."""
        if not self._over_new.settled():
            self.bind(self._memory.data())

    def _put(self) -> None:
        self._memory.write(self._memory.data())

    def _small_output(self) -> Mapping[str, np.ndarray] | None:
        return {"output": self._memory.output()} if self._memory.output_nbytes <= FETCHED_NBYTES else None

    def poison(self, byte: int) -> None:
        with translated(self._what):
            self._memory.poison(byte)

    def run(self) -> None:
        self._settle()
        with translated(self._what):
            self._stream.put(self._launch)

    def _launch(self) -> None:
        for stage in self._stages:
            stage()

    def synchronize(self) -> None:
        with translated(self._what):
            self._stream.synchronize()

    def output(self, rows: Picked = None) -> np.ndarray:
        with translated(self._what):
            return self._memory.output(rows)

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        self._settle()
        with translated(self._what):
            return self._memory.strays(whole)

    def time_runs(self, count: int, cold: bool = False) -> int:
        self._settle()
        with translated(self._what):
            return self._trains.time(count, cold)

    def time_renewed(self, count: int, alike: int) -> float:
        with translated(self._what):
            return self._over_new.time(count, alike)

    def renewed(self) -> Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]]:
        return self._over_new.last()

    @property
    def stirring(self) -> Stirring | None:
        return self._trains.stirring

    @property
    def stirring_ns(self) -> float:
        return self._trains.stirring_ns

    def witnesses(self) -> tuple[Witness, ...]:
        with translated(self._what):
            return self._trains.witnesses()

    def close(self) -> None:
        """Wait for what still runs, then free everything. On a device that has failed nothing is freed."""
        if not self._open:
            return
        self._open = False
        if cuda_runtime.lost(self._cupy):
            cuda_runtime.keep(self)
            return
        with contextlib.suppress(RuntimeError, AttributeError):
            self._stream.synchronize()
        for name in ("_over_new", "_trains", "_memory", "_stages", "_stream"):
            self.__dict__.pop(name, None)
        if self._pool is not None:
            with contextlib.suppress(RuntimeError):
                self._pool.free_all_blocks()
            self._pool = None


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
