"""What a launch is, and the table of launch shapes that the other modules of this package fill."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernels import arguments
from kernels.errors import KernelError, UnsupportedError
from kernels.header import Define
from kernels.languages.signature import signature
from kernels.nearest import did_you_mean
from kernels.occupancy import ceil
from kernels.ops import GELUS, Params, Scalar
from kernels.registry import Rung
from kernels.tasks import TaskParams, record_of

MAX_X, MAX_YZ = 2**31 - 1, 65535


@dataclass(frozen=True)
class Stage:
    """One kernel of a launch. function: its name in the rung's file. scalars: its own instead of the
    launch's, where it does only a part of the work (some images of a batch); input_offset, output_offset:
    then the pointers of input 0 and of the output are moved on by that many float32 elements."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_nbytes: int = 0
    scalars: tuple[Scalar, ...] | None = None
    input_offset: int = 0
    output_offset: int = 0


@dataclass(frozen=True)
class Matrix:
    """A float32 matrix of a product, or `batch` of them, in a buffer of the launch ("input 0", "input 1", …,
    "workspace", "output"): element (row, column) of matrix i is at offset + i · stride + row · lead + column,
    in elements. transposed: the product uses it transposed."""

    buffer: str
    lead: int
    offset: int = 0
    stride: int = 0
    transposed: bool = False


@dataclass(frozen=True)
class Product:
    """A stage that a library computes: c = alpha · a · b in strict float32, `batch` times; a is m × k, b is k
    × n and c is m × n (a and b after their transposition)."""

    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    c: Matrix
    batch: int = 1
    alpha: float = 1.0

    @property
    def function(self) -> str:
        """The name of the library, where a kernel has its name."""
        return "cuBLAS"


@dataclass(frozen=True)
class Pack:
    """How a weight is packed: `function(array, *arguments)` of the ONNX array, once, when a model is
    prepared. `array` has the elements in ONNX's order, perhaps with axes of 1 in front. Equal packs of one
    weight share their bytes."""

    function: Callable[..., np.ndarray]
    arguments: tuple[Any, ...] = ()

    def __call__(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.function(array, *self.arguments))

    def nbytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a packed weight of this shape."""
        return _packed_nbytes(self, shape)


@functools.lru_cache(maxsize=256)
def _packed_nbytes(pack: Pack, shape: tuple[int, ...]) -> int:
    # Packed for the answer: how much a packer fills up is its own knowledge alone.
    return pack(np.zeros(shape, np.float32)).nbytes


@dataclass(frozen=True)
class Launch:
    """One kernel launch but for its pointers: grid and block in (x, y, z), dynamic shared memory in bytes,
    the scalars in the order of the kernel's struct, and the defines that the rung is compiled with for it.

    workspace_nbytes: scratch memory, whose pointer the kernel takes after that of its output (null where 0);
    None: it takes no such pointer. before, then: the stages in front of it and those that follow, in order. A
    grid of no blocks: only they are started. packed: by the index of an input that is a weight, how it is
    laid out anew before it is uploaded. constant: (name of an array in constant memory, index of an input,
    bytes) where that input is copied into it before every launch. hidden: null pointers behind the scalars,
    which the compiler of a language wants there (kernels.languages). texture: (index of an input, bytes)
    where the kernel takes it as a texture object of its float32 elements, in the place of its pointer.
    places: of a task with several outputs, the byte of the output at which each of them begins; the kernel
    takes a pointer of each.
    microseconds: what it should take, where the launch shape has an estimate of that (kernels.estimates)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    scalars: tuple[Scalar, ...]
    shared_nbytes: int = 0
    defines: Mapping[str, Define] = field(default_factory=dict)
    workspace_nbytes: int | None = None
    before: tuple[Stage | Product, ...] = ()
    then: tuple[Stage | Product, ...] = ()
    packed: Mapping[int, Pack] = field(default_factory=dict)
    constant: tuple[str, int, int] | None = None
    hidden: int = 0
    texture: tuple[int, int] | None = None
    places: tuple[int, ...] = (0,)
    microseconds: float | None = None

    def stages(self, op: str) -> tuple[Stage | Product, ...]:
        """The stages in order."""
        beside = (*self.before, *self.then)
        if 0 in self.grid and beside:
            return beside
        return (*self.before, Stage(op, self.grid, self.block, self.shared_nbytes), *self.then)

    def kernels(self, op: str) -> tuple[Stage, ...]:
        """The stages that are kernels of the rung's file, each once."""
        by_function: dict[str, Stage] = {}
        for stage in self.stages(op):
            if isinstance(stage, Stage):
                by_function.setdefault(stage.function, stage)
        return tuple(by_function.values())

    def arguments(
        self, pointers: Sequence[int], output: int, workspace: int, rung: Rung, stage: Stage | None = None
    ) -> tuple[Any, ...]:
        """The arguments of a stage (None: of the first): addresses of the inputs (fewer where optional ones
        are absent), of the output and of the scratch memory, then the scalars as one struct."""
        scalars = self.scalars
        if stage is not None:
            scalars = scalars if stage.scalars is None else stage.scalars
            pointers = [pointers[0] + 4 * stage.input_offset, *pointers[1:]]
            output += 4 * stage.output_offset
        pointers_of_all = [*pointers, *[0] * (record_of(rung.op).most_inputs - len(pointers))]
        pointers_of_all += [output + nbytes for nbytes in self.places]
        if self.workspace_nbytes is not None:
            pointers_of_all.append(workspace if self.workspace_nbytes else 0)
        if rung.language:
            own = signature(rung.path, rung.op, rung.source).values(rung.op, scalars, pointers_of_all)
            return (*map(np.uint64, pointers_of_all), *own, *[np.uint64(0)] * self.hidden)
        return (*map(np.uint64, pointers_of_all), arguments.packed(rung.op, scalars))


