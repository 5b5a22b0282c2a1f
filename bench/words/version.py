"""Versions: this program's, read where it is written, and those of installed packages.

It needs no other module of the program: what builds a package, and what starts the program, run it as a file.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
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


def requirements(extra: str = "") -> list[str]:
    """What pyproject.toml says that is needed, or that an extra adds, as pip takes it: "numpy>=2.2"."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return found


def commit() -> str:
    """The commit that this is, in short, with "+" where files have changed since; "" where nobody knows. A
    package has a file that tells it; a checkout is asked."""
    try:
        return (ROOT / "commit.txt").read_text(encoding="utf-8").strip()
    except OSError:
        pass
    if not (ROOT / ".git").exists():
        return ""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def described() -> str:
    """Version and commit: "0.1.0 (1a2b3c4d)"."""
    known = commit()
    return f"{version()} ({known})" if known else version()


def of_package(name: str) -> str:
    """The version that is installed, "" where none is."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
