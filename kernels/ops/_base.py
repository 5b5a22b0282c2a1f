"""The base of the operators' records: what every operator says of itself to those who plan, launch, divide or
judge its kernels.

A record that leaves out an abstract member of `Params` is refused when kernels.ops is imported. Members that
are the same for most operators are defined here; the others are abstract.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import ml_dtypes  # noqa: F401 - NumPy learns of bfloat16
import numpy as np

from kernels import precision as precisions
from kernels.errors import KernelError

# How a kernel works out its sums: term by term, long ones in pieces; by Winograd's, Fourier's or Strassen's
# way, with fewer multiplications; with each number as a sum of narrower ones, whose products add up; or
# plainly, each term added to all before it: then a sum of n equal terms is off by up to n / 3 · 2⁻²⁴ of it.
METHODS = ("direct", "winograd", "fft", "strassen", "split", "plain")
FEW_TERMS = 64  # up to which it makes no difference
ACTIVATIONS = ("relu", "tanh", "sigmoid", "relu6")
# What only products do on the way out, in CUDA: such a kernel is compiled with GELU = 1, so that no other one
# has their many instructions in it.
GELUS = ("gelu", "gelu_tanh")
ITEMSIZE = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "int8": 1,
    "bool": 1,
    "int16": 2,
    "uint16": 2,
    "uint32": 4,
    # Of these an element takes a byte of its own, whatever a file packs it into.
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn": 1,
    "int4": 1,
    "uint4": 1,
    "int2": 1,
    "uint2": 1,
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
EXPONENTS = "float8_e8m0fnu"  # powers of two alone
FLOATS8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
# By an element type the one that holds all its values, in which is computed where no kernel takes the first
# as it is. What is stored is rounded then, or of whole numbers cut to the bits that the type has: sums,
# products and differences of these are right whatever was carried beyond.
WIDER = {
    **dict.fromkeys((*FLOATS[:2], *FLOATS8, EXPONENTS, "float4_e2m1fn"), "float32"),
    **dict.fromkeys(("int16", "int4", "uint4", "int2", "uint2"), "int32"),
    **dict.fromkeys(("uint16", "uint32"), "int64"),
}
MAX_RANK = 6  # axes that element-wise CUDA kernels take

Scalar = np.int32 | np.int64 | np.float32


# What the members of a struct are of, in C and in NumPy.
MEMBER_TYPES: dict[str, tuple[str, type[Scalar]]] = {
    "int": ("int", np.int32),
    "index_t": ("long long", np.int64),
    "float": ("float", np.float32),
}


@dataclass(frozen=True)
class Member:
    """One member of a struct. count: elements of an array, 0 where it is none."""

    kind: str
    name: str
    count: int = 0


@lru_cache
def members(record: type[Params]) -> tuple[Member, ...]:
    """The members that a record declares. Raises TypeError for what is no declaration of int, index_t or
    float."""
    declared_members = []
    for line in filter(None, map(str.strip, record.struct.split(";"))):
        kind, _, names = line.partition(" ")
        for declared in names.split(","):
            match = re.fullmatch(r"([a-z]\w*)(?:\[(\d+)\])?", declared.strip())
            if kind not in MEMBER_TYPES or match is None:
                raise TypeError(
                    f"{record.__name__}.struct has {line!r}; members are int, index_t or float, as C has them"
                )
            declared_members.append(Member(kind, match[1], int(match[2] or 0)))
    return tuple(declared_members)


@dataclass(frozen=True)
class Params(ABC):
    """What a kernel is told: one frozen record an operator, the same for every device and every rung.

    The engine lowers ONNX nodes to these (auto_pad resolved, shapes static, batch fixed); rungs read them and
    nothing else. Tensors are dense, row-major (C order). `flops` counts a multiply-add as two; `nbytes` is
    every input and output once, as ONNX has them. A plan may keep them in fewer bytes: what its steps move
    is told by engine.planning.traffic.

    op: the operator's name in the ladder, that of its file and of its folders of rungs. most_inputs: how many
    inputs it has at most. weight_inputs: the places of those that are constants of a model, packed and
    uploaded when a session is prepared. enumerated: fields that hold one of several words: the group that a
    CUDA kernel knows them by, and the words in the order of their numbers. axes: what the axes of y are
    called, where they have names. images: whether its rows are images, the first axis of x and y. struct:
    what `scalars` are called on the device, declared as in C, of int, index_t (64 bits) and float: members of
    the one struct that CUDA kernels take (kernels.arguments). units: the field that says how many rows there
    are, each worked out independently of the others ("": none). usual_dtypes: what a rung takes whose header
    says no `dtype`.
    """

    op: ClassVar[str]
    struct: ClassVar[str]
    units: ClassVar[str] = ""
    most_inputs: ClassVar[int] = 1
    weight_inputs: ClassVar[tuple[int, ...]] = ()
    enumerated: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {}
    axes: ClassVar[tuple[str, ...]] = ()
    images: ClassVar[bool] = False
    usual_dtypes: ClassVar[tuple[str, ...]] = ("float32",)

    if TYPE_CHECKING:  # a field of every record, or a property; here it would become the fields' default

        @property
        def dtype(self) -> str:
            """Element type of the inputs, or of those that are no masks and no indices (`input_dtypes`)."""

    @property
    def out_dtype(self) -> str:
        """Element type of the output."""
        return self.dtype

    @property
    @abstractmethod
    def flops(self) -> int: ...

    @property
    def nbytes(self) -> int:
        shapes, dtypes = (*self.input_shapes, self.output_shape), (*self.input_dtypes, self.out_dtype)
        return sum(math.prod(shape) * ITEMSIZE[dtype] for shape, dtype in zip(shapes, dtypes, strict=True))

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        """Element type of each input."""
        return (self.dtype,) * len(self.input_shapes)

    # --- its tensors ---

    @property
    @abstractmethod
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the inputs, in the order of the record's docstring."""

    @property
    @abstractmethod
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the output."""

    @property
    def laid(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the first input and of the output as kernels.layouts takes them: of images, or the
        rows of a matrix with an axis of 1 in front."""
        return self.input_shapes[0], self.output_shape

    @property
    def outputs(self) -> int:
        """Elements of the output."""
        return math.prod(self.output_shape)

    @property
    def data_inputs(self) -> tuple[int, ...]:
        """The places of the inputs that are no weights."""
        return tuple(i for i in range(len(self.input_shapes)) if i not in self.weight_inputs)

    @property
    def unread(self) -> int:
        """The part of `nbytes` that a kernel need not move, such as the input elements that no window
        reaches."""
        inputs_nbytes = sum(
            math.prod(self.input_shapes[i]) * ITEMSIZE[self.input_dtypes[i]] for i in self.data_inputs
        )
        return max(0, min(inputs_nbytes, self.nbytes) - self.least_read() * ITEMSIZE[self.dtype])

    def nbytes_at(self, weight: int, other: int) -> int:
        """`nbytes`, if a float32 number took `weight` bytes in weights and `other` bytes elsewhere."""
        shapes = (*self.input_shapes, self.output_shape)
        dtypes = (*self.input_dtypes, self.out_dtype)
        constant_nbytes = sum(
            math.prod(shape) * ITEMSIZE[dtype]
            for shape, dtype in zip(shapes, dtypes, strict=True)
            if dtype != "float32"
        )
        weights = sum(
            ITEMSIZE["float32"] * math.prod(shapes[i])
            for i in self.weight_inputs
            if i < len(self.input_shapes) and dtypes[i] == "float32"
        )
        # Of an input that is not read whole `nbytes` has less than its shape.
        constant_nbytes = min(constant_nbytes, self.nbytes)
        weights = min(weights, self.nbytes - constant_nbytes)
        return (
            constant_nbytes
            + (weights * weight + (self.nbytes - constant_nbytes - weights) * other) // ITEMSIZE["float32"]
        )

    def least_nbytes(self, precision: str, given: bool = False) -> int:
        """The bytes that every kernel of a precision moves at least (kernels.precision). given: tensors that
        are computed in a pass are float32."""
        of = precisions.of(precision)
        least = self.nbytes_at(of.weight_nbytes, ITEMSIZE["float32"] if given else of.tensor_nbytes)
        return max(0, least - self.unread)

    def least_flops(self, method: str) -> float:
        """The operations that every kernel of a method (of METHODS) needs at least, without its transforms.
        0.0 where the number of multiplications of the method is not known. Only taps inside the image
        count."""
        return 0.0

    @property
    def terms(self) -> float:
        """The number of products in the sum of one output, on average; 0.0 where the output is no sum of
        products."""
        return self.least_flops("direct") / (2 * max(1, self.outputs))

    def loses_digits(self, method: str) -> bool:
        """Whether a rung of this method adds up long sums one term after the other. An engine then takes it
        only where it is named, or where nothing else applies."""
        return method == "plain" and self.terms > FEW_TERMS

    def least_read(self) -> int:
        """Input elements that every kernel has to read; weights do not count."""
        return sum(math.prod(self.input_shapes[i]) for i in self.data_inputs)

    # --- its rows: what a kernel works out one independently of the other ---

    @property
    def rows(self) -> int | None:
        """The number of independent rows; None where there are none."""
        count: int | None = getattr(self, self.units) if self.units else None
        return count

    def of_rows(self, count: int) -> Params:
        """The same params with `count` rows. Raises ValueError where `rows` is None."""
        if self.rows is None:
            raise ValueError(f"{self} has no rows that stand alone")
        return self._of_rows(count)

    def _of_rows(self, count: int) -> Params:
        """The same params with `count` units along the first axis."""
        return replace(self, **{self.units: count})

    def has_rows(self, place: int) -> bool:
        """Whether this input has one row for each row of the output. Weights and inputs that are broadcast do
        not."""
        return place == 0

    @property
    def output_rows(self) -> tuple[int, ...]:
        """The shape of the output, with rows as the first axis."""
        return self.output_shape

    # --- what its kernels are told, and how its work is shared out ---

    def scalars(self) -> tuple[Scalar, ...]:
        """The scalar arguments of its CUDA kernels in the order of `struct`, the same for every rung: the
        fields and properties that are called as its members are. Words are told by their numbers."""
        found: list[Scalar] = []
        for member in members(type(self)):
            value = getattr(self, member.name)
            if member.name in self.enumerated:
                value = self.enumerated[member.name][1].index(value)
            elif member.name == "activation":
                value = activation_code(value)
            values, of = value if member.count else (value,), MEMBER_TYPES[member.kind][1]
            found.extend(int32(*values) if of is np.int32 else (of(value) for value in values))
        return tuple(found)

    @property
    def division(self) -> Division:
        """The axis along which the work is divided among CPU threads: that of the rows, where there are
        rows."""
        if self.rows is None:
            return undivided(self)
        inputs = (
            math.prod(shape[1:]) if self.has_rows(place) else 0
            for place, shape in enumerate(self.input_shapes)
        )
        return Division(self.rows, tuple(inputs), self.outputs // max(1, self.rows), self._of_rows)

    # --- what the judge tries its kernels on ---

    @abstractmethod
    def small_shapes(self) -> Iterator[Shape]:
        """Small shapes of this operator for testing a rung that is timed on these params; each has one
        feature more than the plain shape."""

    def of_squares(self) -> Params | None:
        """Params of the same sums without what follows them, to be run on the squares of the inputs. The mean
        result is the expected square of the answer if signs were random. None where the answer is no sum."""
        return None

    @property
    def words(self) -> str:
        """Params for people: "2×3×9×9 → 4×7×7, kernel 3×3, stride 2, pad 1, bias"."""
        changed = [
            (f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default
        ]
        return f"{self.op} " + ", ".join(f"{name} {_word(value)}" for name, value in changed)

    def __str__(self) -> str:
        return self.words  # in sentences; repr has every field


@dataclass(frozen=True)
class Shape:
    """Small params for a test. tag: the feature that it has; "plain", "size" (odd sizes), "own" (the timed
    shape, but smaller) and "all" (all features at once) name no feature."""

    tag: str
    params: Params


@dataclass(frozen=True)
class Division:
    """An axis whose elements are independent of each other.

    length: number of independent units; inputs, output: elements of one unit in each array (0: every part
    reads all of it). cut: gives the params of so many units. repeats: a part repeats work of its neighbours,
    so there are no more parts than threads. columns: the output is divided into columns of every row of a
    matrix product.
    """

    length: int
    inputs: tuple[int, ...]
    output: int
    cut: Callable[[int], Params]
    repeats: bool = False
    columns: bool = False


def undivided(p: Params) -> Division:
    """All of `p` as one unit."""
    return Division(1, (0,) * len(p.input_shapes), p.outputs, lambda _: p)


def activation_code(activation: str | None) -> int:
    """The number of an activation, as kernels know it."""
    return ("none", *ACTIVATIONS, *GELUS).index(activation or "none")


def int32(*values: int) -> tuple[np.int32, ...]:
    """Sizes as int32. Raises KernelError for one beyond 2³¹."""
    for value in values:
        if not -(2**31) <= value < 2**31:
            raise KernelError(f"a kernel takes sizes below 2³¹, and {value} is not")
    return tuple(np.int32(v) for v in values)


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return "×".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
