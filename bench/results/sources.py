"""Which kernel sources some folders contain, and when each was last written; `--watch` compares these."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

SOURCES = (".cu", ".cuh", ".py")

Stamps = dict[Path, tuple[int, int]]


def stamps(folders: Iterable[str | Path]) -> Stamps:
    """When each source file of the folders was last written, and its size."""
    found: Stamps = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in SOURCES and "__pycache__" not in path.parts:
                try:
                    stat = path.stat()
                except OSError:  # an editor that replaces the file on saving
                    continue
                found[path.resolve()] = stat.st_mtime_ns, stat.st_size
    return found
