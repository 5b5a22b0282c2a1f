"""A run in one file: its folder as a zip, to be handed on as a whole, and taken apart within limits.

Such a file may come from anybody. What it holds is counted before and while it is unpacked; names that lead
out of the folder, links, and files beyond what a run has are refused (bench.results.reading).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from bench.results.inside import files, named
from bench.results.reading import MIB, Unreadable, opened, words
from kernels.cache import atomic_file, cache_dir
from kernels.errors import InputError

SUFFIX = ".zip"
MOST_FILES = 60_000  # a file of more needs a larger form of zip, which is not read
MOST_NBYTES = 4096 * MIB  # unpacked, all together; and of the file itself
_PIECE_NBYTES = 1 * MIB
MOST_CONTENTS_NBYTES = 16 * MIB
_END, _LOCATOR = 22, 20  # bytes of a zip's last record, and of the one before in the larger form
_KEPT = 4  # folders in the cache


def is_packed(path: Path) -> bool:
    """By its name, and that it is a file."""
    return Path(path).suffix.lower() == SUFFIX and Path(path).is_file()


def pack(folder: Path, file: Path) -> None:
    """Write a run's folder as one file. Raises InputError for links that lead out of it, OSError."""
    found = sorted(files(folder), key=lambda it: str(it[1]))
    with atomic_file(file) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, name in found:
            archive.write(path, str(PurePosixPath(folder.resolve().name) / name))


def unpacked(file: Path) -> Path:
    """The folder of a packed run, in the user's cache: the same for the same content. Raises InputError,
    which says what is wrong with it."""
    try:
        with opened(file, MOST_NBYTES) as stream:
            kept = cache_dir() / "unpacked"
            found = hashlib.sha256()
            while piece := stream.read(_PIECE_NBYTES):
                found.update(piece)
            folder = kept / found.hexdigest()[:24]
            if not folder.is_dir():
                kept.mkdir(parents=True, exist_ok=True)
                _looked_at(stream)
                with tempfile.TemporaryDirectory(prefix=".", dir=kept) as made:
                    with zipfile.ZipFile(stream) as archive:
                        _unpack(archive, Path(made, "run"), file)
                    _forget_old(kept)
                    Path(made, "run").rename(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{file} is no packed run that can be read: {reason}") from error
    except OSError as error:
        raise InputError(f"{file} cannot be unpacked: {words(error)}") from error
    (run,) = folder.iterdir()
    return run


def _looked_at(stream: IO[bytes]) -> None:
    """Raises Unreadable for a table of contents that would fill the memory, before it is read."""
    stream.seek(-min(_END + _LOCATOR, stream.seek(0, os.SEEK_END)), os.SEEK_END)
    end = stream.read()
    if end[-_END:][:4] != b"PK\5\6" or end[-2:] != b"\0\0":
        raise Unreadable("it does not end as a zip file does")
    if end[:4] == b"PK\6\7" or int.from_bytes(end[-10:-6], "little") > MOST_CONTENTS_NBYTES:
        raise Unreadable(f"its table of contents has more than {MOST_FILES:,} files")
    stream.seek(0)


def _unpack(archive: zipfile.ZipFile, target: Path, file: Path) -> None:
    """Raises Unreadable for what no run has, InputError for a name that leads elsewhere."""
    held = [info for info in archive.infolist() if not info.is_dir()]
    if len(held) > MOST_FILES:
        raise Unreadable(f"it holds {len(held):,} files, and at most {MOST_FILES:,} are read")
    if (nbytes := sum(info.file_size for info in held)) > MOST_NBYTES:
        raise Unreadable(f"it unpacks to {nbytes:,} bytes, and at most {MOST_NBYTES:,} are read")
    tops = {PurePosixPath(info.filename).parts[:1] for info in held}
    if len(tops) != 1 or any(len(PurePosixPath(info.filename).parts) < 2 for info in held):
        raise Unreadable("it holds something else than one folder")
    left = MOST_NBYTES  # whatever sizes it claims
    for info in held:
        named(file, info.filename)
        mode = info.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise Unreadable(f"{info.filename} is no file")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Unreadable(f"{info.filename} is packed in a way that is not known")
        path = target / info.filename
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(info) as member, path.open("xb") as written:
            while piece := member.read(_PIECE_NBYTES):
                left -= len(piece)
                if left < 0:
                    raise Unreadable(f"it unpacks to more than {MOST_NBYTES:,} bytes")
                written.write(piece)


def _forget_old(kept: Path) -> None:
    folders = [path for path in kept.iterdir() if not path.name.startswith(".")]
    for path in sorted(folders, key=lambda path: path.stat().st_mtime_ns)[: 1 - _KEPT]:
        shutil.rmtree(path, ignore_errors=True)
