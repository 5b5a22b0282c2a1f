"""A run of any kind made small enough to ship or to send, with every figure of its tables as it was.

All samples are kept, to the last bit, and packed (bench.results.results_file): whoever reads the copy derives
from them what was derived before, byte for byte, by today's rule or a later one. What else goes, step by step
until it fits, is each kind's own, in the module that its descriptor names: `GRADES`; `lines(folder,
measurements, target, grade)`, which returns the measurements with less in them and writes their other files;
and what would make less of it (`LESS`). A kind whose job names more files than folders of kernels has its own
`public(header)`. What is gone is told in the facts or notes of its case. Where the samples alone do not fit,
nothing is written.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import msgspec

from bench.kinds import note
from bench.kinds.folders import open_folder
from bench.kinds.public import public
from bench.results.results_file import packed_line_of
from bench.results.store import RESULTS_FILE, write_atomically
from kernels.errors import InputError

MOST_NBYTES = 300_000


def thin(source: Path, target: Path, most_nbytes: int = MOST_NBYTES) -> int:
    """Write what lies in `source`, thinned as little as fits `most_nbytes`, to the new folder `target`; its
    size in bytes. Raises InputError where the source is none, the target exists or nothing
    fits."""
    held = open_folder(source)
    measurements = held.measurements()
    if not measurements:
        raise InputError(f"{source} holds no measurement yet, so there is nothing to thin")
    if target.exists():
        raise InputError(f"{target} exists already; name a new folder")
    kind = held.kind.part("thin")
    header = getattr(kind, "public", public)(held.header)
    size = 0
    for grade in kind.GRADES:
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as name:
            made = Path(name) / "thinned"
            lines = map(packed_line_of, kind.lines(held, measurements, made, grade))
            write_atomically(made / RESULTS_FILE, b"".join(lines))
            write_atomically(made / held.kind.file, msgspec.json.encode(header))
            size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
            if size <= most_nbytes:
                try:
                    shutil.copytree(made, target)
                    if (told := note.read(source)) != note.Note():
                        note.write(target, told)
                except OSError as error:
                    raise InputError(f"cannot write {target}: {error.strerror or error}") from error
                return size
    raise InputError(
        f"{source} thinned takes {size:,} bytes at the least, above {most_nbytes:,}; {kind.LESS}"
    )
