"""Modules that are found by their folders and named nowhere: kinds of run, their commands, and what the
satellites in `bench/extras` add."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType


def modules(pattern: str) -> list[ModuleType]:
    """Those of `bench` whose files fit, by name: "*/kind.py", "extras/*/command.py"."""
    import bench

    names = {
        ".".join(("bench", *path.relative_to(place).with_suffix("").parts))
        for place in bench.__path__
        for path in Path(place).glob(pattern)
    }
    return [importlib.import_module(name) for name in sorted(names)]
