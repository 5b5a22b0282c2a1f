"""A rung's launch made ready on the device: what to call for it, in order, on the current stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernels.errors import KernelError
from kernels.launch import Launch, Stage
from kernels.registry import Rung

_ON_DEVICE = 3  # cudaMemcpyKind


def starts(
    cupy: Any, module: Any, rung: Rung, how: Launch, pointers: Sequence[int], arguments: tuple[Any, ...]
) -> tuple[Callable[[], None], ...]:
    """The copy into constant memory if the launch has one, then its kernels; `pointers` are the addresses of
    the inputs.

    Raises KernelError where the compiled rung lacks what the launch names.
    """
    calls: list[Callable[[], None]] = []
    if how.constant is not None:
        name, index, nbytes = how.constant
        to = _found(rung, f'extern "C" __constant__ … {name}[]', module.get_global, name)
        calls.append(_copy(cupy, int(to.ptr), int(pointers[index]), nbytes))
    for stage in how.stages(rung.op):
        name = stage.function
        kernel = _found(rung, f'extern "C" __global__ void {name}(…)', module.get_function, name)
        if stage.shared_nbytes > 48 << 10:  # beyond this CUDA wants to be asked for it
            kernel.max_dynamic_shared_size_bytes = stage.shared_nbytes
        calls.append(_launch(kernel, stage, arguments))
    return tuple(calls)


def _found(rung: Rung, wanted: str, get: Callable[[str], Any], name: str) -> Any:
    try:
        return get(name)
    except RuntimeError as error:
        raise KernelError(
            f"{rung.path}: the compiled rung cannot be loaded ({error}); it must define {wanted}"
        ) from error


def _copy(cupy: Any, to: int, source: int, nbytes: int) -> Callable[[], None]:
    def start() -> None:
        stream = cupy.cuda.get_current_stream().ptr
        cupy.cuda.runtime.memcpyAsync(to, source, nbytes, _ON_DEVICE, stream)

    return start


def _launch(kernel: Any, stage: Stage, arguments: tuple[Any, ...]) -> Callable[[], None]:
    def start() -> None:
        kernel(stage.grid, stage.block, arguments, shared_mem=stage.shared_nbytes)

    return start
