"""Where runs are kept unless another folder is named, and what a new one is called."""

from __future__ import annotations

import datetime
from pathlib import Path

RUNS = Path("runs")


def new_folder(runs: Path, stamp: datetime.datetime, name: str) -> Path:
    """A path in `runs` that nothing has yet, by the time and the name."""
    base = runs / f"{stamp:%Y%m%d-%H%M%S}-{name}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path
