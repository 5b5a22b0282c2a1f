"""What of this machine a job names, and so travels: models, folders of kernels, data, labels, inputs.

Nothing else does. Each travels as a tree: relative name → SHA-256 of a file. The job that is read there names
the trees' paths there; in what comes back these paths are ours again.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.results import reading
from bench.results.inside import named
from kernels import cache
from kernels.errors import InputError, KernelscopeError, system_words

FOLDER = "folder:"
# Of a folder of kernels: what a rung is read from, and what it includes.
KERNELS = (".cu", ".cuh", ".py", ".h", ".hpp", ".inc", ".inl", ".toml", ".onnx")  # and of tasks
LARGE_NBYTES = 1 << 20  # the SHA-256 of such files is kept
MOST_FILES = 200_000  # of one folder
_INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"\n]+)"', re.MULTILINE)
# An entry of an ONNX tensor that names the file of its values: key "location", then the name.
_EXTERNAL = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])", re.DOTALL)
_KEPT = cache.Store("digests", 1, "SHA-256 of files that were sent elsewhere", most=4096)


@dataclass
class Sent:
    """trees: as `frames.Input` has them. files: laid into the run's folder there. sources: where each file
    lies here, by SHA-256; of a kernel, which may be saved meanwhile, what it was. paths: (as the job names it
    here, tree, relative name there)."""

    trees: dict[str, dict[str, str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Path | bytes] = field(default_factory=dict)
    paths: list[tuple[str, str, str]] = field(default_factory=list)

    def there(self, folder: str) -> dict[str, str]:
        """Paths here → paths there, the longest first. folder: the place's."""
        longest = sorted(self.paths, key=lambda path: -len(path[0]))
        return {here: "/".join((folder, "trees", tree, name)) for here, tree, name in longest}


def sent(start: dict[str, Any], files: Path | None = None) -> Sent:
    """What this Start names of this machine. files: a folder all of which is laid into the run's folder
    there. Raises InputError where something cannot be read."""
    found = Sent()
    job, cases = start["job"], start.get("cases", ())
    models = [*job.get("models", ()), job.get("model", ""), *(case.get("model", "") for case in cases)]
    for text in dict.fromkeys(models):
        if text and (path := _file(text)) is not None:
            _add(found, text, path.parent, path.name, [path, *_beside(path)])
    for text in job.get("kernel_dirs", ()):
        top, members = _kernels(Path(text).expanduser())
        relative = Path(text).expanduser().resolve().relative_to(top).as_posix()
        _add(found, text, top, relative, members, keep=True)
    for text in filter(None, (job.get("labels"), *job.get("inputs", {}).values())):
        if (path := Path(text).expanduser()).is_file():
            _add(found, text, path.parent, path.name, [path])
    dataset = job.get("dataset") or ""
    if dataset.startswith(FOLDER):
        from models.datasets import parted

        text = parted(dataset)[0].removeprefix(FOLDER)
        path = Path(text).expanduser().resolve()
        if path.is_dir():
            _add(found, text, path.parent, path.name, list(_below(path)))
        elif path.is_file():
            _add(found, text, path.parent, path.name, [path])
    if files is not None:
        for path in _below(files):
            digest = _digest(path)
            found.sources[digest] = path
            found.files[path.relative_to(files).as_posix()] = digest
    return found


def _add(
    found: Sent, text: str, top: Path, relative: str, members: Iterable[Path], keep: bool = False
) -> None:
    """Add what the job calls `text`: these files, by their names below `top`. keep: as they are now."""
    tree: dict[str, str] = {}
    for path in members:
        if keep:
            data = _content(path)
            digest = hashlib.sha256(data).hexdigest()
            found.sources[digest] = data
        else:
            digest = _digest(path)
            found.sources[digest] = path
        tree[path.relative_to(top).as_posix()] = digest
    name = hashlib.sha256(msgspec.json.encode(sorted(tree.items()))).hexdigest()
    found.trees[name] = tree
    found.paths.append((text, name, relative))


def _file(text: str) -> Path | None:
    """The file that a model's name means; None for one of the catalogue."""
    from models import names

    path = Path(text).expanduser()
    return path.absolute() if text not in names.models() and path.is_file() else None


def _beside(model: Path) -> Iterator[Path]:
    """Files in a model's folder that hold values of its tensors (ONNX's external data)."""
    names: set[str] = set()
    try:
        with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for match in _EXTERNAL.finditer(data):
                names.add(data[match.end() : match.end() + match[1][0]].decode("utf-8", "replace"))
    except (OSError, ValueError):  # an empty file cannot be mapped; whoever loads it says what it is
        return
    for name in sorted(names):
        try:
            named(model.parent, name)
        except InputError:
            continue
        path = model.parent / name
        if path.is_file() and path.resolve().is_relative_to(model.parent.resolve()):
            yield path


def _kernels(folder: Path) -> tuple[Path, list[Path]]:
    """The files of a folder of kernels, and what they include from the folder around it; the folder that all
    of them lie in."""
    folder = folder.resolve()
    members = [path for path in _below(folder) if path.suffix in KERNELS]
    waiting = list(members)
    while waiting:
        path = waiting.pop()
        for match in _INCLUDE.finditer(_content(path)):
            other = Path(path.parent, match[1].decode("utf-8", "replace")).resolve()
            inside = other.is_relative_to(folder.parent) and other.suffix in KERNELS
            if inside and other not in members and other.is_file():
                members.append(other)
                waiting.append(other)
    top = folder if all(path.is_relative_to(folder) for path in members) else folder.parent
    # Its name is told in reports: it stays.
    return (folder.parent if top == folder else top), members


def _below(folder: Path) -> Iterator[Path]:
    """Regular files below a folder; hidden ones and bytecode are left out."""
    count = 0
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part == "__pycache__" for part in parts) or not path.is_file():
            continue
        count += 1
        if count > MOST_FILES:
            raise InputError(f"{folder} has more than {MOST_FILES:,} files, too many to be sent elsewhere")
        yield path


def _content(path: Path) -> bytes:
    try:
        return reading.whole(path)
    except (OSError, reading.Unreadable) as error:
        raise InputError(f"{path} cannot be read: {reading.words(error)}") from error


def _digest(path: Path) -> str:
    """Raises InputError where it cannot be read."""
    try:
        held = path.stat()
        key: dict[str, Any] = {"path": str(path), "size": held.st_size, "time": held.st_mtime_ns}
        large = held.st_size > LARGE_NBYTES
        if large and (known := _KEPT.read("files", key, str)) is not None:
            return known
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {system_words(error)}") from error
    if large:
        with contextlib.suppress(KernelscopeError):  # it is summed again next time
            _KEPT.write("files", key, digest)
    return digest


def swapped(value: Any, paths: dict[str, str]) -> Any:
    """The same JSON, each text that is one of these paths, or begins with one, with the other instead. As
    the names of things they may stand before a colon, and `folder:` before them."""
    match value:
        case str():
            head = FOLDER if value.startswith(FOLDER) else ""
            text = value.removeprefix(head)
            for here, there in paths.items():
                if text == here or text.startswith((f"{here}/", f"{here}:", f"{here}@")):
                    return head + there + text[len(here) :]
            return value
        case dict():
            return {swapped(key, paths): swapped(part, paths) for key, part in value.items()}
        case list():
            return [swapped(part, paths) for part in value]
    return value
