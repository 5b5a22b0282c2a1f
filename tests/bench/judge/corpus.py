"""The corpus of kernels that cheat: a file each, of which its second comment says what is to become of it.

tests/bench/judge/cheats/README.md tells what the fields mean. `cheats` reads them; a file whose fields are
none of these, or do not fit each other, is a ValueError that names it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args

from bench.results.records import Disposition
from kernels import registry
from kernels.ops import OPS, Params, sized
from kernels.registry import Rung

FOLDER = Path(__file__).parent / "cheats"
HONEST = "honest"  # the family of what the others are held against
FAMILIES = {
    HONEST: "does its work",
    "memory": "answers from memory, by some key or by counting",
    "poison": "works only where it finds the judge's poison",
    "partial": "leaves out some of the work, or answers for other inputs",
    "later": "works outside of the time that is taken",
    "detection": "works only where it is not timed",
    "search": "looks for the answer instead of computing it",
    "machinery": "replaces or uses what runs it",
    "ends": "ends the process that it runs in",
    "copies": "saves what is taken off its time",
    "large": "relies on large problems not being looked at",
    "renewed": "computes what changed, and recognises inputs that are all new",
    "changes": "computes what changed",
    "batch": "works on several passes at once",
    "processes": "uses or disturbs other processes",
    "others": "takes from its rivals, or more than it is allowed",
    "precision": "computes with fewer bits than it says",
    "inputs": "relies on what inputs are like",
    "limit": "is faster than the machine can be",
    "cache": "keeps in caches what should not lie there",
}
# Of a file; the first five it has to have.
FIELDS = ("family", "shape", "expected", "work", "beside", "alone", "seconds", "cold", "hosted")
_REQUIRED = FIELDS[:5]
_COMMENT = re.compile(r"/\*.*?\*/\s*/\*(.*?)\*/", re.DOTALL)


@dataclass(frozen=True)
class Cheat:
    """A file of the corpus. family: of FAMILIES; params: what it is timed on; expected: dispositions that are
    right for it, "ok" among them where it may be shown, with the time of the full work; work: what that is;
    beside: the rung whose time that is. alone: whether it runs beside that one only, since it meddles with
    others. seconds: how long it is timed. cold: whether caches are overwritten before each pass. hosted:
    whether its text can run on the host."""

    rung: Rung
    family: str
    params: Params
    expected: tuple[str, ...]
    work: str
    beside: str
    alone: bool = False
    seconds: float = 0.05
    cold: bool = False
    hosted: bool = True

    @property
    def name(self) -> str:
        return self.rung.name

    @property
    def device(self) -> str:
        return self.rung.device

    @property
    def does(self) -> str:
        return self.rung.idea.removeprefix("Planted: ")


@cache
def cheats(device: str) -> tuple[Cheat, ...]:
    """All of a device, honest ones among them, in the order of their numbers. Raises ValueError; KernelError
    for a header that is none."""
    every = (rung for op in OPS for rung in registry.rungs(device, op, [FOLDER / device]))
    rungs = {rung for rung in every if rung.user}
    return tuple(_read(rung) for rung in sorted(rungs, key=lambda rung: rung.number))


def find(name: str, device: str = "cpu") -> Cheat:
    """The one of this name. Raises ValueError."""
    for cheat in cheats(device):
        if cheat.name == name:
            return cheat
    raise ValueError(f"no cheat {name!r} in {FOLDER / device}")


def planted(device: str) -> tuple[Cheat, ...]:
    """Those that are not honest."""
    return tuple(cheat for cheat in cheats(device) if cheat.family != HONEST)


def of_each_family(found: Sequence[Cheat]) -> dict[str, list[Cheat]]:
    by: dict[str, list[Cheat]] = {}
    for cheat in found:
        by.setdefault(cheat.family, []).append(cheat)
    return by


def _read(rung: Rung) -> Cheat:
    given = tomllib.loads(_told(rung))
    if unknown := [key for key in given if key not in FIELDS]:
        raise ValueError(
            f"{rung.path}: it has {unknown[0]!r}, which is no field; there are {', '.join(FIELDS)}"
        )
    if missing := [key for key in _REQUIRED if key not in given]:
        raise ValueError(f"{rung.path}: it lacks {missing[0]!r}")
    if given["family"] not in FAMILIES:
        raise ValueError(f"{rung.path}: family {given['family']!r} is none of {', '.join(FAMILIES)}")
    if not given["expected"] or not set(given["expected"]) <= set(get_args(Disposition)):
        raise ValueError(f"{rung.path}: expected {given['expected']!r} are no dispositions")
    shape: dict[str, Any] = given.pop("shape")
    return Cheat(rung, params=_params(rung.op, shape), **given | {"expected": tuple(given["expected"])})


def _told(rung: Rung) -> str:
    """The text of its fields: the module's docstring, or the comment behind the header."""
    if rung.path.suffix == ".py":
        return ast.get_docstring(ast.parse(rung.source)) or ""
    found = _COMMENT.match(rung.source)
    return found[1] if found else ""


def _params(op: str, shape: dict[str, Any]) -> Params:
    """Of an operator whose output follows from the rest it is not told."""
    names = {field.name for field in fields(OPS[op])}
    follows = {name: 0 for name in ("out_h", "out_w") if name in names}
    made = OPS[op](**follows | shape)
    return sized(made) if follows else made  # type: ignore[type-var]
