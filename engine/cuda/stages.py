"""The launch of a rung, prepared on the device: the calls for it, in order, on the current stream."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from engine.backend import Options
from engine.cuda.replays.overlap import overlapping
from engine.cuda.runtime import capability_of
from engine.graph.plan import Plan, Step
from engine.planning import tuned_defines
from kernels import launch, registry
from kernels.errors import KernelError, OutOfMemoryError, UnavailableError
from kernels.launch import Launch, Matrix, Product, Stage
from kernels.layouts import PLAIN
from kernels.ops import Params
from kernels.registry import Rung

_ON_DEVICE = 3  # cudaMemcpyKind


class CublasLibrary:
    """cuBLAS for the launches of one session, loaded when the first of them needs it."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._cublas: Cublas | None = None

    def cublas(self) -> Cublas:
        self._cublas = self._cublas or Cublas(self._cupy)
        return self._cublas


def kernel_calls(
    cupy: Any,
    module: Any,
    rung: Rung,
    how: Launch,
    pointers: Sequence[int],
    output: int,
    workspace: int,
    library: CublasLibrary | None = None,
    overlap: bool = False,
) -> tuple[Callable[[], None], ...]:
    """The copy into constant memory if the launch has one, its texture, then its stages. pointers: addresses
    of the inputs; output, workspace: of the result and of the scratch memory. library: shared with other
    launches that do not run at the same time. overlap: the device lets kernels of a rung that says so begin
    before the one in front has ended.

    Raises KernelError where the compiled rung lacks what the launch names, UnavailableError where the launch
    needs a library that is missing.
    """
    calls: list[Callable[[], None]] = []
    library = library or CublasLibrary(cupy)
    if how.constant is not None:
        name, index, nbytes = how.constant
        to = _kernel_or_error(rung, f'extern "C" __constant__ … {name}[]', module.get_global, name)
        calls.append(_copy(cupy, int(to.ptr), int(pointers[index]), nbytes))
    all_pointers = list(pointers)
    if how.texture is not None:
        index, nbytes = how.texture
        bound = linear(cupy, int(pointers[index]), nbytes)
        all_pointers[index] = int(bound.ptr)
        calls.append(partial(_held, bound))
    kernels = {stage.function: kernel_of(module, rung, stage) for stage in how.kernels(rung.op)}
    addresses = {f"input {i}": int(pointer) for i, pointer in enumerate(pointers)}
    addresses |= {"output": int(output), "workspace": int(workspace)}
    for stage in how.stages(rung.op):
        if isinstance(stage, Product):
            calls.append(partial(library.cublas().product, stage, addresses))
        else:
            arguments = how.arguments(all_pointers, output, workspace, rung, stage)
            kernel = kernels[stage.function]
            if overlap and rung.overlaps:
                calls.append(overlapping(cupy, kernel, stage, arguments))
            else:
                calls.append(launching(kernel, stage, arguments))
    return tuple(calls)


def kernel_of(module: Any, rung: Rung, stage: Stage) -> Any:
    """The stage's kernel, allowed the shared memory that it asks for. Raises KernelError where it is
    missing."""
    name = stage.function
    kernel = _kernel_or_error(rung, f'extern "C" __global__ void {name}(…)', module.get_function, name)
    if stage.shared_nbytes > 48 << 10:  # beyond this CUDA wants to be asked for it
        kernel.max_dynamic_shared_size_bytes = stage.shared_nbytes
    return kernel


def _kernel_or_error(rung: Rung, wanted: str, get: Callable[[str], Any], name: str) -> Any:
    try:
        return get(name)
    except RuntimeError as error:
        if "OUT_OF_MEMORY" in str(error):  # arrays of its own
            raise OutOfMemoryError(f"the GPU's memory did not suffice to load {rung.label}") from error
        raise KernelError(
            f"{rung.path}: the compiled rung cannot be loaded ({error}); it must define {wanted}"
        ) from error


def _held(bound: Any) -> None:
    """Nothing to start: keeps an object alive that the kernels of the launch use."""


