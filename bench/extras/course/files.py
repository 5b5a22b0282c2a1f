"""The files of one hand-in: a file, a folder, a .zip or a .tar.gz, read within limits and never unpacked
to the disk. Whatever lies there, reading it ends, and what is left out is said."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bench.results import reading
from bench.results.inside import kind
from bench.words import plain
from kernels.errors import system_words

FILE_NBYTES = 1 << 20
ARCHIVE_NBYTES = 16 << 20  # of an archive as it lies there, and of what a .tar.gz unpacks to
TOTAL_NBYTES = 16 << 20  # of the files of one hand-in
MOST_FILES = 200  # that are read
MOST_LOOKED_AT = 5000  # entries of folders and archives
DEEPEST = 20  # folders in one another
CHARACTERS = 100  # of a name as it is shown
ARCHIVES = (".tar.gz", ".tgz", ".zip")
_ZIP_ENTRY = b"PK\x01\x02"  # what each entry of a zip's directory begins with
_ENCRYPTED = 1
_NO_ONES = ("__MACOSX", "__pycache__")  # what systems leave beside people's files


def shown(name: str) -> str:
    """A name from a file system or an archive as text: on one line, without control characters, in NFC, the
    same for a system that stores letters and accents apart."""
    text = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    text = " ".join(plain.printable(unicodedata.normalize("NFC", text)).split())
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"


def archive(name: str) -> str:
    """The ending by which a name is that of an archive that is read, or ""."""
    return next((ending for ending in ARCHIVES if name.lower().endswith(ending)), "")


@dataclass(frozen=True)
class Piece:
    """One file. folder: the folders that it lies in, as one text. why: why there is no text, or ""."""

    name: str
    folder: str = ""
    text: str = ""
    why: str = ""


@dataclass
class Taken:
    """What was read. said: what was left out, a sentence each; at: seconds since 1970 when the newest of the
    files was changed (0.0: none)."""

    pieces: list[Piece] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    at: float = 0.0


def taken(path: Path, wanted: Callable[[str], bool], name: str = "") -> Taken:
    """The files of the hand-in `path`. wanted: whether a file of a name is read; name: what it was called
    when it was handed in, where that is not its own."""
    of = _Taking(wanted)
    of.entry(path, PurePosixPath(name or path.name), 0, first=True)
    return of.made


class _Taking:
    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self.made = Taken()
        self._wanted = wanted
        self._looked_at = 0
        self._nbytes = 0
        self._full = False

    def entry(self, path: Path, name: PurePosixPath, depth: int, first: bool = False) -> None:
        """One entry of a folder of the disk, whatever it is."""
        if not self._room():
            return
        called = shown(name.name)
        try:
            held = path.lstat()
            if stat.S_ISLNK(held.st_mode):
                self._say(f"{called} is a link, and links are not followed")
            elif stat.S_ISDIR(held.st_mode):
                self._folder(path, name if not first else PurePosixPath(), depth)
            elif not stat.S_ISREG(held.st_mode):
                if first or self._wanted(name.name):
                    self._fails(called, name, f"it is {kind(held.st_mode)} and no file")
            elif archive(name.name):
                self._date(held.st_mtime)
                self._archive(reading.whole(path, ARCHIVE_NBYTES), name)
            elif self._wanted(name.name):
                self._date(held.st_mtime)
                self._keep(name, reading.whole(path, FILE_NBYTES))
            elif first:
                self._say(f"{called} is no kernel, no folder and no archive ({', '.join(ARCHIVES)})")
        except (OSError, ValueError) as error:
            words = system_words(error) if isinstance(error, OSError) else str(error)
            self._fails(called, name, words)

    def _folder(self, path: Path, name: PurePosixPath, depth: int) -> None:
        if depth > DEEPEST:
            self._say(f"folders in {shown(str(name))} lie deeper than {DEEPEST}, and are not read")
            return
        with os.scandir(path) as found:
            entries = sorted(itertools.islice(found, MOST_LOOKED_AT + 1), key=lambda entry: entry.name)
        for entry in entries:
            if not entry.name.startswith(".") and entry.name not in _NO_ONES:
                self.entry(Path(entry.path), name / entry.name, depth + 1)

    def _archive(self, data: bytes, name: PurePosixPath) -> None:
        called = shown(name.name)
        members = _zipped(data) if archive(name.name) == ".zip" else _tarred(data)
        try:
            for member, read in members:
                if not self._room():
                    return
                below = PurePosixPath(member.replace("\\", "/"))
                if any(part.startswith(".") or part in _NO_ONES for part in below.parts):
                    continue
                if archive(below.name):
                    self._say(f"{shown(below.name)} is an archive in the archive {called}, and is not read")
                elif self._wanted(below.name):
                    try:
                        self._keep(below, read(FILE_NBYTES + 1))
                    except (reading.Unreadable, *_BROKEN) as error:
                        self._fails(shown(below.name), below, _why(error))
        except (reading.Unreadable, *_BROKEN) as error:
            self._say(f"{called} cannot be read: {_why(error)}")

    def _keep(self, name: PurePosixPath, data: bytes) -> None:
        called = shown(name.name)
        if len(data) > FILE_NBYTES:
            return self._fails(called, name, f"it is larger than {FILE_NBYTES >> 20} MiB")
        self._nbytes += len(data)
        if self._nbytes > TOTAL_NBYTES or len(self.made.pieces) >= MOST_FILES:
            self._full = True
            self._say(
                f"there is more than is read: {MOST_FILES} files of {TOTAL_NBYTES >> 20} MiB in all at most"
            )
            return None
        try:
            self.made.pieces.append(Piece(called, shown(str(name.parent)), data.decode("utf-8")))
        except UnicodeDecodeError:
            self._fails(called, name, "it is no UTF-8 text")
        return None

    def _fails(self, called: str, name: PurePosixPath, why: str) -> None:
        if self._wanted(name.name) and len(self.made.pieces) < MOST_FILES:
            self.made.pieces.append(Piece(called, shown(str(name.parent)), why=f"{called}: {why}"))
        else:
            self._say(f"{called}: {why}")

    def _date(self, changed: float) -> None:
        self.made.at = max(self.made.at, changed)

    def _say(self, words: str) -> None:
        if len(self.made.said) < 10:
            self.made.said.append(words)

    def _room(self) -> bool:
        self._looked_at += 1
        if self._looked_at == MOST_LOOKED_AT + 1:
            self._say(f"it has more than {MOST_LOOKED_AT:,} entries, and the rest is not read")
        return self._looked_at <= MOST_LOOKED_AT and not self._full


Read = Callable[[int], bytes]
# What broken archives make the readers raise; they name no single base.
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, OSError, ValueError,
    NotImplementedError, RuntimeError, RecursionError, OverflowError, KeyError, IndexError, TypeError,
)  # fmt: skip


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, reading.Unreadable) else "it is broken"


def _zipped(data: bytes) -> Iterator[tuple[str, Read]]:
    """The files of a zip: stored, or packed as all tools do. Raises Unreadable, and what _BROKEN lists."""
    if data.count(_ZIP_ENTRY) > MOST_LOOKED_AT:  # before its directory is read, which is read at once
        raise reading.Unreadable(f"it has more than {MOST_LOOKED_AT:,} entries")
    with zipfile.ZipFile(io.BytesIO(data)) as held:
        for info in held.infolist():
            if info.is_dir() or stat.S_ISLNK(info.external_attr >> 16):
                continue
            yield info.filename, lambda most, info=info: _unzipped(held, info, most)  # type: ignore[misc]


def _unzipped(held: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    if info.flag_bits & _ENCRYPTED:
        raise reading.Unreadable("it is locked with a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise reading.Unreadable("it is packed in a way that is not read; pack it as other zip files are")
    with held.open(info) as stream:
        return stream.read(most)


def _tarred(data: bytes) -> Iterator[tuple[str, Read]]:
    """The files of a .tar.gz. Raises Unreadable, and what _BROKEN lists."""
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        plain_data = packed.read(ARCHIVE_NBYTES + 1)
    if len(plain_data) > ARCHIVE_NBYTES:
        raise reading.Unreadable(f"it unpacks to more than {ARCHIVE_NBYTES >> 20} MiB")
    with tarfile.open(fileobj=io.BytesIO(plain_data), mode="r:") as held:
        for _ in range(MOST_LOOKED_AT + 1):  # a broken one may lead back to where it began
            member = held.next()
            if member is None:
                return
            if member.isreg() and not member.issparse():
                yield member.name, lambda most, member=member: _untarred(held, member, most)  # type: ignore[misc]


def _untarred(held: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes:
    stream = held.extractfile(member)
    if stream is None:
        raise reading.Unreadable("it is broken")
    with stream:
        return stream.read(most)
