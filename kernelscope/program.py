"""Where the program lies, how it is started in a process of its own, and which version it is.

In a wheel the program is data of this package, in `_program`; in a checkout it is the folder around this one.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def root() -> Path:
    """The folder that holds main.py."""
    packed = _HERE / "_program"
    return packed if packed.is_dir() else _HERE.parent


def command(*arguments: str) -> list[str]:
    """The words that start the program in a process of its own, with these arguments of its command line.
    They work from any current folder."""
    return [sys.executable, str(root() / "main.py"), *arguments]


def version() -> str:
    """As `kernelscope --version` says it: "0.1.0", with the commit where it is known."""
    words: str = runpy.run_path(str(root() / "bench/words/version.py"))["described"]()
    return words
