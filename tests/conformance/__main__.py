"""`python -m tests.conformance`: run ONNX's own tests and print what came of them; --write FILE keeps it."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from tests.conformance import report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="where to, instead of standard output")
    wanted = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose
        text = report.text()
    if wanted.write is None:
        sys.stdout.write(text)
    else:
        wanted.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
