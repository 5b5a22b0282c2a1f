"""A run, a ladder or a profile made small enough to ship or to send, with every chart and table as it was.

Of the samples those about the median are kept (bench.thin.samples); what else goes, step by step until it
fits, is each kind's own: `GRADES`, `write` and what would make less of it (`LESS`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.kinds.folders import open_folder
from bench.ladder.store import LadderFolder
from bench.profile.store import ProfileFolder
from bench.results.store import RunFolder
from bench.thin import comparison, ladder, profile
from bench.thin.samples import keep
from kernels.errors import InputError

__all__ = ["MOST_NBYTES", "keep", "thin"]

MOST_NBYTES = 300_000
_KINDS: dict[type, tuple[Sequence[Any], Callable[..., None], str]] = {
    RunFolder: (comparison.GRADES, comparison.write, comparison.LESS),
    LadderFolder: (ladder.GRADES, ladder.write, ladder.LESS),
    ProfileFolder: (profile.GRADES, profile.write, profile.LESS),
}


def thin(source: Path, target: Path, most_nbytes: int = MOST_NBYTES) -> int:
    """Write what lies in `source`, thinned as little as fits `most_nbytes`, to the new folder `target`; its
    size in bytes. Raises InputError where the source is none of the three, the target exists or nothing
    fits."""
    held = open_folder(source)
    measurements = held.measurements()
    if not measurements:
        raise InputError(f"{source} holds no measurement yet, so there is nothing to thin")
    if target.exists():
        raise InputError(f"{target} exists already; name a new folder")
    grades, write, less = _KINDS[type(held)]
    size = 0
    for grade in grades:
        with tempfile.TemporaryDirectory(prefix="kernelscope-") as name:
            made = Path(name) / "thinned"
            write(held, measurements, made, grade)
            size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
            if size <= most_nbytes:
                try:
                    shutil.copytree(made, target)
                except OSError as error:
                    raise InputError(f"cannot write {target}: {error.strerror or error}") from error
                return size
    raise InputError(f"{source} thinned takes {size:,} bytes at the least, above {most_nbytes:,}; {less}")
