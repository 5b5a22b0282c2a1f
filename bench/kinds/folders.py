"""What lies in a folder, whichever of the three it is: a comparison's run, a ladder or a profile."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.kinds.summaries import kind_of
from bench.ladder.store import LadderFolder
from bench.profile.store import ProfileFolder
from bench.results.inside import files
from bench.results.store import RunFolder
from kernels.errors import InputError

Folder = RunFolder | LadderFolder | ProfileFolder


def open_folder(path: Path) -> Folder:
    """Raises InputError where there is none of the three, or it is broken or of a newer version."""
    match kind_of(path):
        case "ladder":
            return LadderFolder.open(path)
        case "profile":
            return ProfileFolder.open(path)
        case _:
            return RunFolder.open(path)


def copy(source: Path, target: Path) -> Path:
    """Copy a run, ladder or profile to the new or empty folder `target`, files in the making left out.

    Raises InputError where the source is none or has links that lead out of it, the target holds something
    or cannot be written.
    """
    held = open_folder(source)
    target = Path(target)
    try:
        if target.resolve().is_relative_to(held.path.resolve()):
            raise InputError(f"{target} lies in {source} itself; name a folder beside it")
        if target.exists() and any(target.iterdir()):
            raise InputError(f"{target} holds something already; name an empty or a new folder")
        found = list(files(held.path))  # all of it is looked at before any of it is copied
        target.mkdir(parents=True, exist_ok=True)
        for path, name in found:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
    except OSError as error:
        words = (error.strerror or "").lower() or "some of its files could not be read or written"
        raise InputError(f"cannot copy {source} to {target}: {words}") from error
    return target
