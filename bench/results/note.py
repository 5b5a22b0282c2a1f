"""What the user calls a run and has noted of it: a file in the run's folder, so that it goes where the run
goes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from bench.results.kinds import any_kind, meant
from bench.results.records import Record
from bench.results.store import NOTE_FILE, read_file, write_atomically
from bench.words import plain
from kernels.errors import InputError, system_words

SCHEMA = 1
NAME_CHARACTERS, TEXT_CHARACTERS = 60, 4000


class Note(Record, frozen=True):
    """name: what the run is called in lists and legends ("": by its folder); text: whatever was noted."""

    name: str = ""
    text: str = ""
    schema: int = SCHEMA


def read(folder: Path) -> Note:
    """That of a run; an empty one where there is none, or none that can be read: a run is not hidden by its
    note, which may come from anybody."""
    with contextlib.suppress(InputError, OSError):
        return _within(read_file(Path(folder) / NOTE_FILE, Note, SCHEMA))
    return Note()


def write(folder: Path, note: Note) -> Note:
    """Keep a note in a run's folder, in place of the one before; an empty one takes it away. What was kept.
    Raises InputError where the folder holds no run or cannot be written."""
    folder = Path(folder)
    if meant(folder) is None:
        raise InputError(f"{folder} holds no run to name; name the folder of {any_kind()}")
    note = _within(note)
    try:
        if note == Note():
            (folder / NOTE_FILE).unlink(missing_ok=True)
        else:
            write_atomically(folder / NOTE_FILE, msgspec.json.format(msgspec.json.encode(note), indent=2))
    except OSError as error:
        raise InputError(f"cannot write {folder / NOTE_FILE}: {system_words(error)}") from error
    return note


def _within(note: Note) -> Note:
    """A name of one line; nothing longer than a list and a legend can show."""
    name = " ".join(plain.printable(note.name).split())[:NAME_CHARACTERS]
    text = plain.printable(note.text).strip()[:TEXT_CHARACTERS]
    return msgspec.structs.replace(note, name=name, text=text)
