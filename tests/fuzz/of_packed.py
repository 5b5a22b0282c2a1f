"""Changed arrays and events, as folders of runs and profiles hold them."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

from bench.measure.images import predictions
from bench.results import gallery, npz, reading
from bench.results.event_files import events_in
from bench.run.kinds.profile import KIND as PROFILE
from tests.fuzz import changes
from tests.fuzz.of_folders import decoded, honest, planted, replaced
from tests.fuzz.ours import ours


@cache
def _arrays() -> bytes:
    made = io.BytesIO()
    count = 6
    np.savez_compressed(
        made,
        label=np.arange(count),
        predicted=np.arange(count),
        confidence=np.linspace(0, 1, count, dtype=np.float32),
        top5=np.zeros((count, 5), np.int64),
        margin=np.ones(count, np.float32),
        ns=np.ones(count),
        pixels=np.zeros((count, 2, 2), np.uint8),
        classes=np.array([b"a", b"b"]),
    )
    return made.getvalue()


def packed(folder: Path, drawn: random.Random) -> int:
    """npz files: the archive's own bytes changed, or an array's header, in an archive that is sound."""
    path = folder / "arrays.npz"
    path.write_bytes(
        changes.turned(_arrays(), drawn, len(_arrays())) if drawn.random() < 0.4 else _headers(drawn)
    )
    with ours(reading.Unreadable):
        npz.arrays(path, most=64 << 20)
    with ours(reading.Unreadable):
        predictions.load(path)
    with ours():
        gallery.load_images(path)
    with ours():
        gallery.load_answers(path)
    return 1


def _headers(drawn: random.Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_arrays())) as honest, zipfile.ZipFile(made, "w") as archive:
        for name in honest.namelist():
            data = honest.read(name)
            if drawn.random() < 0.4:
                data = _header(data, drawn)
            archive.writestr(name, data)
    return made.getvalue()


def _header(data: bytes, drawn: random.Random) -> bytes:
    if drawn.random() < 0.3:
        return changes.turned(data, drawn, 120)
    size = int.from_bytes(data[8:10], "little")
    held = {
        "descr": drawn.choice(["'<f4'", "'|O'", "'<i8'", "'|S9'", "[('a','<f4')]", "'<M8[s]'", "1", "'V0'"]),
        "fortran_order": drawn.choice(["False", "True", "1", "None"]),
        "shape": drawn.choice(
            [
                "(6,)",
                "()",
                "(-1,)",
                "(6,6)",
                "(2**62,)",
                f"({2**62},4)",
                "(0,)",
                "(" * 90 + ")" * 90,
                "(1.5,)",
            ]
        ),
    }
    if drawn.random() < 0.2:
        held.pop(drawn.choice(list(held)))
    text = "{" + ", ".join(f"'{key}': {value}" for key, value in held.items()) + ", }\n"
    new = text.encode()
    length = len(new) if drawn.random() < 0.8 else drawn.randrange(1 << 16)
    return data[:8] + length.to_bytes(2, "little") + new + data[10 + size :]


def events(folder: Path, drawn: random.Random) -> int:
    """A profile's events: the gzip's bytes changed, or lines in one that is sound."""
    path = planted("profile", folder)
    name = next(name for name in honest("profile", folder) if name.endswith(".gz"))
    held = honest("profile", folder)[name]
    count = 1
    if drawn.random() < 0.3:
        data = changes.turned(held, drawn, len(held))
    else:
        every = gzip.decompress(held).splitlines()
        at = {drawn.randrange(len(every)) for _ in range(8)}
        count = len(at)
        made = [
            changes.written(changes.changed(decoded(line), drawn), drawn) if i in at else line
            for i, line in enumerate(every)
        ]
        data = gzip.compress(b"\n".join(made) + b"\n", 1)
    with replaced(path / name, data), ours():
        profile = PROFILE.open(path)
        for made in profile.measurements():
            if made.file == name:
                events_in(profile.path, made)
    return count
