"""One CUDA kernel of the ladder on a machine without a GPU: its PTX runs on the CPU (kernels.ptx), with
answers, what is wrong with its accesses to memory, and counts of each line. It has no times."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from engine.planning import traffic
from engine.rung_rows import Given, bytes_of, picked
from engine.rung_session import Picked, Stray
from kernels import launch, nvrtc
from kernels.errors import KernelError, OutOfMemoryError, UnsupportedError
from kernels.launch import Product
from kernels.layouts import PLAIN
from kernels.layouts import nbytes as layout_nbytes
from kernels.ops import Params
from kernels.ptx.program import Buffer, Device, Program, Report, packed
from kernels.ptx.reads import Reads, of_a_block
from kernels.registry import Rung

ARCH = "sm_80"  # what a kernel is compiled for, where its header does not ask for more
SECONDS = 20.0  # after which a launch is ended
ALONE_SECONDS = 3.0  # of a block alone, which may wait for others that do not come


class SimulatedRungSession:
    """See engine.rung_session.RungSession; `report` has all findings, and the counts of the last pass.
    seed: in which order warps take turns (kernels.ptx.machine.run). arch: what it is compiled for (ptx_of).
    seconds: after which a launch is ended.

    Raises KernelError where the kernel does not compile, UnsupportedError where it cannot be run here, with
    the instruction that is missing and its line."""

    compiled: Mapping[str, float] = {}

    def __init__(
        self,
        rung: Rung,
        params: Params,
        inputs: Sequence[Given],
        seed: int = 0,
        arch: str = "",
        seconds: float = SECONDS,
    ) -> None:
        self._rung, self._params, self._seed, self._seconds = rung, params, seed, seconds
        self._how = how = launch.launch(params, rung)
        if rung.language:
            raise UnsupportedError(f"{rung.label}: kernels in {rung.language} are not run without a GPU")
        if any(isinstance(stage, Product) for stage in how.stages(rung.op)):
            raise UnsupportedError(f"{rung.label}: cuBLAS is not there without a GPU")
        self._program = program_of(rung, how, arch)
        arrays = [
            how.packed[i](np.asarray(array)) if i in how.packed else np.asarray(array)
            for i, array in enumerate(inputs)
        ]
        self.moved = traffic.bytes_moved(params, {i: arrays[i].nbytes for i in how.packed})
        self._device = device = Device(self._program)
        self._inputs = [
            device.buffer(f"input {i}", array, array.dtype.itemsize) for i, array in enumerate(arrays)
        ]
        self._dtype = np.dtype(params.out_dtype)
        nbytes = int(np.prod(params.output_shape, dtype=np.int64)) * self._dtype.itemsize
        if rung.written_layout != PLAIN:
            nbytes = layout_nbytes(rung.written_layout, params.output_shape)
        try:
            self._output = self._unwritten("output", nbytes, self._dtype.itemsize)
            self._workspace = self._unwritten("workspace", how.workspace_nbytes or 0, 4)
        except MemoryError as error:
            raise OutOfMemoryError(f"{rung.label} without a GPU: {error}") from None
        self._launches = [
            (stage.function, stage.grid, stage.block, self._given(stage), stage.shared_nbytes)
            for stage in how.stages(rung.op)
            if isinstance(stage, launch.Stage)
        ]

    def _given(self, stage: launch.Stage) -> bytes:
        """The arguments of a launch."""
        pointers = [buffer.address for buffer in self._inputs]
        places = self._output.address, self._workspace.address
        return packed(self._how.arguments(pointers, *places, self._rung, stage))

    def _unwritten(self, name: str, nbytes: int, itemsize: int) -> Buffer:
        content = np.full(nbytes, 0xFF, np.uint8)
        return self._device.buffer(name, content, itemsize, writable=True, written=False)

    @property
    def facts(self) -> Mapping[str, str]:
        return {"simulated": "PTX on the CPU"}

    @property
    def report(self) -> Report:
        return self._device.report

    def bind(self, inputs: Mapping[str, Given]) -> None:
        for name, array in inputs.items():
            self._device.named(name).bytes[:] = bytes_of(np.asarray(array))

    def poison(self, byte: int) -> None:
        for buffer in (self._output, self._workspace):
            buffer.bytes[:] = byte
            self._device.forget(buffer)

    def run(self) -> None:
        """One pass, to its end; nothing where one before did not end."""
        how, rung = self._how, self._rung
        if any(finding.kind == "endless" for finding in self.report.findings):
            return
        self.report.counted.clear()
        if how.constant is not None:
            name, index, nbytes = how.constant
            try:
                to = self._device.named(name)
            except StopIteration:
                raise KernelError(f'{rung.path}: it must define extern "C" __constant__ … {name}[]') from None
            to.bytes[:nbytes] = self._inputs[index].bytes[:nbytes]
        for each in self._launches:
            self._device.launch(*each, self._seed, self._seconds)

    def reads(self) -> Mapping[tuple[str, int], Reads]:
        """What the first block of a pass reads, by line; nothing where a pass has several kernels. Raises
        KernelError."""
        if len(self._launches) != 1:
            return {}
        return of_a_block(self._device, *self._launches[0], self._seed, ALONE_SECONDS)

    def synchronize(self) -> None:
        """Passes are over when `run` returns."""

    def output(self, rows: Picked = None) -> np.ndarray:
        whole = self._output.bytes.view(self._dtype)
        if rows is None:
            return whole.reshape(self._params.output_shape).copy()
        shape = self._params.output_rows
        return whole.reshape(shape)[picked(rows, shape[0])]

    @property
    def output_bytes(self) -> np.ndarray:
        """uint8: the output as it lies, which in another layout than the model's `output` cannot tell."""
        return self._output.bytes

    def strays(self, whole: bool = True) -> tuple[Stray, ...]:
        """None: a write outside is a finding, and touches nothing."""
        return ()

    def time_runs(self, count: int, cold: bool = False) -> int:
        raise UnsupportedError("without a GPU there are no times")

    def close(self) -> None:
        self._device.buffers.clear()


def ptx_of(rung: Rung, how: launch.Launch, arch: str = "") -> str:
    """The PTX of a launch for an architecture ("sm_90"); "": the one that the rung asks for, at least ARCH.
    Raises KernelError."""
    if arch:
        return nvrtc.ptx(rung, arch, how.defines)
    needed = tuple(rung.needs.get("architecture", rung.needs.get("compute_capability", (8, 0))))
    least = f"sm_{needed[0]}{needed[1]}" if needed > (8, 0) else ARCH
    return nvrtc.ptx(rung, least, how.defines)


@functools.lru_cache(maxsize=64)
def _program(text: str) -> Program:
    """Read and translated once for all shapes that are compiled alike."""
    return Program(text)


def program_of(rung: Rung, how: launch.Launch, arch: str = "") -> Program:
    """The kernels of a launch, translated. Raises KernelError, UnsupportedError with what is missing."""
    program = _program(ptx_of(rung, how, arch))
    for stage in how.kernels(rung.op):
        program.translated(stage.function)
    return program
