"""What of a rung is exported: an operator that works at a few sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kernels.registry import Rung

MOST_TOLD = 200  # characters of a name in what is written
OUTPUT, WORKSPACE, TABLES, TILES = -1, -2, -3, -4
"""Buffers that are no inputs, as C knows them by number."""


@dataclass(frozen=True)
class Input:
    """An input of the operator. place: that of the rung's input that it stands for; array: its value where it
    is a weight, as the kernel takes it (None: it is given in each pass). packed: it is not the weight of the
    model, but what the rung makes of it."""

    place: int
    dtype: str
    array: np.ndarray | None = None
    packed: bool = False


@dataclass(frozen=True)
class Place:
    """A pointer that is known in a pass alone: `offset` bytes into a buffer (an input's number, or one of the
    constants above)."""

    buffer: int
    offset: int = 0


@dataclass(frozen=True)
class LaunchedKernel:
    """A launch of a CUDA kernel; grid and block in (x, y, z). arguments: places, None for a null pointer, or
    the bytes of a scalar or a struct."""

    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_nbytes: int
    arguments: tuple[Place | bytes | None, ...]


@dataclass(frozen=True)
class Launches:
    """One size of a CUDA operator. module: which of its compiled files. constant: (name, input, bytes) of
    what is copied into constant memory first."""

    module: int
    kernels: tuple[LaunchedKernel, ...]
    workspace_nbytes: int = 0
    constant: tuple[str, int, int] | None = None


@dataclass(frozen=True)
class Module:
    """A compiled file. cubin: of one architecture, None where it could not be made; ptx: for later ones."""

    ptx: str
    cubin: bytes | None = None


@dataclass(frozen=True)
class BoundCall:
    """One size of a CPU operator (kernels.cpu.compiled.Call). words: its arguments; places: those of them
    that are pointers; parts: what threads may share; tasks: into how many pieces it is worth dividing."""

    words: tuple[int, ...]
    places: tuple[tuple[int, Place], ...]
    parts: int
    tasks: int
    scratch_nbytes: int


@dataclass(frozen=True)
class Size:
    """shapes: of the inputs that are no weights, as the other library gives them; output: of the answer."""

    shapes: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    step: Launches | BoundCall


@dataclass(frozen=True)
class Operator:
    """name: fit for a C function and a file. words: node and kernel, for errors and documents. sizes:
    smallest first. modules: of a CUDA rung; code: object files of a CPU rung, the kernel's and, where it
    calls them, that of all tiles; tables: bytes that its arguments point into; features: what it asks of a
    processor."""

    name: str
    words: str
    rung: Rung
    inputs: tuple[Input, ...]
    out_dtype: str
    sizes: tuple[Size, ...]
    modules: tuple[Module, ...] = ()
    code: tuple[bytes, ...] = field(default=(), repr=False)
    tables: bytes = field(default=b"", repr=False)
    features: tuple[str, ...] = ()

    @property
    def device(self) -> str:
        """Where it runs: "cuda" or "cpu"."""
        return self.rung.device

    @property
    def domain(self) -> str:
        """Of the operator in a model: its own, because ONNX Runtime takes a domain from one library alone."""
        return f"kernelscope.{self.name}"

    @property
    def told(self) -> str:
        """`words` as they may stand in a comment, a text and a format of C and of Python: the names in a
        model's file may have anything in them."""
        return re.sub(r"[^\w /.:+-]", "_", self.words, flags=re.ASCII)[:MOST_TOLD]

    @property
    def data_inputs(self) -> tuple[int, ...]:
        """The numbers of the inputs that are given in each pass."""
        return tuple(i for i, it in enumerate(self.inputs) if it.array is None)


def identifier(*words: str) -> str:
    """A name that C, file systems and ONNX take: "mine_conv1"."""
    name = "_".join(re.sub(r"\W+", "_", word, flags=re.ASCII).strip("_") for word in words)
    return name if not name[:1].isdigit() else f"k{name}"


def gathered(
    given: Sequence[np.ndarray | None], dtypes: Sequence[str], by_size: Sequence[Sequence[np.ndarray | None]]
) -> tuple[tuple[Input, ...], tuple[tuple[int, ...], ...]]:
    """The inputs of an operator, and for each size the number of the input in each of the rung's places.

    given: the weights as the model has them, None for what is given in a pass; by_size: the same as the
    kernel takes them at each size. Weights that are the same at several sizes are one input.
    """
    inputs: list[Input] = []
    numbers = []
    for taken in by_size:
        of_size = []
        for place, array in enumerate(taken):
            alike = (n for n, it in enumerate(inputs) if it.place == place and _same(it.array, array))
            number = next(alike, len(inputs))
            if number == len(inputs):
                dtype = dtypes[place] if array is None else array.dtype.name
                inputs.append(Input(place, dtype, array, not _same(given[place], array)))
            of_size.append(number)
        numbers.append(tuple(of_size))
    return tuple(inputs), tuple(numbers)


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is None or b is None or a is b:
        return a is b
    alike = a.dtype == b.dtype and a.shape == b.shape
    return alike and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
