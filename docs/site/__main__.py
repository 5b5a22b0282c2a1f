"""The documents as a site: `python -m docs.site --out DIR`, in the environment that `make docs` sets up.

Exit codes: 0 it is built, and every link holds; 1 it is not, for the reasons that are printed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from docs.site import links, pages


def main(given: Sequence[str] | None = None) -> int:
    from sphinx.cmd.build import build_main

    parser = argparse.ArgumentParser(prog="python -m docs.site", description="The documents as a site.")
    parser.add_argument("--out", type=Path, default=Path("site"), metavar="DIR", help="where it goes")
    out = parser.parse_args(given).out.absolute()
    with tempfile.TemporaryDirectory() as folder:
        tree, built, kept = (Path(folder) / name for name in ("tree", "built", "kept"))
        pages.lay_out(tree)
        here = str(pages.ROOT / "docs/site")
        words = ["-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", here, "-d", str(kept)]
        if build_main([*words, str(tree), str(built)]):
            return 1
        found = list(links.faults(built))
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        if found:
            return 1
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(built, out)
    print(out / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
