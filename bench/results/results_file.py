"""`results.jsonl`: one line for each measurement, written to the disk before it is shown.

If the program is killed at any moment, at most one line is lost: a last line without its newline is ignored
when the file is read, and removed when the next line is written. Each line ends with a checksum of the rest
of it. A damaged line costs only that line and is reported. Lines without a checksum, from older versions, are
read as they are.

A checksum is no signature: a kernel that is measured could write a line, too. So who writes a file knows what
stands in it. What differs is found when the next line is written, and at the end (`restored`); it is taken
back, so that nobody reads it.

In a run that was made small (bench.results.thin) a long list of numbers is packed, to the last bit of each
number: an object with one string takes the place of the list, and becomes the list again before the line is
read.
"""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from bench.results import reading
from bench.results.records import CaseResult
from bench.results.store import write_atomically
from kernels.errors import InputError, system_words

# A sentence a damaged line, once: on standard error, in the window in its banner.
log = logging.getLogger("kernelscope.records")
_SUM = b',"sum":"'
_SUM_NBYTES = len(_SUM) + len('00000000"}')
_DIGITS = frozenset(b"0123456789abcdef")
_NAMED = 5  # lines named in a sentence
# What stands in place of a packed list; no text of a record can hold it, where quotes are escaped.
_PACKED = re.compile(rb'\{"packed":"([^"\\]*)"\}')
_PACKED_FROM = 16  # numbers, which are longer as they stand
_MOST_NUMBERS = 4_000_000  # of a line
_TENTHS, _FLOATS = b"t", b"f"  # whole tenths, as times are rounded to, above their least; anything else
_KINDS = {(_TENTHS, width) for width in range(1, 8)} | {(_FLOATS, 8)}
_HEAD = struct.Struct("<cBqI")  # which of the two, bytes of each, the least, how many


M = TypeVar("M", bound=CaseResult[Any])


def line_of(measurement: object) -> bytes:
    """The line of a record, with its checksum."""
    data: bytes = msgspec.json.encode(measurement)
    return data[:-1] + b',"sum":"%08x"}\n' % zlib.crc32(data)


def packed_line_of(measurement: object) -> bytes:
    """The same with its long lists of numbers packed."""
    return line_of(_shorter(msgspec.to_builtins(measurement)))