Shape = Callable[..., Launch]
SHAPES: dict[str, Shape] = {}


def shape(function: Shape) -> Shape:
    """A decorator: a function (params, rung) → Launch becomes a launch shape, under its own name."""
    SHAPES[function.__name__] = function
    return function


def launch(params: Params, rung: Rung) -> Launch:
    """The launch of `rung` for `params`. Raises KernelError naming the rung where its header names a launch
    shape that does not exist, or where the grid would be larger than CUDA allows."""
    if rung.launch not in SHAPES:
        raise KernelError(
            f"{rung.path}: no launch shape {rung.launch!r}"
            + did_you_mean(rung.launch, SHAPES, f"; there are: {', '.join(sorted(SHAPES))}")
        )
    try:
        result = SHAPES[rung.launch](params, rung)
    except AttributeError as error:
        if error.obj is not params:
            raise
        raise KernelError(
            f"{rung.path}: the launch shape {rung.launch} is not for {rung.op}, which has no {error.name}"
        ) from None
    if getattr(params, "activation", None) in GELUS:
        result = replace(result, defines={**result.defines, "GELU": 1})
    if isinstance(params, TaskParams) and len(offsets := params.output_offsets) > 1:
        result = replace(result, places=offsets)
    for stage in result.kernels(rung.op):
        if any(g < 1 for g in stage.grid) or stage.grid[0] > MAX_X or max(stage.grid[1:]) > MAX_YZ:
            raise KernelError(f"{rung.label}: {params} needs the grid {stage.grid}, more than CUDA launches")
        if math.prod(stage.block) > 1024:
            raise KernelError(f"{rung.path}: a block of {stage.block} threads is more than the 1024 of CUDA")
    return result


def refusal(params: Params, rung: Rung) -> str | None:
    """Why a rung that accepts `params` by its header cannot be launched for them, or None."""
    try:
        launch(params, rung)
    except (KernelError, UnsupportedError) as error:
        return str(error)
    return None


# --- what the shapes share ---


def in_parts(
    p: Params,
    grid: tuple[int, int, int],
    threads: int,
    parts: int,
    defines: Mapping[str, Define],
    packed: Mapping[int, Pack] | None = None,
    each: int = 128,
) -> Launch:
    """A launch whose sum is in `parts` parts, a block for each (compiled in as PARTS), written to scratch
    memory; the stage `<op>_reduce` adds them, `each` outputs for a block of 128 threads. With one part there
    is no such stage."""
    total = p.outputs
    adding = Stage(f"{p.op}_reduce", (min(ceil(total, each), MAX_X), 1, 1), (128, 1, 1))
    return Launch(
        grid,
        (threads, 1, 1),
        p.scalars(),
        defines={**defines, "PARTS": parts},
        workspace_nbytes=4 * parts * total if parts > 1 else 0,
        then=(adding,) if parts > 1 else (),
        packed=packed or {},
    )


def define(rung: Rung, name: str, default: int | None = None) -> int:
    value = rung.defines.get(name, default)
    if type(value) is not int or value < 1:
        raise KernelError(
            f"{rung.path}: the launch shape {rung.launch} needs the define {name}, a whole number above 0"
        )
    return value
