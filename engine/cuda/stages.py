"""The launch of a rung, prepared on the device: the calls for it, in order, on the current stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from engine.backend import Options
from engine.cuda.cublas import Cublas
from engine.cuda.replays.overlap import overlapping
from engine.graph.plan import Plan, Step
from engine.planning import tuned_defines
from kernels import launch, registry
from kernels.errors import KernelError, OutOfMemoryError
from kernels.launch import Launch, Product, Stage
from kernels.layouts import PLAIN
from kernels.ops import Params
from kernels.registry import Rung

_ON_DEVICE = 3  # cudaMemcpyKind


class CublasLibrary:
    """cuBLAS for the launches of one session, made when the first of them asks for it."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._cublas: Cublas | None = None

    def cublas(self) -> Cublas:
        self._cublas = self._cublas or Cublas(self._cupy)
        return self._cublas


def starts(
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
        to = _found(rung, f'extern "C" __constant__ … {name}[]', module.get_global, name)
        calls.append(_copy(cupy, int(to.ptr), int(pointers[index]), nbytes))
    given = list(pointers)
    if how.texture is not None:
        index, nbytes = how.texture
        bound = linear(cupy, int(pointers[index]), nbytes)
        given[index] = int(bound.ptr)
        calls.append(partial(_held, bound))
    kernels = {stage.function: kernel_of(module, rung, stage) for stage in how.kernels(rung.op)}
    addresses = {f"input {i}": int(pointer) for i, pointer in enumerate(pointers)}
    addresses |= {"output": int(output), "workspace": int(workspace)}
    for stage in how.stages(rung.op):
        if isinstance(stage, Product):
            calls.append(partial(library.cublas().product, stage, addresses))
        else:
            arguments = how.arguments(given, output, workspace, rung, stage)
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
    kernel = _found(rung, f'extern "C" __global__ void {name}(…)', module.get_function, name)
    if stage.shared_nbytes > 48 << 10:  # beyond this CUDA wants to be asked for it
        kernel.max_dynamic_shared_size_bytes = stage.shared_nbytes
    return kernel


def _found(rung: Rung, wanted: str, get: Callable[[str], Any], name: str) -> Any:
    try:
        return get(name)
    except RuntimeError as error:
        if "OUT_OF_MEMORY" in str(error):  # arrays of its own
            raise OutOfMemoryError(f"the GPU's memory did not suffice to load {rung.label}") from error
        raise KernelError(
            f"{rung.path}: the compiled rung cannot be loaded ({error}); it must define {wanted}"
        ) from error


def _held(bound: Any) -> None:
    """Nothing to start: the launch that has this call keeps what its kernels read through."""


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


def put_by(step: Step, ready: tuple[Rung, Launch]) -> Order:
    """What a step's launch puts on the device, in order; see engine.backend.Launching."""
    rung, how = ready
    copied = [(step, "memcpy")] if how.constant is not None else []
    return copied + [(step, stage.function) for stage in how.stages(rung.op)]


def orders(plan: Plan, shapes: Sequence[tuple[Rung, Launch]]) -> list[Order]:
    """The same of every step; of those that take turns all in the place of the first, turn by turn."""
    made = [put_by(*one) for one in zip(plan.steps, shapes, strict=True)]
    if (turns := plan.turns) is not None:
        own = made[turns.start : turns.end]
        one_turn = [item for order in own for item in order]
        made[turns.start : turns.end] = [one_turn * turns.count, *[[]] * (len(own) - 1)]
    return made


class Launches:
    """The launch of each step, worked out once: planning asks for its scratch memory, preparing for all."""

    def __init__(self, options: Options) -> None:
        self._dirs, self._tuned = options.kernel_dirs, options.tuned
        self._found: dict[tuple[Params, str, str, str], tuple[Rung, Launch]] = {}

    def of(self, params: Params, name: str, reads: str = PLAIN, writes: str = PLAIN) -> tuple[Rung, Launch]:
        key = params, name, reads, writes
        if key not in self._found:
            rung = registry.find("cuda", params.op, name, self._dirs)
            rung = tuned_defines.tuned(rung, params) if self._tuned else rung
            rung = rung.laid_out(reads, writes)
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
    """A texture of the float32 elements that lie there; `ptr` is its handle. It ends with the object."""
    cuda, runtime = cupy.cuda, cupy.cuda.runtime
    memory = cuda.MemoryPointer(cuda.UnownedMemory(address, nbytes, None), 0)
    elements = cupy.ndarray((nbytes // 4,), cupy.float32, memptr=memory)
    channel = cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    resource = cuda.texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=elements, chDesc=channel, sizeInBytes=nbytes
    )
    return cuda.texture.TextureObject(resource, cuda.texture.TextureDescriptor())