def _shorter(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shorter(item) for name, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if len(value) >= _PACKED_FROM and all(type(item) is float and math.isfinite(item) for item in value):
        return {"packed": _packed(value).decode()}
    return [_shorter(item) for item in value]


def _packed(values: Sequence[float]) -> bytes:
    """The bytes of all numbers, the first of each, then the second of each, and so on, as zlib packs them."""
    plain = struct.pack(f"<{len(values)}d", *values)
    tenths = [round(value * 10) if abs(value) < 2**49 else 0 for value in values]
    if struct.pack(f"<{len(values)}d", *(number / 10 for number in tenths)) == plain:  # to the last bit
        kind, low = _TENTHS, min(tenths)
        width = max(1, (max(tenths) - low).bit_length() + 7 >> 3)
        raw = b"".join((number - low).to_bytes(width, "little") for number in tenths)
    else:
        kind, low, width, raw = _FLOATS, 0, 8, plain
    body = zlib.compress(b"".join(raw[place::width] for place in range(width)), 9)
    return base64.b85encode(_HEAD.pack(kind, width, low, len(values)) + body)


def whole(line: bytes) -> bytes:
    """A line with its packed lists as lists. Raises Unreadable where one is broken."""
    left = _MOST_NUMBERS

    def numbers(found: re.Match[bytes]) -> bytes:
        nonlocal left
        try:
            data = base64.b85decode(found[1])
            kind, width, low, count = _HEAD.unpack_from(data)
            left -= count
            if count < 1 or left < 0 or (kind, width) not in _KINDS:
                raise ValueError("it is of no such kind")
            body = zlib.decompressobj().decompress(data[_HEAD.size :], width * count + 1)
            if len(body) != width * count:
                raise ValueError("its length is another")
            raw = bytearray(len(body))
            for place in range(width):
                raw[place::width] = body[place * count : (place + 1) * count]
            if kind == _FLOATS:
                return msgspec.json.encode(struct.unpack(f"<{count}d", raw))
            each = (raw[start : start + width] for start in range(0, len(raw), width))
            return msgspec.json.encode([(low + int.from_bytes(number, "little")) / 10 for number in each])
        except (ValueError, struct.error, zlib.error, OverflowError) as error:
            raise reading.Unreadable("a packed list in it is broken") from error

    return _PACKED.sub(numbers, line) if b'{"packed":"' in line else line


def sound(line: bytes) -> bool | None:
    """Whether a line, without its newline, is what was written; None where it has no checksum."""
    body, end = line[:-_SUM_NBYTES], line[-_SUM_NBYTES:]
    said = end[len(_SUM) : -2]
    if not (end.startswith(_SUM) and end.endswith(b'"}') and len(said) == 8 and _DIGITS.issuperset(said)):
        return None
    return zlib.crc32(b"}", zlib.crc32(body)) == int(said, 16)


class ResultsFile(Generic[M]):
    """The measurements of type `line` in the file `path`, which need not be there yet. After `read`: the
    numbers of the lines that were `damaged`, and how many had no checksum (`unchecked`)."""

    def __init__(self, path: Path, line: type[M]) -> None:
        self.path = path
        self.damaged: tuple[int, ...] = ()
        self.unchecked = 0
        self._decoder = msgspec.json.Decoder(line)
        self._told: tuple[int, ...] = ()
        self._held: bytearray | None = None  # the whole lines; None: not yet read
        self._state: tuple[int, ...] = ()  # of the file, when they were last compared or written

    def begin(self) -> None:
        """From now on only this object is to write the file. Raises InputError where it cannot be read."""
        self._state, self._held = self._read_whole()

    def restored(self) -> str:
        """Take back what others did to the file since `begin`, or since the first line was written. Returns
        what that was, in words; "" if nothing. Raises InputError where it cannot be taken back."""
        if self._held is None:
            return ""
        try:
            self._state, found = self._read_whole()
        except InputError:
            found = None
        if found == self._held:
            return ""
        if found is None:
            what = "was replaced by what cannot be read"
        elif found.startswith(self._held):
            more = found.count(b"\n", len(self._held))
            what = f"got {more} line{'s' if more > 1 else ''} that this program did not write"
        else:
            what = "no longer held what this program wrote"
        write_atomically(self.path, bytes(self._held))
        self._state = _state(self.path)
        return f"{self.path} {what}. It was restored"

    def append(self, measurement: M) -> None:
        """Write one measurement and sync it. On failure nothing of it stays; raises InputError, also where
        somebody else has changed the file since the last line, which is then restored."""
        line = line_of(measurement)
        if self._held is None:
            self.begin()
        elif self._state != _state(self.path) and (told := self.restored()):
            raise InputError(
                f"{told}, and the run ends. It happened while {measurement.case.words} was measured, or what "
                "takes turns with it: a kernel of a user's that writes there cannot be trusted"
            )
        assert self._held is not None
        try:
            with io.FileIO(self.path, "a+") as file:
                size = os.fstat(file.fileno()).st_size
                start = _whole_lines(file, size)
                if start < size:
                    file.truncate(start)
                try:
                    view = memoryview(line)
                    while view:
                        view = view[file.write(view) :]
                    os.fsync(file.fileno())
                except OSError:
                    with contextlib.suppress(OSError):
                        file.truncate(start)
                    raise
            self._held += line
            self._state = _state(self.path)
        except OSError as error:
            raise InputError(
                f"cannot write {self.path}: {system_words(error)}; what was measured before is kept"
            ) from error

    def _read_whole(self) -> tuple[tuple[int, ...], bytearray]:
        """The state of the file, and its whole lines. Raises InputError."""
        state = _state(self.path)
        try:
            if state and not stat.S_ISREG(state[0]):
                raise InputError(f"cannot write {self.path}: it is no file; name another folder")
            found = bytearray(self.path.read_bytes() if state else b"")
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {system_words(error)}") from error
        del found[found.rfind(b"\n") + 1 :]
        return state, found

    def read(self, tell: bool = True) -> dict[str, M]:
        """By the key of its case the last measurement of each, in the order in which they were taken. A line
        that is damaged is left out, so that its case counts as not measured, and told, once, unless told not
        to; one that was cut short at the end is left out. Raises InputError where the file cannot be read."""
        found: dict[str, M] = {}
        damaged: list[int] = []
        reason, self.unchecked = "", 0
        try:
            with reading.opened(self.path, reading.RESULTS_NBYTES) as stream:
                for number, line in reading.lines(stream):
                    if line is not None and not line.strip():
                        continue
                    try:
                        measurement, checked = self._read(line)
                    except reading.Unreadable as error:
                        damaged.append(number)
                        reason = reason or str(error)
                        continue
                    self.unchecked += not checked
                    key = measurement.case.key
                    found.pop(key, None)
                    found[key] = measurement
        except FileNotFoundError:
            return {}
        except (reading.Unreadable, OSError) as error:
            raise InputError(f"cannot read {self.path}: {reading.words(error)}") from error
        self.damaged = tuple(damaged)
        if tell and damaged and self._told != self.damaged:
            self._told = self.damaged
            log.warning("%s", _sentence(self.path, damaged, reason))
        return found

    def _read(self, line: bytes | None) -> tuple[M, bool]:
        if line is None:
            raise reading.Unreadable("it is longer than any measurement")
        checked = sound(line)
        if checked is False:
            raise reading.Unreadable("its checksum does not fit")
        measurement = reading.decoded(whole(line), self._decoder)
        if min(getattr(measurement, "samples_ns", ()), default=1) <= 0:
            raise reading.Unreadable("a sample in it is no time")
        return measurement, checked is True


def _sentence(path: Path, damaged: list[int], reason: str) -> str:
    few = ", ".join(map(str, damaged[:_NAMED])) + (", …" if len(damaged) > _NAMED else "")
    if len(damaged) == 1:
        return (
            f"line {few} of {path} is damaged and was left out ({reason}): --resume measures its case again"
        )
    return (
        f"{len(damaged):,} lines of {path} are damaged and were left out (lines {few}; the first: {reason}): "
        "--resume measures their cases again"
    )


def _state(path: Path) -> tuple[int, ...]:
    """What changes whenever somebody writes a file or puts another one in its place; () where there is
    none."""
    try:
        found = path.lstat()
    except OSError:
        return ()
    return found.st_mode, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _whole_lines(file: io.FileIO, size: int) -> int:
    """The size up to and including the last newline."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
