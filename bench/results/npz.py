"""npz files from folders of runs, read within limits (bench.results.reading): sizes are checked before
anything is unpacked, and an array of objects, which would run code, is refused."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError

import numpy as np

from bench.results.reading import MIB, Unreadable, opened

MOST_NBYTES = 1024 * MIB  # unpacked, all together
MOST_ARRAYS = 64
_HEADER_NBYTES = 10_000
_PIECE_NBYTES = 4 * MIB


def arrays(
    path: Path, names: Sequence[str] = (), most: int = MOST_NBYTES, optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name: these (and those that are `optional`, where they are), or all. Their
    sizes are looked at before any is unpacked, and
    an array of objects, which would run code, is none. Raises Refused, OSError."""
    with opened(path, most) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                return _arrays(archive, names, most, optional)
        except (
            *(zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, SyntaxError),
            *(NotImplementedError, RuntimeError, MemoryError, OverflowError),
            *(TokenError, OSError),  # of a header that ends in the middle; of a place before the file's start
        ) as error:
            raise Unreadable(next(iter(str(error).splitlines()), type(error).__name__)) from error


def _arrays(
    archive: zipfile.ZipFile, names: Sequence[str], most: int, optional: Sequence[str]
) -> dict[str, np.ndarray]:
    held = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if len(archive.infolist()) > MOST_ARRAYS:
        raise Unreadable(f"it holds {len(archive.infolist()):,} arrays, and at most {MOST_ARRAYS} are read")
    if missing := [name for name in names if name not in held]:
        raise Unreadable(f"it has no {' and no '.join(missing)}")
    wanted = (*names, *(name for name in optional if name in held)) if names else tuple(held)
    if (nbytes := sum(held[name].file_size for name in wanted)) > most:
        raise Unreadable(f"it unpacks to {nbytes:,} bytes, and at most {most:,} are read")
    return {name: _array(archive, held[name]) for name in wanted}


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unreadable(f"{info.filename} is packed in a way that NumPy does not")
    form = np.lib.format
    with archive.open(info) as member:
        version = form.read_magic(member)
        if version not in ((1, 0), (2, 0)):
            raise Unreadable(f"{info.filename} is of a format {version} that is not known")
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, fortran, dtype = read(member, max_header_size=_HEADER_NBYTES)
        if dtype.hasobject:
            raise Unreadable(f"{info.filename} holds objects, which are not read")
        nbytes = math.prod(shape) * dtype.itemsize
        if not 0 <= nbytes <= info.file_size or min(shape, default=0) < 0:
            raise Unreadable(f"{info.filename} says that it has {nbytes:,} bytes, and has {info.file_size:,}")
        data = bytearray(nbytes)
        view, filled = memoryview(data), 0
        while filled < nbytes:
            if not (part := member.read(min(_PIECE_NBYTES, nbytes - filled))):
                raise Unreadable(f"{info.filename} is cut short")
            view[filled : filled + len(part)] = part
            filled += len(part)
        if member.read(1):  # which also has the checksum looked at
            raise Unreadable(f"{info.filename} is longer than it says")
    return np.ndarray(shape, dtype, buffer=data, order="F" if fortran else "C")
