"""Reads files from folders of runs, which may come from anybody: only regular files, and never more of one
than a run can have, whatever it claims.

What is refused raises `Refused` with the reason in words. The caller adds which file it was, and what would
help.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from bench.results.inside import kind
from bench.words import plain
from kernels import toml
from kernels.errors import system_words

MIB = 1 << 20
RECORD_NBYTES = 64 * MIB  # run.json, ladder.json, profile.json
LINE_NBYTES = 64 * MIB  # as a worker may say (bench.run.supervisor)
RESULTS_NBYTES = 4096 * MIB
LINES = 4_000_000
EVENTS_NBYTES = 512 * MIB  # of a profile's case, unpacked
TRACE_NBYTES = 1024 * MIB
_PIECE_NBYTES = 4 * MIB

_LONG = re.compile(rb"[0-9]{19}")  # no whole number of 64 bits is longer; few lines have as many digits

R = TypeVar("R")


class Unreadable(ValueError):
    """A file that is broken, no file, or more than is read; the text says why, without the file's name."""


@contextlib.contextmanager
def opened(path: Path, most: int) -> Iterator[IO[bytes]]:
    """A regular file of at most `most` bytes. Raises Refused, OSError."""
    # A pipe without a writer would never open, a terminal would become ours.
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        descriptor = os.open(path, flags)
    except ValueError as error:  # a name with a null byte
        raise Unreadable(str(error)) from error
    with os.fdopen(descriptor, "rb") as stream:
        held = os.fstat(descriptor)
        if not stat.S_ISREG(held.st_mode):
            raise Unreadable(f"it is {kind(held.st_mode)} and no file")
        if held.st_size > most:
            raise Unreadable(f"it has {held.st_size:,} bytes, and at most {most:,} are read")
        yield stream


def whole(path: Path, most: int = RECORD_NBYTES) -> bytes:
    """All of a file. Raises Refused, OSError."""
    with opened(path, most) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise Unreadable(f"it grew beyond {most:,} bytes while it was read")
    return data


def text(path: Path, most: int) -> str:
    """All of a file that is text. Raises Unreadable, OSError."""
    try:
        return whole(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("it is no UTF-8 text") from None


def decoded(data: bytes, of: type[R] | msgspec.json.Decoder[R]) -> R:
    """A record out of JSON, its texts printable (bench.words.plain). Raises Refused for anything that it is
    not, however deep it is nested.
    """
    data = plain.json(data)
    try:
        if _LONG.search(data) and toml.holds_large(json.loads(data)):  # msgspec would have it as a float
            raise Unreadable("it holds a number of more than 64 bits")
        return of.decode(data) if isinstance(of, msgspec.json.Decoder) else msgspec.json.decode(data, type=of)
    except RecursionError as error:
        raise Unreadable("it is nested deeper than any record is") from error
    except (msgspec.DecodeError, ValueError, OverflowError) as error:  # also text that is not UTF-8
        raise Unreadable(" ".join(str(error).split())) from error  # it may quote what stands there


def lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their numbers from 1, without the newline; None for one that is longer than any is. What
    follows the last newline was cut short and is left out. Raises Refused where they are too many."""
    number = 0
    while line := stream.readline(LINE_NBYTES + 1):
        number += 1
        if number > LINES:
            raise Unreadable(f"it has more than {LINES:,} lines")
        if line.endswith(b"\n"):
            yield number, line[:-1]
            continue
        long = len(line) > LINE_NBYTES
        while long and line and not line.endswith(b"\n"):
            line = stream.readline(_PIECE_NBYTES)
        if not line.endswith(b"\n"):
            return
        yield number, None


def unpacked(path: Path) -> bytes:
    """The lines in a gzip file, all of them ended. Raises Refused where it is broken or unpacks to more than
    is read, OSError."""
    with opened(path, EVENTS_NBYTES) as stream:
        try:
            with GzipFile(fileobj=stream, mode="rb") as packed:
                data = packed.read(EVENTS_NBYTES + 1)
        except (EOFError, zlib.error, BadGzipFile) as error:
            raise Unreadable(str(error)) from error
    if len(data) > EVENTS_NBYTES:
        raise Unreadable(f"it unpacks to more than {EVENTS_NBYTES:,} bytes")
    return data if data.endswith(b"\n") or not data else data + b"\n"


def words(error: Unreadable | OSError) -> str:
    """Why something cannot be read."""
    return system_words(error) if isinstance(error, OSError) else str(error)
