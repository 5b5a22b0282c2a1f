"""What the program uses of CuPy, on a stand-in device."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.standin.code import Function, Module
from tests.standin.device import Device, Event, Graph, Launched, Stream, Work
from tests.standin.errors import INVALID, NOT_FOUND, CudaError, OutOfMemoryError
from tests.standin.launching import Kernel
from tests.standin.memory import ALIGNMENT, Block, fill
from tests.standin.modules.arrays import Array, Later, Placed
from tests.standin.settings import CUDA, NAME

_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3  # cudaMemcpyKind
_COPIES = {_TO_DEVICE: "HTOD", _TO_HOST: "DTOH", _ON_DEVICE: "DTOD"}
_COPY_US, _COPIED_A_US = 3.0, 20_000.0
TEXTURE = 512  # textureAlignment, in bytes


class Cupy:
    """Its attributes are those of the module `cupy`."""

    __version__ = "14.0"

    def __init__(self, device: Device) -> None:
        self.device = device
        self._modules: dict[str, _RawModule] = {}  # CuPy loads a file once
        self._allocations: dict[int, Block] = {}  # by the runtime's own calls
        capability = "".join(map(str, device.settings.capability))
        attributes = {
            "L2CacheSize": device.settings.l2_nbytes,
            "MultiProcessorCount": device.settings.multiprocessors,
            "MaxThreadsPerMultiProcessor": 2048,
            "WarpSize": 32,
        }

        def the_device(number: int = 0) -> SimpleNamespace:
            device.check()
            return SimpleNamespace(
                id=number,
                compute_capability=capability,
                attributes=attributes,
                synchronize=device.synchronize,
            )

        def checked(answer: Any) -> Callable[..., Any]:
            def call(*_: Any) -> Any:
                device.check()
                return answer() if callable(answer) else answer

            return call

        memory = device.memory
        self.cuda = SimpleNamespace(
            Stream=lambda non_blocking=False: _Stream(Stream(device)),
            get_current_stream=lambda: _Stream(device.current),
            # A texture is where its memory lies.
            UnownedMemory=lambda address, nbytes, owner: SimpleNamespace(ptr=address),
            MemoryPointer=lambda memory, offset: SimpleNamespace(ptr=memory.ptr + offset),
            texture=SimpleNamespace(
                ChannelFormatDescriptor=lambda *bits: bits,
                ResourceDescriptor=_linear,
                TextureDescriptor=lambda: None,
                TextureObject=lambda resource, how: SimpleNamespace(ptr=resource.memptr.ptr),
            ),
            Event=lambda disable_timing=False: _Event(device, not disable_timing),
            get_elapsed_time=lambda start, stop: start.it.ms_until(stop.it),
            Device=the_device,
            MemoryPool=lambda: _Pool(device),
            alloc=lambda nbytes: _Pool(device).malloc(nbytes),
            Memory=lambda nbytes: _Memory(device, nbytes),
            PinnedMemory=lambda nbytes: _Memory(device, nbytes, pinned=True),
            PinnedMemoryPointer=lambda held, offset: held.block.array[offset:],
            runtime=SimpleNamespace(
                memcpyAsync=self._copy,
                memcpy=self._copied,
                malloc=lambda nbytes: self._allocated(nbytes),
                mallocManaged=lambda nbytes: self._allocated(nbytes),
                hostAlloc=lambda nbytes, flags: self._allocated(nbytes, pinned=True),
                freeHost=self._free,
                getDevice=checked(0),
                getDeviceProperties=checked({"name": NAME.encode()}),
                driverGetVersion=lambda: CUDA,
                memGetInfo=checked(lambda: (memory.total - memory.used, memory.total)),
                deviceSynchronize=device.synchronize,
                streamSynchronize=lambda stream: device.stream(int(stream)).synchronize(),
                free=self._free,
                profilerStart=checked(None),
                cudaChannelFormatKindFloat=2,
                cudaResourceTypeLinear=2,
                profilerStop=checked(None),
            ),
        )

    float32 = np.float32

    def ndarray(self, shape: Sequence[int], dtype: Any, memptr: Any) -> Placed:
        return Placed(self.device, shape, dtype, memptr)

    @staticmethod
    def histogram(x: Placed, bins: int, range: tuple[float, float]) -> tuple[Later, None]:
        return Later(lambda: np.histogram(x.values, bins, range)[0]), None

    def get_default_memory_pool(self) -> SimpleNamespace:
        return SimpleNamespace(free_all_blocks=lambda: None)

    def RawModule(self, path: str) -> _RawModule:
        self.device.check()
        if path not in self._modules:
            self._modules[path] = _RawModule(self.device, Module.read(path, self.device.settings.capability))
        return self._modules[path]

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        values = np.ascontiguousarray(values, dtype)
        return Array.of(self.device, self.cuda.alloc(values.nbytes), values)

    def full(self, size: int, value: Any, dtype: Any) -> Array:
        return self.asarray(np.full(size, value, dtype))

    def asnumpy(self, array: Array) -> np.ndarray:
        return array.on_host()

    def _allocated(self, nbytes: int, pinned: bool = False) -> int:
        self.device.check()
        block = self.device.memory.allocate(nbytes, pinned)
        self._allocations[block.address] = block
        return block.address

    def _free(self, address: int) -> None:
        """cudaFree, which of nothing frees nothing, and cudaFreeHost."""
        self.device.check()
        if address:
            self.device.memory.free(self._allocations.pop(address))

    def _copied(self, to: int, source: int, nbytes: int, kind: int) -> None:
        """cudaMemcpy, which waits."""
        self._copy(to, source, nbytes, kind, 0)
        self.device.stream(0).synchronize()

    def _copy(self, to: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        """cudaMemcpyAsync. Bytes of the device have to be allocated; those of the host are its own matter."""
        memory = self.device.memory
        if kind not in _COPIES:
            raise CudaError(INVALID, f"memcpy of kind {kind}")
        target = memory.find(to, nbytes)
        if (kind != _TO_HOST and target is None) or (
            kind != _TO_DEVICE and memory.find(source, nbytes) is None
        ):
            raise CudaError(INVALID, f"memcpy of {nbytes:,} bytes beyond what was allocated")

        def do() -> None:
            ctypes.memmove(to, source, nbytes)
            if target is not None:
                target.version += 1

        told = {"kind": "MEMCPY", "copy_kind": _COPIES[kind], "bytes": nbytes}
        cost = _COPY_US + nbytes / _COPIED_A_US
        self.device.stream(int(stream)).put(Work(do, cost, call="cudaMemcpyAsync", told=told))


def _linear(kind: int, arr: Any, chDesc: Any, sizeInBytes: int) -> Any:
    """As CUDA: a texture begins at a multiple of the device's textureAlignment."""
    if arr.memptr.ptr % TEXTURE:
        raise CudaError(INVALID, f"a texture at {arr.memptr.ptr:#x}, which is no multiple of {TEXTURE}")
    return arr


