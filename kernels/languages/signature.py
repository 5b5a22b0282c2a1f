"""What the function of a rung in Python takes, read from its text: nothing of it is run for that.

    def softmax(x, y, outer, axis, inner, log_of_it, WIDTH: tl.constexpr):

First the pointers, one an input, the output's, and the scratch memory's where the launch has some; then those
scalars that it wants, by the names of the operator's struct (kernels.ops) in any order, and `has_bias` and
the like: whether an input that may be absent is there. In a language that has them constants come last, by
the names of defines.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.errors import KernelError
from kernels.ops import Scalar, members
from kernels.tasks import record_of

HAS = "has_"
_CONSTANT = "constexpr"
KINDS = {"int": "int32", "index_t": "int64", "float": "float32"}


@dataclass(frozen=True)
class Signature:
    """Names of the arguments, in order. scalars: (name, type) of each."""

    pointers: tuple[str, ...]
    scalars: tuple[tuple[str, str], ...]
    constants: tuple[str, ...]

    def values(self, op: str, scalars: Sequence[Scalar], given: Sequence[int]) -> list[Any]:
        """Its scalars, picked from all scalars of the launch. given: addresses of the pointers, 0 for
        none."""
        known = dict(zip(_members(op), scalars, strict=True)) if self.scalars else {}
        there = {HAS + name: np.int32(bool(at)) for name, at in zip(self.pointers, given, strict=False)}
        return [there[name] if name in there else known[name] for name, _ in self.scalars]


def _members(op: str) -> dict[str, str]:
    """Names and types of the struct's members."""
    return {m.name if not m.count else f"{m.name}[]": KINDS[m.kind] for m in members(record_of(op))}


@functools.lru_cache(maxsize=256)
def signature(path: Path, op: str, source: str) -> Signature:
    """Of the function `op` of this text. Raises KernelError naming file and line."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise KernelError(f"{path}:{error.lineno or 1}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise KernelError(f"{path}: it cannot be read as Python: {error}") from None
    functions = [it for it in tree.body if isinstance(it, ast.FunctionDef) and it.name == op]
    if not functions:
        raise KernelError(f"{path}: it must define the function {op}(…)")
    return _read(path, op, functions[-1])


def _read(path: Path, op: str, function: ast.FunctionDef) -> Signature:
    where, arguments = f"{path}:{function.lineno}", function.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        raise KernelError(f"{where}: {op} takes plain arguments only")
    members = _members(op)
    pointers: list[str] = []
    scalars: list[tuple[str, str]] = []
    constants: list[str] = []
    for argument in (*arguments.posonlyargs, *arguments.args):
        name = argument.arg
        if argument.annotation is not None and ast.unparse(argument.annotation).endswith(_CONSTANT):
            constants.append(name)
        elif constants:
            raise KernelError(f"{where}: {name} stands behind a constant, and constants come last")
        elif name in members or (name.startswith(HAS) and name.removeprefix(HAS) in pointers):
            scalars.append((name, members.get(name, "int32")))
        elif scalars:
            raise KernelError(
                f"{where}: {name} is no scalar of {op}; there are {', '.join(members)}, and has_… of an input"
            )
        else:
            pointers.append(name)
    least = record_of(op).most_inputs + 1
    if len(pointers) not in (least, least + 1):
        raise KernelError(
            f"{where}: {op} takes {least} pointers first, one an input and the output's (and the "
            f"scratch memory's where its launch has some), and {len(pointers)} stand there"
        )
    return Signature(tuple(pointers), tuple(scalars), tuple(constants))
