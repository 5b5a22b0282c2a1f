"""A folder of TOML files, each by its name: what commands fill in comes from such."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from kernels.errors import InputError
from kernels.nearest import did_you_mean

T = TypeVar("T")


def names(folder: Path) -> tuple[str, ...]:
    """Those that there are."""
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def load(folder: Path, name: str, kind: type[T], what: str) -> T:
    """The file of that name as a record. what: as one calls it. Raises InputError where there is none."""
    known = names(folder)
    if name not in known:
        hint = did_you_mean(name, known, otherwise=f"; there are {', '.join(known)}")
        raise InputError(f"there is no {what} {name!r}{hint}")
    text = (folder / f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), kind)
