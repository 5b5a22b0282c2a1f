"""Models that the user imported: an ONNX file and a JSON table each.

They lie in a folder of the user's data, not in the cache: nothing here could make them again. Listing them
reads only the small tables.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs

from kernels.cache import atomic_file
from kernels.errors import InputError, ModelError

log = logging.getLogger("kernelscope.models")

NET = "imported"
MOST_NAME = 64
MOST_TABLE = 8 << 20  # bytes of a table: labels are most of it
_NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MOST_NAME - 1}}}")
_KINDS = {
    "title": str, "net": str, "input": list, "preprocess": str, "dataset": str, "images": int,
    "classes": list, "origin": str, "sha256": str,
}  # fmt: skip


def folder() -> Path:
    """Where imported models lie: KERNELSCOPE_MODELS, else the system's place for a user's data."""
    override = os.environ.get("KERNELSCOPE_MODELS")
    if override:
        return Path(override).expanduser()
    return platformdirs.user_data_path("kernelscope", appauthor=False) / "models"


def tables() -> dict[str, dict[str, Any]]:
    """The tables of imported models by name; like those of catalogue.toml, except that `classes` has the
    names."""
    by_name = {}
    for file in sorted(folder().glob("*.json")):
        try:
            stat = file.stat()
        except OSError:
            continue  # removed just now
        if _NAME.fullmatch(file.stem):
            table = _table(file, stat.st_size, stat.st_mtime_ns, stat.st_ino)
            if table is not None:
                by_name[file.stem] = table
    return by_name


@lru_cache(maxsize=256)
def _table(file: Path, size: int, mtime_ns: int, inode: int) -> dict[str, Any] | None:
    """The content of a table file. The other arguments are there so that a changed file is read again."""
    try:
        if size > MOST_TABLE:
            raise ValueError("too large")
        table = json.loads(file.read_bytes())
        if not all(type(table.get(key)) is kind for key, kind in _KINDS.items()):
            raise ValueError("not as it was written")
        sizes, classes = table["input"], table["classes"]
        if len(sizes) != 3 or not all(type(size) is int and size > 0 for size in sizes):
            raise ValueError("no input")
        if table["images"] < 1 or not all(type(name) is str for name in classes):
            raise ValueError("no images or classes")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        log.warning("the imported model %s is left out (%s): import it again", file, error)
        return None
    return {key: table[key] for key in _KINDS}


def checked_name(name: str, taken: Collection[str]) -> str:
    """The name, if it is valid and free. Raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:80]!r} cannot be a model's name: up to {MOST_NAME} small letters, digits, dots, hyphens "
            "and underscores can"
        )
    if name in taken:
        hint = "" if name not in tables() else f", or remove it first: models remove {name}"
        raise InputError(f"a model {name} is in the catalogue already: choose another name{hint}")
    return name


def add(name: str, data: bytes, table: dict[str, Any]) -> Path:
    """Store a model. Returns its ONNX file. Raises OSError."""
    target = folder() / f"{name}.onnx"
    with atomic_file(target) as temporary:
        temporary.write_bytes(data)
    noted = table | {"sha256": hashlib.sha256(data).hexdigest()}
    try:
        with atomic_file(target.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(noted, indent=1), encoding="utf-8")
    except OSError:
        target.unlink(missing_ok=True)
        raise
    return target


def file_of(name: str) -> Path:
    """The ONNX file of an imported model. Raises ModelError where it is gone."""
    path = folder() / f"{name}.onnx"
    if not path.is_file():
        raise ModelError(f"the imported model {name} is gone from {path.parent}: {again(name)}")
    return path


def again(name: str) -> str:
    return f"remove it (models remove {name}) and import it again"


def remove(name: str) -> None:
    """Delete an imported model. Raises InputError where there is none of that name."""
    if name not in tables():
        known = ", ".join(tables()) or "none"
        raise InputError(f"{name!r} is no imported model; imported are: {known}")
    try:
        for suffix in (".json", ".onnx"):
            (folder() / f"{name}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"model {name} could not be removed from {folder()} ({error.strerror})") from error
