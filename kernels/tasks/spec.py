"""`task.toml`: what a task says of itself, read within limits and checked.

title = "Vector addition"
story = "…"                    # what it is about, for whoever reads the page of tasks
reference = "reference.py"     # what is right: see kernels.tasks.reference
yardstick = "add.onnx"         # a model of the same, to be timed beside the kernels; absent: none. Of a task
                               # of ours also a .py file: a library's function (engine.function_session)
operations = "n"               # of one answer, for the roofline; a multiply-add is two
bytes = "12 * n"               # that every kernel moves; default: each input and the output once
bound = 1e-6                   # the relative L2 error that an answer in float32 may have
require = ["k <= n"]           # what sizes have to be
check = [{n = 1}, {n = 1000}]  # small sizes, which a kernel is tried on first
time = [{n = 16777216}]        # what it is timed on; the first where nothing is said

[sizes]                        # the symbols: members of the kernel's struct, in this order
n = "elements of each vector"

[[input]]                      # a pointer of the kernel each, in this order
name = "a"
type = "float32"
shape = ["n"]                  # expressions of the symbols (kernels.expressions)
draw = {kind = "normal"}       # one of DRAWS
constant = true                # the same in all passes, as the weights of a model; absent: false

[[output]]                     # the pointer behind them. Several lie one behind the other in one buffer, and
                               # the kernel takes a pointer of each
name = "y"
type = "float32"
shape = ["n"]
compare = "close"              # one of COMPARES; whole numbers are compared exactly
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from kernels import expressions, toml
from kernels.errors import InputError, system_words
from kernels.nearest import did_you_mean
from kernels.ops import ITEMSIZE, OPS

FILE = "task.toml"
ROOT = Path(__file__).parent  # of the shipped ones
TYPES = {
    "float32": "float",
    "float16": "__half",
    "float64": "double",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "int8": "signed char",
    "uint32": "unsigned int",
}
"""The element types of tensors, as C++ has them."""
DRAWS: Mapping[str, tuple[str, ...]] = {
    "normal": ("mean", "std"),
    "uniform": ("low", "high"),
    "integers": ("low", "high"),
    "offsets": ("total",),
    "permutation": (),
}
"""How values are drawn, with what each may say beside. integers: from low up to, not including, high;
offsets: of rows that lie one behind the other, from 0 up to total, some rows empty; permutation: each of 0,
1, … once."""
COMPARES = ("close", "sorted", "set")
"""How an answer is compared: element by element; each row sorted first; all rows of the last axis in any
order."""
MOST_SIZES, MOST_TENSORS, MOST_AXES, MOST_CHECKS = 16, 12, 6, 24
MOST_NBYTES = 64 << 30  # of a tensor
MOST_MODEL_NBYTES = 64 << 20  # of an ONNX file
SMALL_NBYTES = 16 << 20  # of all tensors of a size to check
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# What a kernel could not be called, or a member or pointer of it.
_TAKEN = {"p", "output", "inputs", "workspace", "int", "float", "double", "long", "short", "char", "void"}
_TAKEN |= {"const", "struct", "register", "auto", "signed", "unsigned", "this", "template", "new", "delete"}
_TAKEN |= {
    "input_shapes",
    "output_shape",
    "dtype",
    "words",
    "rows",
    "outputs",
    "op",
    "struct",
    "nbytes",
    "flops",
}


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base: what is not known is refused, so that a typing error is no rule that nobody applies."""


Side = int | str


class Draw(_Entry, frozen=True, kw_only=True):
    kind: str = "normal"
    mean: float = 0.0
    std: float = 1.0
    low: Side | float = 0
    high: Side | float = 1
    total: Side = 0


class Tensor(_Entry, frozen=True, kw_only=True):
    name: str
    type: str = "float32"
    shape: tuple[Side, ...]

    @property
    def words(self) -> str:
        """ "x (m, n) of float32"."""
        return f"{self.name} ({', '.join(map(str, self.shape))}) of {self.type}"


class Input(Tensor, frozen=True, kw_only=True):
    draw: Draw = Draw()
    constant: bool = False
    what: str = ""


class Output(Tensor, frozen=True, kw_only=True):
    compare: str = "close"
    what: str = ""

    @property
    def exact(self) -> bool:
        """Whether it is whole numbers, of which none may be off."""
        return not self.type.startswith("float")