def _copy(cupy: Any, to: int, source: int, nbytes: int) -> Callable[[], None]:
    def start() -> None:
        stream = cupy.cuda.get_current_stream().ptr
        cupy.cuda.runtime.memcpyAsync(to, source, nbytes, _ON_DEVICE, stream)

    return start


def launching(kernel: Any, stage: Stage, arguments: tuple[Any, ...]) -> Callable[[], None]:
    """What starts this stage on the current stream."""

    def start() -> None:
        kernel(stage.grid, stage.block, arguments, shared_mem=stage.shared_nbytes)

    return start


Order = list[tuple[Step, str]]


def launches_of_step(step: Step, ready: tuple[Rung, Launch]) -> Order:
    """What the launch of a step starts on the device, in order; see engine.backend.Launching."""
    rung, how = ready
    copied = [(step, "memcpy")] if how.constant is not None else []
    return copied + [(step, stage.function) for stage in how.stages(rung.op)]


def launch_orders_of(plan: Plan, shapes: Sequence[tuple[Rung, Launch]]) -> list[Order]:
    """The same for every step of a plan. Steps that take turns are merged into the first of them, turn by
    turn."""
    launch_orders = [launches_of_step(*one) for one in zip(plan.steps, shapes, strict=True)]
    if (turns := plan.turns) is not None:
        own = launch_orders[turns.start : turns.end]
        one_turn = [item for order in own for item in order]
        launch_orders[turns.start : turns.end] = [one_turn * turns.count, *[[]] * (len(own) - 1)]
    return launch_orders


class Launches:
    """The launch of each step, computed once: planning needs its scratch memory, preparing all of it."""

    def __init__(self, options: Options) -> None:
        self._dirs, self._tuned = options.kernel_dirs, options.tuned
        self._found: dict[tuple[Params, str, str, str], tuple[Rung, Launch]] = {}

    def of(self, params: Params, name: str, reads: str = PLAIN, writes: str = PLAIN) -> tuple[Rung, Launch]:
        key = params, name, reads, writes
        if key not in self._found:
            rung = registry.find("cuda", params.op, name, self._dirs)
            rung = tuned_defines.tuned(rung, params) if self._tuned else rung
            rung = rung.in_layouts(reads, writes)
            self._found[key] = rung, launch.launch(params, rung)
        return self._found[key]

    def of_step(self, step: Step) -> tuple[Rung, Launch]:
        """In the step's layouts."""
        return self.of(step.params, step.rung, step.reads, step.writes)

    def workspace(self, step: Step) -> int:
        """Bytes of scratch memory, as planner.Workspace."""
        return self.of_step(step)[1].workspace_nbytes or 0


# ------------------------------------------------------------------------------------------------- textures