class _RawModule:
    def __init__(self, device: Device, module: Module) -> None:
        self._device, self._module = device, module
        self._constants: dict[str, _Memory] = {}
        self._kernels: dict[str, Kernel] = {}

    def get_function(self, name: str) -> _RawKernel:
        function = self._module.functions.get(name)
        if self._module.known and function is None:
            raise CudaError(NOT_FOUND, name)
        if name not in self._kernels:
            addresses = [int(self._constant(name).ptr) for name in self._module.constants]
            self._kernels[name] = Kernel(self._device, self._module, function or Function(name), addresses)
        return _RawKernel(self._kernels[name])

    def get_global(self, name: str) -> _Memory:
        if name not in self._module.constants:
            raise CudaError(NOT_FOUND, name)
        return self._constant(name)

    def _constant(self, name: str) -> _Memory:
        if name not in self._constants:
            self._constants[name] = _Memory(self._device, self._module.constants[name])
        return self._constants[name]


class _RawKernel:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.kernel = SimpleNamespace(ptr=kernel.handle)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._kernel.most_shared_nbytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, nbytes: int) -> None:
        self._kernel.allow_shared(nbytes)

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0
    ) -> None:
        work = self._kernel.work(grid, block, args, shared_mem)
        self._kernel.device.current.put(work)


