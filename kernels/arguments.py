"""The arguments of a CUDA kernel: pointers, then the scalars of its operator as one struct, by value.

A record of kernels.ops declares the struct once, in C syntax (`Params.struct`). From that follow its text,
which the compiler reads before a rung's (`declaration`), and its memory layout, in which the scalars are
packed for a launch (`layout`, `packed`). A kernel takes it as `const ConvParams p`, by value: the compiler
then reads each member once, as it reads an argument, and most rungs need as many registers as with one
argument for each scalar. Where another form needs fewer, a kernel may use it, because the call is the same:
with `__grid_constant__`, whose members are read where they are used, or a copy of that (both in gemm).

A kernel that takes the scalars as arguments of their own is refused, with what to write instead: by its text
(`preamble`), and, where a macro hides them, by its PTX (`check_compiled`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kernels.errors import KernelError
from kernels.ops import MEMBER_TYPES, Params, Scalar, members
from kernels.registry import Rung, headers
from kernels.tasks import record_of

FILE = "params.cuh"  # what the compiler calls the struct's text
NAME = "p"  # of the argument, in our rungs
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_BUILT_IN = re.compile(
    r"\b(?:char|short|int|long|unsigned|signed|float|double|bool|index_t|size_t|u?int\d+_t)\b"
)


def struct_name(record: type[Params]) -> str:
    """ConvParams of the record Conv."""
    return f"{record.__name__}Params"


@lru_cache
def layout(record: type[Params]) -> np.dtype[np.void]:
    """The struct's memory layout as in C: each member on a multiple of its size."""
    fields = [(m.name, MEMBER_TYPES[m.kind][1], (m.count,) if m.count else ()) for m in members(record)]
    return np.dtype(fields, align=True)


@lru_cache
def declaration(record: type[Params]) -> str:
    """The struct as C text."""
    lines: list[str] = []
    before = ""
    for member in members(record):
        declared = f"{member.name}[{member.count}]" if member.count else member.name
        if member.kind == before:
            lines[-1] += f", {declared}"
        else:
            lines.append(f"    {MEMBER_TYPES[member.kind][0]} {declared}")
        before = member.kind
    return "\n".join([f"struct {struct_name(record)} {{", *(f"{line};" for line in lines), "};", ""])


def listed(record: type[Params]) -> str:
    """The members in a sentence: "int n, c, h, w; float scale"."""
    return "; ".join(" ".join(line.split()) for line in declaration(record).split("{")[1].split(";")[:-2])


def packed(op: str, scalars: Sequence[Scalar]) -> np.ndarray:
    """An operator's scalars as its struct: an array of one element, which CuPy passes by value. Raises
    TypeError where they are not the declared ones."""
    record = record_of(op)
    wanted = [MEMBER_TYPES[m.kind][1] for m in members(record) for _ in range(m.count or 1)]
    if [type(value) for value in scalars] != wanted:
        raise TypeError(f"{record.__name__}.scalars() are not the members of {record.__name__}.struct")
    whole = np.zeros((), layout(record))
    rest = iter(scalars)
    for member in members(record):
        values = [next(rest) for _ in range(member.count or 1)]
        whole[member.name] = values if member.count else values[0]
    return whole


def unpacked(op: str, content: bytes) -> list[int | float]:
    """The scalars of a struct, in order."""
    whole = np.frombuffer(content, layout(record_of(op)), count=1)[0]
    return [value for m in members(record_of(op)) for value in np.atleast_1d(whole[m.name]).tolist()]


_VALUES = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "FLT_MAX": "3.402823466e+38f",
    "FLT_MIN": "1.175494351e-38f",
    "FLT_EPSILON": "1.192092896e-07f",
    "DBL_MAX": "1.7976931348623157e+308",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295u",
    "LLONG_MAX": "9223372036854775807ll",
    "M_PI": "3.14159265358979323846",
}
_TYPES = {
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int64_t": "long long",
    "uint64_t": "unsigned long long",
}


def preamble(rung: Rung) -> str:
    """What the compiler reads before the rung's text: the struct, if the text or one of its headers uses that
    name and does not define it. Raises KernelError where a kernel takes a scalar as a separate argument: it
    would get the struct in its place."""
    if not rung.launch:  # of a file of ours that is no rung (kernels.registry.code)
        return ""
    record = record_of(rung.op)
    name = struct_name(record)
    texts = [_COMMENTS.sub("", text) for text in (rung.source, *(header.text for header in headers(rung)))]
    kernel = re.compile(rf"__global__[^;{{}}]*?\b{rung.op}\w*\s*\(([^()]*)\)")
    for taken in (part for text in texts for found in kernel.findall(text) for part in found.split(",")):
        if "*" not in taken and _BUILT_IN.search(taken):
            raise _one_by_one(rung, record)
    own = re.compile(rf"\b(?:struct|class|using)\s+{name}\b|\}}\s*{name}\s*;")
    spoken_of = any(re.search(rf"\b{name}\b", text) for text in texts)
    struct = declaration(record) if spoken_of and not any(map(own.search, texts)) else ""
    return _of_c("\n".join(texts)) + struct


def _of_c(text: str) -> str:
    """What a text speaks of that nvcc knows from headers of C, which this compiler does not have: unless it
    defines it itself or includes a header of a library's, which may."""
    if re.search(r"^\s*#\s*include\s*<", text, re.MULTILINE):
        return ""
    words = set(re.findall(r"\b[A-Za-z_]\w*", text))
    found = [f"#define {name} {value}" for name, value in _VALUES.items() if name in words]
    found += [f"typedef {kind} {name};" for name, kind in _TYPES.items() if name in words]
    own = re.compile(r"#\s*define\s+(\w+)|\b(?:typedef\b[^;]*|using\s+)\b(\w+)\s*[=;]")
    made = {name for pair in own.findall(text) for name in pair}
    return "".join(f"{line}\n" for line in found if not made & set(line.rstrip(";").split()))


def check_compiled(rung: Rung, ptx: str) -> None:
    """Raises KernelError where a kernel of the operator takes a number as an argument of its own, by its PTX:
    there a pointer is .u64, and a struct an array of .b8."""
    if not rung.launch:
        return
    record = record_of(rung.op)
    for given in re.findall(rf"\.entry {rung.op}\w*\((.*?)\)", ptx, re.S):
        if re.search(r"\.param \.(?!u64|b64|align)\w+ ", given):
            raise _one_by_one(rung, record)


def _one_by_one(rung: Rung, record: type[Params]) -> KernelError:
    first = members(record)[0].name
    return KernelError(
        f"{rung.path}: {rung.label} takes the sizes one by one; write {parameter(record)} behind the "
        f"pointers in their place, and {NAME}.{first} for {first}"
    )


def parameter(record: type[Params]) -> str:
    """The argument that a kernel takes after its pointers."""
    return f"const {struct_name(record)} {NAME}"
