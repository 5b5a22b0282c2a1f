"""A CUDA rung as an operator: its launches at each size, and the files that it is compiled to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernels import launch, nvrtc
from kernels.errors import KernelError, UnsupportedError
from kernels.exported.operator import (
    OUTPUT,
    WORKSPACE,
    LaunchedKernel,
    Launches,
    Module,
    Operator,
    Place,
    Size,
    gathered,
)
from kernels.header import Define
from kernels.languages.compiling import settled
from kernels.launch import Launch, Product
from kernels.ops import Params
from kernels.registry import Rung

# Stand for addresses that are not known yet, each far from the next: what lies beside one belongs to it.
_APART = 1 << 44

Shapes = Sequence[tuple[Sequence[tuple[int, ...]], tuple[int, ...]]]


def operator(
    name: str,
    words: str,
    rung: Rung,
    sizes: Sequence[Params],
    shapes: Shapes,
    weights: Sequence[np.ndarray | None],
    arch: str,
) -> Operator:
    """The operator of a CUDA rung. sizes, shapes: its params at each size, and the shapes of its inputs and
    of its output there; weights: its inputs, None for those that are given in a pass; arch: "sm_90".

    Raises KernelError and UnavailableError as kernels.nvrtc, UnsupportedError for what cannot be exported.
    """
    launches = [_launch(rung, params, weights) for params in sizes]
    packed = [[_taken(how, i, array) for i, array in enumerate(weights)] for how in launches]
    inputs, numbers = gathered(weights, sizes[0].input_dtypes, packed)
    modules: dict[str, int] = {}
    files: list[Module] = []
    made = []
    for how, of, (given, output) in zip(launches, numbers, shapes, strict=True):
        key = repr(sorted(how.defines.items()))
        cubin = nvrtc.compile_rung(rung, arch, how.defines)
        if key not in modules:
            modules[key] = len(files)
            files.append(Module(_ptx(rung, arch, how.defines), cubin.read_bytes()))
        step = _step(settled(how, rung, cubin), rung, of, modules[key])
        made.append(Size(tuple(given), output, step))
    return Operator(name, words, rung, inputs, sizes[0].out_dtype, tuple(made), tuple(files))


def _launch(rung: Rung, params: Params, weights: Sequence[np.ndarray | None]) -> Launch:
    how = launch.launch(params, rung)
    if any(isinstance(stage, Product) for stage in how.stages(rung.op)):
        raise UnsupportedError(
            f"{rung.label} calls cuBLAS, a library that an exported kernel cannot bring along"
        )
    if how.texture is not None:
        raise UnsupportedError(
            f"{rung.label} reads its input as a texture, which is bound to one address; export a rung that "
            "takes a pointer"
        )
    late = [i for i in how.packed if i < len(weights) and weights[i] is None]
    if late:
        raise UnsupportedError(
            f"{rung.label} rearranges its weights once, and input {late[0]} of this node is computed in "
            "each pass"
        )
    return how


def _taken(how: Launch, place: int, array: np.ndarray | None) -> np.ndarray | None:
    """A weight as the kernel takes it."""
    return array if array is None or place not in how.packed else how.packed[place](array)


def _ptx(rung: Rung, arch: str, defines: Mapping[str, Define]) -> str:
    text = nvrtc.ptx(rung, arch, defines)
    if not text.strip():
        raise KernelError(f"{rung.label}: the compiler gives no PTX for {arch}")
    return text


def _step(how: Launch, rung: Rung, numbers: Sequence[int], module: int) -> Launches:
    """numbers: the operator's input in each of the rung's places."""
    pointers = [_APART * (i + 1) for i in range(len(numbers))]
    output, workspace = _APART * (len(numbers) + 1), _APART * (len(numbers) + 2)
    buffers = [*numbers, OUTPUT, WORKSPACE]

    def argument(value: Any) -> Place | bytes | None:
        if not isinstance(value, np.uint64):
            return bytes(np.asarray(value).tobytes())
        if value == 0:
            return None
        return Place(buffers[int(value) // _APART - 1], int(value) % _APART)

    kernels = []
    for stage in how.stages(rung.op):
        assert not isinstance(stage, Product)
        arguments = how.arguments(pointers, output, workspace, rung, stage)
        kernels.append(
            LaunchedKernel(
                stage.function, stage.grid, stage.block, stage.shared_nbytes, tuple(map(argument, arguments))
            )
        )
    constant = how.constant and (how.constant[0], numbers[how.constant[1]], how.constant[2])
    return Launches(module, tuple(kernels), how.workspace_nbytes or 0, constant)
