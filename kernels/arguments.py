"""What a CUDA kernel takes behind its pointers: the scalars of its operator as one struct, by value.

A record of kernels.ops declares the struct once, as C does (`Params.struct`). From that come its text, which
the compiler reads before a rung's (`declaration`), and its layout, in which the scalars are packed for a
launch (`layout`, `packed`). A kernel takes it as `const ConvParams p`, by value: the compiler then reads each
member once, as it reads an argument, and most rungs take the registers that they took with one argument a
scalar. Where another form takes fewer, a kernel may have it, for the call is the same: with
`__grid_constant__`, whose members are read where they are used, or a copy of that (both in gemm).

For one release kernels may take the scalars one by one, as they did (`takes_one_by_one`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kernels.includes import headers
from kernels.ops import OPS, Params, Scalar
from kernels.registry import Rung

FILE = "params.cuh"  # what the compiler calls the struct's text
NAME = "p"  # of the argument, in our rungs
_TYPES: dict[str, tuple[str, type[Scalar]]] = {
    "int": ("int", np.int32),
    "index_t": ("long long", np.int64),
    "float": ("float", np.float32),
}
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$", re.M)
_BUILT_IN = re.compile(
    r"\b(?:char|short|int|long|unsigned|signed|float|double|bool|index_t|size_t|u?int\d+_t)\b"
)
_DEEPEST = 8  # macros within macros


@dataclass(frozen=True)
class Member:
    """One member of a struct. count: elements of an array, 0 where it is none."""

    kind: str
    name: str
    count: int = 0


def struct_name(record: type[Params]) -> str:
    """ConvParams of the record Conv."""
    return f"{record.__name__}Params"


@lru_cache
def members(record: type[Params]) -> tuple[Member, ...]:
    """What the record declares. Raises TypeError for what is no declaration of int, index_t or float."""
    found = []
    for line in filter(None, map(str.strip, record.struct.split(";"))):
        kind, _, names = line.partition(" ")
        for declared in names.split(","):
            match = re.fullmatch(r"([a-z]\w*)(?:\[(\d+)\])?", declared.strip())
            if kind not in _TYPES or match is None:
                raise TypeError(
                    f"{record.__name__}.struct has {line!r}; members are int, index_t or float, as C has them"
                )
            found.append(Member(kind, match[1], int(match[2] or 0)))
    return tuple(found)


@lru_cache
def layout(record: type[Params]) -> np.dtype[np.void]:
    """The struct as C lays it out, each member on a multiple of its size."""
    fields = [(m.name, _TYPES[m.kind][1], (m.count,) if m.count else ()) for m in members(record)]
    return np.dtype(fields, align=True)


@lru_cache
def declaration(record: type[Params]) -> str:
    """The struct's text."""
    lines: list[str] = []
    before = ""
    for member in members(record):
        declared = f"{member.name}[{member.count}]" if member.count else member.name
        if member.kind == before:
            lines[-1] += f", {declared}"
        else:
            lines.append(f"    {_TYPES[member.kind][0]} {declared}")
        before = member.kind
    return "\n".join([f"struct {struct_name(record)} {{", *(f"{line};" for line in lines), "};", ""])


def listed(record: type[Params]) -> str:
    """Its members in a sentence: "int n, c, h, w; float scale"."""
    return "; ".join(" ".join(line.split()) for line in declaration(record).split("{")[1].split(";")[:-2])


def packed(op: str, scalars: Sequence[Scalar]) -> np.ndarray:
    """An operator's scalars as its struct: an array of one element, which CuPy passes by value. Raises
    TypeError where they are not those that the struct declares."""
    record = OPS[op]
    wanted = [_TYPES[m.kind][1] for m in members(record) for _ in range(m.count or 1)]
    if [type(value) for value in scalars] != wanted:
        raise TypeError(f"{record.__name__}.scalars() are not the members of {record.__name__}.struct")
    whole = np.zeros((), layout(record))
    rest = iter(scalars)
    for member in members(record):
        values = [next(rest) for _ in range(member.count or 1)]
        whole[member.name] = values if member.count else values[0]
    return whole


def unpacked(op: str, content: bytes) -> list[int | float]:
    """The scalars of a struct, in their order."""
    whole = np.frombuffer(content, layout(OPS[op]), count=1)[0]
    return [value for m in members(OPS[op]) for value in np.atleast_1d(whole[m.name]).tolist()]


def preamble(rung: Rung) -> str:
    """What the compiler reads before the rung's text: the struct, where the text or a header of it speaks of
    one and has none of that name of its own."""
    record = OPS.get(rung.op)
    if record is None:
        return ""
    name = struct_name(record)
    texts = [_COMMENTS.sub("", text) for text in _texts(rung)]
    own = re.compile(rf"\b(?:struct|class|using)\s+{name}\b|\}}\s*{name}\s*;")
    spoken_of = any(re.search(rf"\b{name}\b", text) for text in texts)
    return declaration(record) if spoken_of and not any(map(own.search, texts)) else ""


def takes_one_by_one(rung: Rung, function: str = "") -> bool:
    """Whether a kernel of the rung ("": the first) takes the scalars as arguments of their own: behind its
    pointers stands a type of the language, and no struct."""
    if rung.op not in OPS:
        return True
    texts = _texts(rung)
    arguments = _signature(tuple(texts), function or rung.op)
    if not arguments:  # written in a way that is not read here
        return not any(struct_name(OPS[rung.op]) in text for text in texts)
    behind = [part for part in arguments if "*" not in part]
    return bool(behind and _BUILT_IN.search(behind[0]))


def notes(rung: Rung) -> tuple[str, ...]:
    """What to say of a CUDA rung whose kernel still takes its scalars one by one."""
    if rung.device != "cuda" or rung.language or not takes_one_by_one(rung):
        return ()
    record = OPS[rung.op]
    first = members(record)[0]
    return (
        "takes the sizes one by one, which only this release still allows: write "
        f"{parameter(record)} in their place, and {NAME}.{first.name} for {first.name}",
    )


def parameter(record: type[Params]) -> str:
    """The argument that a kernel takes behind its pointers."""
    return f"const {struct_name(record)} {NAME}"


def _texts(rung: Rung) -> list[str]:
    return [rung.source, *(header.text for header in headers(rung))]


@lru_cache(maxsize=256)
def _signature(texts: tuple[str, ...], function: str) -> tuple[str, ...]:
    """The arguments of a kernel as its text declares them, macros in their place; () where there are none."""
    plain = _COMMENTS.sub(" ", "\n".join(texts).replace("\\\r\n", " ").replace("\\\n", " "))
    start = re.compile(rf"__global__[^;{{}}]*?\b{re.escape(function)}\s*\(([^()]*)\)")
    found = start.search(plain)
    if found is None:
        return ()
    macros = dict(_MACRO.findall(plain))
    arguments = found[1]
    for _ in range(_DEEPEST):
        arguments = re.sub(r"\w+", lambda word: macros.get(word[0], word[0]), arguments)
    return tuple(" ".join(part.split()) for part in arguments.split(",") if part.strip())
