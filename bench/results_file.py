"""`results.jsonl`: measurements as they come, a line each, synced before they are shown.

A cut at any moment loses one line: what a kill left without its newline is passed over when it is read, and
goes when the next one is written.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kernels.errors import InputError


class Settled(Protocol):
    """A measurement: of a case, which has a key."""

    @property
    def case(self) -> Any: ...


M = TypeVar("M", bound=Settled)


class ResultsFile(Generic[M]):
    """The measurements of type `line` in the file `path`, which need not be there yet."""

    def __init__(self, path: Path, line: type[M]) -> None:
        self.path = path
        self._decoder = msgspec.json.Decoder(line)

    def append(self, measurement: M) -> None:
        """Write one measurement and sync it. On failure nothing of it stays; raises InputError."""
        line = msgspec.json.encode(measurement) + b"\n"
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
        except OSError as error:
            raise InputError(
                f"cannot write {self.path}: {_words(error)}; what was measured before is kept"
            ) from error

    def read(self) -> dict[str, M]:
        """By the key of its case the last measurement of each, in the order in which they were taken. Raises
        InputError on a broken line, naming it; one that was cut short at the end is left out."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {_words(error)}") from error
        *lines, _ = data.split(b"\n")  # what follows the last newline: nothing, or a line cut short
        found: dict[str, M] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                measurement = self._decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(
                    f"line {number} of {self.path} is not a measurement ({error}); remove it to go on"
                ) from error
            key = measurement.case.key
            found.pop(key, None)
            found[key] = measurement
        return found


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


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