class Spec(_Entry, frozen=True, kw_only=True):
    """A task as its file has it."""

    title: str
    story: str = ""
    order: int = 99
    reference: str = "reference.py"
    yardstick: str = ""
    operations: Side = 0
    bytes: Side = ""
    bound: float = 0.0
    require: tuple[str, ...] = ()
    sizes: dict[str, str]
    input: tuple[Input, ...]
    output: tuple[Output, ...]
    check: tuple[dict[str, int], ...]
    time: tuple[dict[str, int], ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(self.sizes)


Models = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Task:
    """A task's file, read. name: by which its kernels are called; folder: where it lies; text: of the file;
    answers: the text of its reference, "" where that is a model; models: what the ONNX files hold that it
    names, by name, so that nobody has to find them, or to trust that nobody has changed them."""

    name: str
    folder: Path
    text: str
    answers: str
    spec: Spec
    models: Models = field(default=(), repr=False)

    @property
    def file(self) -> Path:
        """The file of its reference."""
        return self.folder / self.spec.reference.partition(":")[0]

    @property
    def model(self) -> str:
        """The name of the ONNX file that is timed beside the kernels: its yardstick, or a reference that is
        one; "" where there is none, or where it was sent without."""
        held = dict(self.models)
        return next((name for name in (self.spec.yardstick, self.spec.reference) if name in held), "")

    @property
    def function(self) -> Path | None:
        """The file of a library's function for the GPU, which is timed beside kernels for that."""
        return self.folder / self.spec.yardstick if self.spec.yardstick.endswith(".py") else None


@lru_cache(maxsize=1)
def shipped() -> tuple[str, ...]:
    """The names of the tasks that come with the program."""
    return tuple(sorted(path.parent.name for path in ROOT.glob(f"*/{FILE}")))


def read(folder: Path) -> Task:
    """The task in a folder, called as that is. Raises InputError, one sentence that names the file."""
    folder = folder.absolute()
    made = parsed(folder.name, folder, _text(folder / FILE))
    spec = made.spec
    for name in filter(None, dict.fromkeys((spec.yardstick, spec.reference.partition(":")[0]))):
        if not (folder / name).is_file():
            raise InputError(f"{folder / FILE}: there is no {name} beside it")
    named = dict.fromkeys(name for name in (spec.yardstick, spec.reference) if name.endswith(".onnx"))
    made = replace(made, models=tuple((name, _model(folder / name)) for name in named))
    return made if made.file.suffix == ".onnx" else replace(made, answers=_text(made.file))


def _text(file: Path) -> str:
    try:
        return _bytes(file, 4 * toml.CHARACTERS + 1).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} of a task is no text in UTF-8") from error


def _model(file: Path) -> bytes:
    data = _bytes(file, MOST_MODEL_NBYTES + 1)
    if len(data) > MOST_MODEL_NBYTES:
        most = f"{MOST_MODEL_NBYTES >> 20} MiB at most"
        raise InputError(f"{file} of a task is larger than {most}; give it what it multiplies by as inputs")
    return data


def _bytes(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(most)
    except OSError as error:
        raise InputError(f"{file} of a task cannot be read: {system_words(error)}") from error


def parsed(name: str, folder: Path, text: str, answers: str = "", models: Models = ()) -> Task:
    """The task of these texts, and of these models by name. Raises InputError."""
    file = folder / FILE
    if keyword.iskeyword(name) or name in _TAKEN:
        raise InputError(
            f"{file}: the kernels of a task are called as its folder, and {name!r} means something else "
            "already; call the folder differently"
        )
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{file}: the kernels of a task are called as its folder, and {name!r} is no name for one; take "
            "small letters, digits and _, a letter first"
        )
    if name in OPS or name == "net":
        raise InputError(f"{file}: {name} is an operator of the ladder; call the task's folder differently")
    try:
        spec = msgspec.convert(toml.read(text), Spec)
    except toml.UnreadableTomlError as error:
        raise InputError(f"{file} {error}") from error
    except msgspec.ValidationError as error:
        raise InputError(f"{file}: {error}") from error
    for problem in _problems(spec, folder.parent == ROOT):
        raise InputError(f"{file}: {problem}")
    return Task(name, folder, text, answers, spec, models)


