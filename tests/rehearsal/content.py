"""What a rehearsal was of: a hash of the tree's files, the same in a clone and in a copy without .git.

Left out are docs/results and docs/images (what a rehearsal writes, and pictures of what it measured, lie
there) and what is hidden at the top of the tree (.git, .venv, the settings of tools), in both ways of listing
alike.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
RESULTS = PurePosixPath("docs/results")
LEFT_OUT = (RESULTS, PurePosixPath("docs/images"))


def content_hash(root: Path = ROOT) -> str:
    """Hex, of names and contents of the files that count."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines(root)).encode()).hexdigest()


def lines(root: Path = ROOT) -> list[str]:
    """What the hash is of: the hash of each file that counts, and its name."""
    return [f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}" for name in files(root)]


def files(root: Path = ROOT) -> list[str]:
    """Those that count, in the order of their names: what git tracks, else what .gitignore leaves."""
    listed = _tracked(root)
    found = _walked(root) if listed is None else listed
    return sorted(name for name in found if _counts(name) and (root / name).is_file())


def _counts(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.parts[0].startswith(".") and not any(folder in path.parents for folder in LEFT_OUT)


def _tracked(root: Path) -> list[str] | None:
    """None where git does not answer, or `root` is not the top of what it tracks."""
    if not (root / ".git").exists():
        return None  # a copy may lie inside of another's clone
    try:
        # With what is there and not yet tracked: an index may be older than the files.
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        told = subprocess.run(words, cwd=root, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return sorted({os.fsdecode(name) for name in told.split(b"\0") if name})


def _walked(root: Path) -> Iterator[str]:
    patterns = _ignored(root)
    for folder, folders, names in os.walk(root):
        at = Path(folder).relative_to(root)
        # A link to a folder is none of ours: git would track the link, and we have none.
        folders[:] = [
            name
            for name in folders
            if not _matches(at / name, patterns, True) and not (root / at / name).is_symlink()
        ]
        yield from ((at / name).as_posix() for name in names if not _matches(at / name, patterns, False))


def _ignored(root: Path) -> list[str]:
    try:
        lines = (root / ".gitignore").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _matches(path: Path, patterns: list[str], is_folder: bool) -> bool:
    """By the rules of .gitignore that ours uses: NAME anywhere, /NAME at the top, NAME/ a folder alone."""
    for pattern in patterns:
        if pattern.endswith("/") and not is_folder:
            continue
        bare = pattern.rstrip("/")
        if bare.startswith("/") or "/" in bare:
            if fnmatch.fnmatch(path.as_posix(), bare.lstrip("/")):
                return True
        elif fnmatch.fnmatch(path.name, bare):
            return True
    return False
