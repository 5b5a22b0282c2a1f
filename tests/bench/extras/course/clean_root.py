"""The autograder's zip as Gradescope uses it, in an empty Debian: `python -m
tests.bench.extras.course.clean_root`, as root, some minutes.

Its two scripts are run there for a hand-in that is right, one that is wrong and one that is nothing. Needs
`debootstrap`, and what `apt` and `pip` reach. Exit codes: 0 each got its points; 1 one did not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from bench.extras.course import autograder
from tests import container
from tests.bench.extras.course import classroom

# What each does, and the points that it has to get at least and at most.
HAND_INS = {"right": (10.0, 15.0), "wrong": (0.0, 0.0), "nothing": (0.0, 0.0)}


def laid(folder: Path, base: Path) -> None:
    """The zip unpacked as Gradescope does it."""
    (base / "assignment.toml").write_text(classroom.assignment(["softmax"], seconds=60, budget=0.1))
    source = folder / "autograder" / "source"
    with zipfile.ZipFile(autograder.write(base, base / "autograder.zip")) as held:
        held.extractall(source)
    for name in autograder.SCRIPTS[:2]:
        (source / name).chmod(0o755)
    shutil.copy(source / "run_autograder", folder / "autograder" / "run_autograder")
    for name in ("submission", "results"):
        (folder / "autograder" / name).mkdir()


def graded(root: container.Root, deed: str) -> float:
    """The score of one hand-in. Raises OSError where there is none."""
    submission, results = (root.folder / "autograder" / name for name in ("submission", "results"))
    for path in (submission, results):
        shutil.rmtree(path)
        path.mkdir()
    if deed != "nothing":
        (submission / "90_mine.py").write_text(classroom.kernel("softmax", deed))
    root.run(["/autograder/run_autograder"])
    told = json.loads((results / "results.json").read_text("utf-8"))
    print(f"{deed}: {told.get('score')}, {[test['output'] for test in told.get('tests', [])]}", flush=True)
    if "tests" not in told:
        raise OSError(f"{deed} was not graded: {told}")
    return float(told["score"])


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.extras.course.clean_root",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument("--mirror", default="", help="where debootstrap fetches packages (default: its own)")
    parser.add_argument("--base", type=Path, metavar="DIR", help="a system that debootstrap made before")
    asked = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as kept:
        folder, base = Path(kept) / "root", Path(kept) / "assignment"
        base.mkdir()
        container.begun(folder, asked.base, asked.mirror)
        laid(folder, base)
        reached = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        root = container.Root(folder, reached)
        if root.run(["/autograder/source/setup.sh"]):
            print("setup.sh failed")
            return 1
        failed = 0
        for deed, (least, most) in HAND_INS.items():
            score = graded(root, deed)
            if not least <= score <= most:
                print(f"{deed} got {score:g} points")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
