"""Versions: this program's, read where it is written, and those of installed packages."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def version() -> str:
    """From the pyproject.toml that lies with the program ("" where there is none)."""
    try:
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    return match[1] if match else ""


def of_package(name: str) -> str:
    """The version that is installed, "" where none is."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
