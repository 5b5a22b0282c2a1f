"""The command `kernelscope`, and `python -m kernelscope`: main.py, as Python itself would run it."""

from __future__ import annotations

import runpy
import sys

from kernelscope import program


def main() -> None:
    """Ends the process with the command line's exit code."""
    root = program.root()
    # What the program imports lies there. The first entry is the folder of the script, or the current one,
    # whose files are not meant; -P has none.
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(root)]
    sys.argv[0] = str(root / "main.py")
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
