"""Compiled code as the stand-in compiler leaves it: which kernels there are, what they take, the defines."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernels import layouts
from kernels.precision import narrow
from tests.standin.errors import NO_BINARY, CudaError

_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_BOUNDS = re.compile(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)")
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:\w+\s+)*?(\w+)\s*\(([^()]*)\)')
_CONSTANT = re.compile(r"(?:__constant__\s+(float)|__device__\s+(long long))\s+(\w+)\s*\[\s*(\w+)\s*\]")
_TYPES = {"int": "int32", "index_t": "int64", "long long": "int64", "unsigned long long": "uint64",
          "float": "float32", "cudaTextureObject_t": "pointer"}  # fmt: skip
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{([^{}]*)\};")
_C_TYPES = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float}
_QUALIFIERS = re.compile(r"\b(const|__restrict__|__grid_constant__)\b")
Members = tuple[tuple[str, str, int], ...]  # type, name, elements (0: no array)


@dataclass(frozen=True)
class Function:
    """A kernel. takes: "pointer", "int32", "int64", "float32" or "struct" for each argument (None: not
    known); members: those of its struct."""

    name: str
    takes: tuple[str, ...] | None = None
    members: Members = ()

    @property
    def struct(self) -> type[ctypes.Structure]:
        """As C lays it out, which is ctypes' to say: what the program packs is held to that."""
        fields = [
            (name, _C_TYPES[kind] * count if count else _C_TYPES[kind]) for kind, name, count in self.members
        ]
        return type(self.name, (ctypes.Structure,), {"_fields_": fields})

    def told(self, content: bytes) -> list[int | float]:
        """The values in a struct's bytes, one after the other."""
        whole = self.struct.from_buffer_copy(content)
        values = [getattr(whole, name) for _, name, _ in self.members]
        return [one for value in values for one in (value if isinstance(value, ctypes.Array) else (value,))]


@dataclass(frozen=True)
class Module:
    """known: whether it was compiled by the stand-in; code of a real compiler is launched and does nothing.
    constants: bytes of each array in constant memory. twin: a rung of the CPU's that answers in the kernel's
    place, faults and all ("": the answer is right)."""

    file: str = ""
    arch: str = ""
    op: str = ""
    precision: str = "fp32"
    launch: str = ""
    packs: bool = False
    twin: str = ""
    known: bool = False
    functions: Mapping[str, Function] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    defines: Mapping[str, str] = field(default_factory=dict)

    def define(self, name: str) -> int:
        return int(self.defines[name])

    def layout(self, name: str) -> str:
        """How the first input (READS) or the output (WRITES) lies."""
        of = {"float16": layouts.HALVES, "bfloat16": layouts.SHORT}
        laid_out = of.get(narrow(self.precision), layouts.ROUNDED)
        if "X_TYPE" in self.defines:
            laid_out = layouts.BYTES
        # Rows of a matrix are told so, too, where they are whole chunks: the same bytes.
        lies_so = int(self.defines.get(name, 0)) and self.op != "qgemm"
        return laid_out if lies_so else layouts.PLAIN

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Module:
        found: dict[str, Any] = json.loads(content)
        kernels = {
            name: Function(name, tuple(it["takes"]), tuple(map(tuple, it["members"])))
            for name, it in found.pop("functions").items()
        }
        return cls(functions=kernels, **found)

    @classmethod
    def read(cls, path: str, capability: tuple[int, int]) -> Module:
        """Raises CudaError where it was compiled for another device."""
        content = Path(path).read_bytes()
        if content.startswith(b"\x7fELF"):
            return cls()
        module = cls.from_bytes(content)
        if module.arch.removesuffix("a") != f"sm_{capability[0]}{capability[1]}":
            raise CudaError(NO_BINARY, f"compiled for {module.arch}")
        return module


def functions(texts: Sequence[str]) -> dict[str, Function]:
    """The kernels that a file and its headers define."""
    found = {}
    structs = {name: body for text in texts for name, body in _STRUCT.findall(text)}
    for text in texts:
        plain = _BOUNDS.sub("", _COMMENTS.sub("", text.replace("\\\n", " ")))
        for name, arguments in _KERNEL.findall(plain):
            takes = tuple(map(_kind, arguments.split(",")))
            behind = " ".join(part for part in arguments.split(",") if "*" not in part)
            given = [structs[word] for word in behind.split() if word in structs]
            found[name] = Function(name, takes, _members(given[0]) if given else ())
    return found


def constants(texts: Sequence[str], defines: Mapping[str, str]) -> dict[str, int]:
    """The arrays in the device's memory that they define, and what they take."""
    found = {}
    for text in texts:
        for single, _, name, length in _CONSTANT.findall(_COMMENTS.sub("", text)):
            count = defines.get(length, length)
            if count.isdecimal():  # else it is in a part of the text that is left out
                found[name] = (4 if single else 8) * int(count)
    return found


def _kind(argument: str) -> str:
    if "*" in argument:
        return "pointer"
    words = _QUALIFIERS.sub("", argument).split()
    return _TYPES.get(" ".join(words[:-1]), "struct")


def _members(body: str) -> Members:
    """Of a struct of numbers and arrays of them."""
    found = []
    for line in filter(None, map(str.strip, body.split(";"))):
        words = re.match(r"(long long|\w+)\s+(.*)", line, re.S)
        assert words is not None, line
        for declared in words[2].split(","):
            name, _, count = declared.strip().rstrip("]").partition("[")
            found.append((_TYPES.get(words[1], words[1]), name, int(count or 0)))
    return tuple(found)
