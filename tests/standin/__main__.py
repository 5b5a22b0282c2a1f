"""`python -m tests.standin [--] main.py …`: any command of the program with the stand-in GPU."""

from __future__ import annotations

import os
import sys

from tests.standin import environment


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        sys.exit("python -m tests.standin [--] main.py …: what is to run with the stand-in GPU?")
    os.execve(sys.executable, [sys.executable, *words], environment())


if __name__ == "__main__":
    main()