def linear(cupy: Any, address: int, nbytes: int) -> Any:
    """A texture of the float32 elements at this address; `ptr` is its handle. It ends with the object."""
    cuda, runtime = cupy.cuda, cupy.cuda.runtime
    memory = cuda.MemoryPointer(cuda.UnownedMemory(address, nbytes, None), 0)
    elements = cupy.ndarray((nbytes // 4,), cupy.float32, memptr=memory)
    channel = cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    resource = cuda.texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=elements, chDesc=channel, sizeInBytes=nbytes
    )
    return cuda.texture.TextureObject(resource, cuda.texture.TextureDescriptor())


# What NVIDIA's documentation of cublasSetWorkspace recommends: 32 MiB on Hopper and newer, 4 MiB before.
_SCRATCH_NBYTES = {True: 32 << 20, False: 4 << 20}
_DEFAULT_MATH = 0  # products of float32 with all their bits; TF32 would have to be asked for
_MOST_AT_ONCE = 65535  # products of one call, as many as the last axis of a grid holds
_AS_IT_LIES, _TRANSPOSED = 0, 1  # cublasOperation_t


class CublasError(RuntimeError):
    """A call that failed, in words; the status is cuBLAS's own number."""


class Cublas:
    """cuBLAS for matrix products, only as a yardstick for our own kernels: a handle on the current device,
    released with this object.

    The library is called directly, not through CuPy, whose binding cannot be captured into a CUDA graph. The
    handle has scratch memory of its own, so that no call allocates. Products of one handle may not run at the
    same time: they share the scratch memory.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._library = library = _library()
        self._handle = ctypes.c_void_p()
        _check(library, library.cublasCreate_v2(ctypes.byref(self._handle)), "making a handle")
        # Not at the end of the process, when the driver may be gone.
        weakref.finalize(self, library.cublasDestroy_v2, self._handle).atexit = False
        _check(library, library.cublasSetMathMode(self._handle, _DEFAULT_MATH), "setting the arithmetic")
        newest = capability_of(cupy) >= (9, 0)
        self._scratch = cupy.cuda.Memory(_SCRATCH_NBYTES[newest])

    def product(self, it: Product, addresses: dict[str, int]) -> None:
        """Start a product on the current stream. addresses: of the launch's buffers, by their names.

        Raises CublasError where it is refused.
        """
        library, handle = self._library, self._handle
        self._take_stream()
        # A row-major matrix is, to cuBLAS, a column-major one transposed; so is the product, whose factors
        # then change places.
        alpha, beta = ctypes.c_float(it.alpha), ctypes.c_float(0.0)
        for first in range(0, it.batch, _MOST_AT_ONCE):
            b, lead_b, stride_b = _operand(it.b, addresses, first)
            a, lead_a, stride_a = _operand(it.a, addresses, first)
            c, lead_c, stride_c = _operand(it.c, addresses, first)
            status = library.cublasSgemmStridedBatched_64(
                handle,
                _TRANSPOSED if it.b.transposed else _AS_IT_LIES,
                _TRANSPOSED if it.a.transposed else _AS_IT_LIES,
                *map(ctypes.c_int64, (it.n, it.m, it.k)),
                *(ctypes.byref(alpha), b, lead_b, stride_b, a, lead_a, stride_a),
                *(ctypes.byref(beta), c, lead_c, stride_c),
                ctypes.c_int64(min(_MOST_AT_ONCE, it.batch - first)),
            )
            _check(library, status, f"the product of {it.m} × {it.k} by {it.k} × {it.n}")

    def _take_stream(self) -> None:
        """Work on the current stream, in this handle's scratch memory, which a new stream would set back."""
        library, handle = self._library, self._handle
        stream = ctypes.c_void_p(self._cupy.cuda.get_current_stream().ptr)
        _check(library, library.cublasSetStream_v2(handle, stream), "taking the stream")
        scratch, size = ctypes.c_void_p(self._scratch.ptr), ctypes.c_size_t(self._scratch.size)
        _check(library, library.cublasSetWorkspace_v2(handle, scratch, size), "taking scratch memory")


def _operand(
    matrix: Matrix, addresses: dict[str, int], first: int
) -> tuple[ctypes.c_void_p, ctypes.c_int64, ctypes.c_longlong]:
    """Address, leading dimension and stride of a product's matrix, the first of them being matrix `first`."""
    address = addresses[matrix.buffer] + 4 * (matrix.offset + first * matrix.stride)
    return ctypes.c_void_p(address), ctypes.c_int64(matrix.lead), ctypes.c_longlong(matrix.stride)


@functools.cache
def _library() -> Any:
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        path = load_nvidia_dynamic_lib("cublas").abs_path
        if path is None:
            raise OSError("nobody knows where it lies")
        library = ctypes.CDLL(path)
        library.cublasGetStatusString.restype = ctypes.c_char_p
        return library
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UnavailableError(
            f"cuBLAS, which this yardstick needs, cannot be loaded ({reason}); "
            "the extras cuda and cuda12 bring it"
        ) from error


def _check(library: Any, status: int, doing: str) -> None:
    if status != 0:
        words = (library.cublasGetStatusString(status) or b"unknown").decode(errors="replace")
        raise CublasError(f"cuBLAS failed at {doing}: {words} ({status})")
