"""One batch in flight on a GPU: copy it to the device, convert pixels to numbers, run the pass, select the
best classes if asked, copy the answers back. Everything except the first copy is one CUDA graph if the
session is captured.

Host memory is page-locked, as a loader of images has it. While the kernels of one batch run, another is
copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.cuda.runtime import TO_DEVICE, TO_HOST, capability_of, keep, load_module, lost
from engine.cuda.stirring import CudaTensor
from engine.end_to_end import PLACES, VALUES, Affine, Pool, Request
from kernels import nvrtc, registry
from kernels.errors import UnsupportedError

Work = Callable[[], object]

BLOCK, EACH = 256, 4  # threads; values a thread
WARPS = 4
PROBED_S = 0.03  # for which the bus is measured
MOST = 5  # times that it is


@dataclass(frozen=True)
class OnDevice:
    """A session's pass, for code that adds work before and after it. stream: gives the current stream;
    capture: makes a CUDA graph of what is put on it, None where that fails (None: passes are not
    captured)."""

    cupy: Any
    memory: Any
    stream: Callable[[], Any]
    launch: Work
    inputs: Mapping[str, CudaTensor]
    outputs: Mapping[str, CudaTensor]
    capture: Callable[[Callable[[], None]], Any] | None = None


@runtime_checkable
class LiesOnDevice(Protocol):
    """A Session that gives all this."""

    @property
    def on_device(self) -> OnDevice: ...


def page_locked(cupy: Any, nbytes: int) -> np.ndarray:
    """Host memory that the GPU reads and writes directly."""
    memory = cupy.cuda.PinnedMemory(nbytes)
    return np.frombuffer(cupy.cuda.PinnedMemoryPointer(memory, 0), np.uint8, nbytes)


class CudaSlot:
    """See engine.end_to_end.BatchSlot. session: closed with the slot. affine: None where the pass takes the
    input as it is sent."""

    def __init__(self, session: Any, pool: Pool, asked: Request, affine: Affine | None) -> None:
        device: OnDevice = session.on_device
        self._session, self._pool, self._device = session, pool, device
        self._cupy = cupy = device.cupy
        self._copy = cupy.cuda.runtime.memcpyAsync
        self._done = cupy.cuda.Event(disable_timing=True)
        self._held: list[Any] = []
        works: list[Work] = []
        self._carried: list[tuple[int, int, int, int]] = []  # to, from, bytes an image, bytes a batch
        for name, array in pool.arrays.items():
            target = device.inputs[name].pointer
            if affine is not None and name == asked.image:
                size = math.prod(device.inputs[name].shape)
                pixels = self._room(size)
                works.append(self._affine(affine, pixels, target, size))
                target = pixels
            elif array.dtype != device.inputs[name].dtype:
                raise UnsupportedError(
                    f"input {name} is {device.inputs[name].dtype} on the device and {array.dtype} on the host"
                )
            row = array[:1].nbytes
            self._carried.append((target, int(array.ctypes.data), row, row * pool.batch))
        works += [device.launch, *self._answered(asked)]
        self._graph = device.capture(partial(_all, works)) if device.capture else None
        self._works = works
        self._stream = device.stream()
        self.nbytes_out = sum(array.nbytes for array in self.answers.values())

    def _room(self, nbytes: int) -> int:
        self._held.append(self._device.memory.malloc(nbytes))
        return int(self._held[-1].ptr)

    def _affine(self, affine: Affine, pixels: int, to: int, size: int) -> Work:
        if size >= 2**31 - BLOCK * EACH:
            raise UnsupportedError(
                f"a batch of {size:,} values is more than the kernel that makes numbers of pixels counts: "
                "take a smaller one"
            )
        channels = 1 if affine.uniform else len(affine.factors)
        three = [*affine.factors[:channels], 0, 0][:3], [*affine.offsets[:channels], 0, 0][:3]
        kernel = self._kernel("affine", INNER=affine.inner, CHANNELS=channels)
        arguments = (
            np.uint64(pixels), np.uint64(to), np.int32(size),
            *(np.float32(value) for values in three for value in values),
        )  # fmt: skip
        return partial(kernel, (-(-size // (BLOCK * EACH)),), (BLOCK,), arguments)

    def _kernel(self, name: str, **defines: int) -> Any:
        digits = "".join(map(str, capability_of(self._cupy)))
        rung = registry.code(Path(__file__).parent / f"{name}.cu", name, **defines)
        return load_module(self._cupy, nvrtc.compile_rung(rung, f"sm_{digits}")).get_function(name)

    def _answered(self, asked: Request) -> list[Work]:
        """The launches that bring the answers to the host, into `answers`."""
        outputs, works = dict(self._device.outputs), list[Work]()
        if asked.top_k and VALUES not in outputs:
            scores = outputs[asked.scores]
            if scores.dtype != np.float32:
                raise UnsupportedError(
                    f"output {asked.scores} is {scores.dtype}: best classes are of float32"
                )
            shape = scores.shape[0], asked.top_k
            values, places = (self._room(4 * math.prod(shape)) for _ in range(2))
            outputs = {
                VALUES: CudaTensor(values, shape, np.dtype(np.float32)),
                PLACES: CudaTensor(places, shape, np.dtype(np.int32)),
            }
            arguments = (
                np.uint64(scores.pointer), np.uint64(values), np.uint64(places), np.int32(shape[0]),
                np.int32(scores.size // shape[0]),
            )  # fmt: skip
            kernel = self._kernel("top_k", K=asked.top_k)
            works.append(partial(kernel, (-(-shape[0] // WARPS),), (32 * WARPS,), arguments))
        self.answers: dict[str, np.ndarray] = {}
        for name, tensor in outputs.items():
            nbytes = tensor.size * tensor.dtype.itemsize
            host_memory = page_locked(self._cupy, max(nbytes, 1))
            self.answers[name] = host_memory[:nbytes].view(tensor.dtype).reshape(tensor.shape)
            works.append(partial(self._back, int(host_memory.ctypes.data), tensor.pointer, nbytes))
        return works

    def _back(self, to: int, pointer: int, nbytes: int) -> None:
        self._copy(to, pointer, nbytes, TO_HOST, self._cupy.cuda.get_current_stream().ptr)

    def start(self, offset: int) -> None:
        stream = self._stream
        for to, source, row, nbytes in self._carried:
            self._copy(to, source + offset * row, nbytes, TO_DEVICE, stream.ptr)
        if self._graph is not None:
            self._graph.launch(stream)
        else:
            with stream:
                _all(self._works)
        self._done.record(stream)

    def finish(self) -> None:
        self._done.synchronize()

    def bus(self) -> float:
        """Bytes a second from these buffers to the device, with no other work: the best of a few
        measurements. Call it while no batch is in flight."""
        cupy, stream = self._cupy, self._stream
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        total = sum(nbytes for *_, nbytes in self._carried)

        def rate(count: int) -> float:
            start.record(stream)
            for _ in range(count):
                for to, source, _, nbytes in self._carried:
                    self._copy(to, source, nbytes, TO_DEVICE, stream.ptr)
            stop.record(stream)
            stop.synchronize()
            return count * total / max(cupy.cuda.get_elapsed_time(start, stop) / 1e3, 1e-9)

        count = max(1, min(200, math.ceil(PROBED_S * rate(2) / max(total, 1) / MOST)))
        return max(rate(count) for _ in range(MOST))

    def close(self) -> None:
        if lost(self._cupy):
            keep(self)
            self._session.close()
            return
        self._stream.synchronize()
        self._graph, self._works = None, []
        self._held.clear()
        self._session.close()


def _all(works: list[Work]) -> None:
    for work in works:
        work()