def _problems(spec: Spec, ours: bool) -> Iterator[str]:
    """What is wrong with a task, a sentence each. ours: it is a shipped one."""
    if not spec.sizes or len(spec.sizes) > MOST_SIZES:
        yield f"[sizes] names 1 to {MOST_SIZES} symbols, and here are {len(spec.sizes)}"
    if not 1 <= len(spec.output) <= MOST_TENSORS:
        yield f"a task has 1 to {MOST_TENSORS} [[output]], and here are {len(spec.output)}"
        return
    if len(spec.output) > 1 and any(output.compare != "close" for output in spec.output):
        yield "compare is said where there is one [[output]]; of several each element has its place"
    if not 1 <= len(spec.input) <= MOST_TENSORS:
        yield f"a task has 1 to {MOST_TENSORS} [[input]], and here are {len(spec.input)}"
    tensors: tuple[Input | Output, ...] = (*spec.input, *spec.output)
    names = [*spec.sizes, *(tensor.name for tensor in tensors)]
    for name in names:
        if name in _TAKEN or keyword.iskeyword(name):
            yield (
                f"{name!r} can be no name of a size or tensor, as it is a word of the program, of C or of "
                f"Python; take another one, such as my_{name}"
            )
        elif not _NAME.fullmatch(name):
            yield f"{name!r} can be no name of a size or tensor; take small letters, digits and _"
        if names.count(name) > 1:
            yield f"{name!r} is named twice"
    for tensor in tensors:
        if tensor.type not in TYPES:
            yield f"{tensor.name}: type {tensor.type!r} is none of {', '.join(TYPES)}"
        if not 1 <= len(tensor.shape) <= MOST_AXES:
            yield f"{tensor.name}: a shape has 1 to {MOST_AXES} axes (write [1] for one number)"
    for given in spec.input:
        yield from _of_draw(given)
    if (compare := spec.output[0].compare) not in COMPARES:
        hint = did_you_mean(compare, COMPARES)
        yield f"compare = {compare!r} is unknown{hint}; there are {', '.join(COMPARES)}"
    if not 0 <= spec.bound < 1:
        yield f"bound is a relative error from 0 to below 1, not {spec.bound:g}"
    suffix = Path(spec.reference.partition(":")[0]).suffix
    if suffix == ".onnx" and len(spec.output) > 1:
        yield "a model is the reference of one [[output]]; write a function for several"
    if spec.yardstick and (Path(spec.yardstick).name != spec.yardstick or len(spec.output) > 1):
        yield "yardstick names an .onnx file in the task's folder, and there is one [[output]] then"
    elif spec.yardstick and not spec.yardstick.endswith((".onnx", ".py") if ours else ".onnx"):
        yield f"yardstick names an .onnx file in the task's folder, not {spec.yardstick!r}"
    if Path(spec.reference).name != spec.reference or suffix not in (".py", ".onnx"):
        yield f"reference names a .py or .onnx file in the task's folder, not {spec.reference!r}"
    if not spec.check or len(spec.check) > MOST_CHECKS:
        yield f"check lists 1 to {MOST_CHECKS} small sizes, and here are {len(spec.check)}"
    if not spec.time:
        yield "time lists what kernels are timed on, and it is empty"
    for which, listed in (("check", spec.check), ("time", spec.time)):
        for sizes in listed:
            yield from (f"{which} {_said(sizes)}: {told}" for told in unfit(spec, sizes, which == "check"))


def _of_draw(given: Input) -> Iterator[str]:
    draw, name, floating = given.draw, given.name, given.type.startswith("float")
    if draw.kind not in DRAWS:
        hint = did_you_mean(draw.kind, DRAWS)
        yield f"{name}: draw kind {draw.kind!r} is unknown{hint}; there are {', '.join(DRAWS)}"
        return
    usual = Draw(kind=draw.kind)
    for said in ("mean", "std", "low", "high", "total"):
        if said not in DRAWS[draw.kind] and getattr(draw, said) != getattr(usual, said):
            yield f"{name}: {said} means nothing for draw kind {draw.kind!r}"
    if floating and draw.kind in ("offsets", "permutation"):
        yield f"{name}: {draw.kind} draws whole numbers"
    if not floating and draw.kind in ("normal", "uniform"):
        yield f"{name}: whole numbers are drawn as integers, offsets or permutation, not {draw.kind}"


def unfit(spec: Spec, sizes: Mapping[str, int], small: bool = False) -> Iterator[str]:
    """What is wrong with sizes of a task. small: they are to be checked with, many times."""
    if lacking := [name for name in spec.sizes if name not in sizes]:
        yield f"{', '.join(lacking)} is not said"
        return
    if more := [name for name in sizes if name not in spec.sizes]:
        yield f"{more[0]!r} is no size{did_you_mean(more[0], spec.sizes)}"
        return
    if bad := [name for name, size in sizes.items() if not 0 <= size < 1 << 31]:
        yield f"{bad[0]} = {sizes[bad[0]]} is not from 0 to below 2³¹"
        return
    total = 0
    try:
        for text in spec.require:
            if not expressions.value(text, sizes):
                yield f"{text} does not hold"
        for tensor in (*spec.input, *spec.output):
            nbytes = ITEMSIZE[tensor.type]
            for side in tensor.shape:
                if (length := expressions.value(side, sizes)) < 1:
                    yield f"{tensor.name} would have an axis of {length}"
                    return
                nbytes *= length
            total += nbytes
            if nbytes > MOST_NBYTES:
                yield f"{tensor.name} would have {nbytes:,} bytes"
        for told in (spec.operations, spec.bytes or 0):
            if expressions.value(told, sizes) < 0:
                yield f"{told} is below 0"
        for given in spec.input:
            yield from _unfit_draw(given, sizes)
    except expressions.ExpressionError as error:
        yield f"an expression {error}"
        return
    if small and total > SMALL_NBYTES:
        yield f"{total:,} bytes are too many to be tried again and again; at most {SMALL_NBYTES:,}"


def _unfit_draw(given: Input, sizes: Mapping[str, int]) -> Iterator[str]:
    draw = given.draw
    if draw.kind == "integers":
        low, high = (expressions.value(whole(side), sizes) for side in (draw.low, draw.high))
        if low >= high:
            yield f"{given.name}: no whole number is from {low} to below {high}"
    if draw.kind == "offsets" and expressions.value(draw.total, sizes) < 0:
        yield f"{given.name}: its total is below 0"


def whole(side: Side | float) -> Side:
    """A bound of whole numbers."""
    return side if isinstance(side, str) else int(side)


def _said(sizes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {size}" for name, size in sizes.items())