class _Stream:
    """cupy.cuda.Stream."""

    def __init__(self, it: Stream) -> None:
        self.it = it

    @property
    def ptr(self) -> int:
        return self.it.handle

    def __enter__(self) -> _Stream:
        self.it.device.enter(self.it)
        return self

    def __exit__(self, *_: object) -> None:
        self.it.device.leave()

    def synchronize(self) -> None:
        self.it.synchronize()

    def launch_host_func(self, function: Callable[[Any], None], argument: Any) -> None:
        """On a thread of its own, as soon as what is in front of it is over."""
        self.it.drain()
        called = threading.Thread(target=function, args=(argument,), daemon=True)
        called.start()
        self.it.put(Work(called.join, call="cudaLaunchHostFunc"))

    def begin_capture(self) -> None:
        self.it.begin_capture()

    def end_capture(self) -> _Graph:
        return _Graph(self.it.end_capture())


class _Graph:
    def __init__(self, it: Graph) -> None:
        self._it = it

    def upload(self, stream: _Stream) -> None:
        stream.it.device.check()

    def launch(self, stream: _Stream) -> None:
        self._it.put_on(stream.it)


class _Event:
    def __init__(self, device: Device, timed: bool) -> None:
        self._device = device
        self.it = Event(timed)

    def record(self, stream: _Stream | None = None) -> None:
        self.it.record(self._device.current if stream is None else stream.it)

    def synchronize(self) -> None:
        self.it.synchronize()


class _Memory:
    """cupy.cuda.Memory and PinnedMemory: freed when nobody holds it any more."""

    def __init__(self, device: Device, nbytes: int, pinned: bool = False) -> None:
        device.check()
        self.block = device.memory.allocate(nbytes, pinned)
        self._device = device
        self.ptr, self.size = self.block.address, nbytes

    def __del__(self, over: Any = sys.is_finalizing) -> None:
        if "block" in self.__dict__ and not over():
            self._device.finish()
            self._device.memory.free(self.block)


class _Pool:
    """cupy.cuda.MemoryPool: what comes back is kept, as it may still be in use, and given out again."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: dict[int, list[Block]] = {}

    def malloc(self, nbytes: int) -> _Pointer:
        self._device.check()
        if self._device.current.captured is not None:
            raise CudaError(900, "memory cannot be allocated")
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        kept = self._free.get(size)
        if kept:
            return _Pointer(_Held(self, kept.pop()))
        try:
            block = self._device.memory.allocate(size)
        except OutOfMemoryError:  # as CuPy does it: what the pool keeps is given back first
            self.free_all_blocks()
            block = self._device.memory.allocate(size)
        return _Pointer(_Held(self, block))

    def back(self, block: Block) -> None:
        self._free.setdefault(block.nbytes, []).append(block)

    def free_all_blocks(self) -> None:
        if any(self._free.values()):
            self._device.finish()
        for blocks in self._free.values():
            for block in blocks:
                self._device.memory.free(block)
        self._free.clear()

    def __del__(self) -> None:
        self.free_all_blocks()


class _Held:
    """A block of a pool's while anybody points into it."""

    def __init__(self, pool: _Pool, block: Block) -> None:
        self.pool, self.block = pool, block

    def __del__(self) -> None:
        self.pool.back(self.block)


class _Pointer:
    """cupy.cuda.MemoryPointer."""

    def __init__(self, held: _Held, offset: int = 0) -> None:
        self._held, self._offset = held, offset
        self.ptr = held.block.address + offset

    @property
    def array(self) -> np.ndarray:
        return self._held.block.array[self._offset :]

    def __add__(self, offset: int) -> _Pointer:
        return _Pointer(self._held, self._offset + offset)

    def memset_async(self, value: int, nbytes: int, stream: _Stream) -> None:
        self._set(value, nbytes, stream.it)

    def memset(self, value: int, nbytes: int) -> None:
        device = self._held.pool._device
        self._set(value, nbytes, device.null)
        device.null.synchronize()

    def _set(self, value: int, nbytes: int, stream: Stream) -> None:
        block = self._held.block
        if self._offset + nbytes > block.nbytes:
            raise CudaError(INVALID, f"memset of {nbytes:,} bytes beyond what was allocated")
        part = block.array[self._offset : self._offset + nbytes]

        def do() -> None:
            fill(part, value)
            block.version += 1

        cost = _COPY_US + nbytes / _COPIED_A_US
        stream.put(Work(do, cost, call="cudaMemsetAsync", told={"kind": "MEMSET", "bytes": nbytes}))


__all__ = ["Cupy", "Launched"]
