"""Compiled code as the stand-in compiler leaves it: which kernels there are, what they take, the defines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.standin.errors import NO_BINARY, CudaError

_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_BOUNDS = re.compile(r"__launch_bounds__\([^()]*\)")
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:\w+\s+)*?(\w+)\s*\(([^()]*)\)')
_CONSTANT = re.compile(r"__constant__\s+float\s+(\w+)\s*\[\s*(\w+)\s*\]")
_TYPES = {"int": "int32", "index_t": "int64", "long long": "int64", "unsigned long long": "uint64",
          "float": "float32"}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A kernel. takes: "pointer", "int32", "int64" or "float32" for each argument (None: not known)."""

    name: str
    takes: tuple[str, ...] | None = None


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

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Module:
        found: dict[str, Any] = json.loads(content)
        kernels = {name: Function(name, tuple(it["takes"])) for name, it in found.pop("functions").items()}
        return cls(functions=kernels, **found)

    @classmethod
    def read(cls, path: str, capability: tuple[int, int]) -> Module:
        """Raises CudaError where it was compiled for another device."""
        content = Path(path).read_bytes()
        if content.startswith(b"\x7fELF"):
            return cls()
        module = cls.from_bytes(content)
        if module.arch != f"sm_{capability[0]}{capability[1]}":
            raise CudaError(NO_BINARY, f"compiled for {module.arch}")
        return module


def functions(texts: Sequence[str]) -> dict[str, Function]:
    """The kernels that a file and its headers define."""
    found = {}
    for text in texts:
        plain = _BOUNDS.sub("", _COMMENTS.sub("", text.replace("\\\n", " ")))
        for name, arguments in _KERNEL.findall(plain):
            found[name] = Function(name, tuple(map(_kind, arguments.split(","))))
    return found


def constants(texts: Sequence[str], defines: Mapping[str, str]) -> dict[str, int]:
    """The arrays in constant memory that they define."""
    found = {}
    for text in texts:
        for name, length in _CONSTANT.findall(_COMMENTS.sub("", text)):
            found[name] = 4 * int(defines.get(length, length))
    return found


def _kind(argument: str) -> str:
    if "*" in argument:
        return "pointer"
    words = re.sub(r"\b(const|__restrict__)\b", "", argument).split()
    return _TYPES[" ".join(words[:-1])]
