"""The action with the program itself: `python -m tests.action [NAME...]`, some minutes.

In empty folders it installs what the action installs, makes a repository with a kernel, and runs the
steps for each pull request of PULL_REQUESTS. Exit codes: 0 each ended as it has to; 1 one did not. On a
machine that other programs use nothing may be decided about a slower kernel: this is told, and is no
failure here. A kernel that does many times the work has to fail the job on any machine: there the program
is a copy that does not look at what others use (UNSEEN).
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.action import runner

COMPARE = (
    "compare lenet5-digits --batch 16 --images 16 --backend engine-cpu,ort-cpu --kernels my_kernels"
    " --rung conv1=mine --no-layer-pass --budget 3"
)
LADDER = (
    "ladder conv --device cpu --model lenet5-digits --node conv1 --batch 16 --kernels my_kernels --rung mine"
    " --budget 3"
)
# What is replaced in the kernel that `ladder --new` writes.
EQUAL = ("CHANNELS = 128", "CHANNELS = 128  # as before")


def repeated(times: int) -> tuple[str, str]:
    """The kernel does its work so many times."""
    again = f"    def again():\n        for _ in range({times}):\n            run()\n\n    return again\n"
    return "    return run\n", again


NOTHING = ("", "")
WRONG = ("if p.bias:", "if p.bias and p.n < 0:")


# In a copy of the program, by file: nobody else uses the machine, and no round differs from another. What is
# left is the interval, which such a factor is far from.
UNSEEN = (
    ("engine/machine/load.py", "others_s=after.busy_s - before.busy_s - ran / 1e9", "others_s=0.0"),
    ("engine/machine/load.py", "stolen_s=after.stolen_s - before.stolen_s", "stolen_s=0.0"),
    ("bench/results/stats/__init__.py", "UNQUIET_WIDTH = 0.05", "UNQUIET_WIDTH = 1e9"),
)


class PullRequest(NamedTuple):
    """change: of the kernel; ends: the verdicts that are as it has to be; before: the change of the kernel in
    the base; unseen: by the copy of the program that sees nobody else."""

    name: str
    command: str
    change: tuple[str, str]
    ends: tuple[str, ...]
    before: tuple[str, str] = NOTHING
    unseen: bool = False


PULL_REQUESTS = (
    PullRequest("equal", COMPARE, EQUAL, ("ok", "undecided")),
    PullRequest("slower", COMPARE, repeated(3), ("failed", "undecided")),
    PullRequest("wrong", COMPARE, WRONG, ("failed",)),
    PullRequest("equal-ladder", LADDER, EQUAL, ("ok", "undecided")),
    PullRequest("slower-ladder", LADDER, repeated(3), ("failed", "undecided")),
    PullRequest("wrong-ladder", LADDER, WRONG, ("failed",)),
    # Far apart, for intervals on a busy machine are wide; and the base is far from the reference, so that
    # nothing hangs on which of the two is faster.
    PullRequest("much-slower", COMPARE, repeated(100), ("failed",), repeated(4), unseen=True),
    PullRequest("much-slower-ladder", LADDER, repeated(100), ("failed",), unseen=True),
)


def tried(asked: PullRequest, kernel: str, action: Path, install: runner.Job, at: Path) -> runner.Job:
    """The action on a repository whose pull request changes the kernel so."""
    name = "my_kernels/90_mine.py"
    base = runner.repository(
        at / "work", {name: replaced(kernel, *asked.before)}, {name: replaced(kernel, *asked.change)}
    )
    temporary = at / "temporary"
    results = temporary / "kernelscope-results"
    results.mkdir(parents=True)
    installed = Path(install.outputs["install"]["results"]).with_name("kernelscope")
    (temporary / "kernelscope").symlink_to(installed)
    done = {"install": {"results": str(results)}}
    return runner.run(at / "work", temporary, {"command": asked.command}, base, action, done)


def replaced(text: str, old: str, new: str) -> str:
    """Raises ValueError where it is not there once: nothing would have been changed."""
    if old and text.count(old) != 1:
        raise ValueError(f"{old!r} is no longer there once")
    return text.replace(old, new) if old else text


def sees_nobody(program: Path) -> None:
    """Of a copy of the program: see UNSEEN."""
    for name, old, new in UNSEEN:
        file = program / name
        file.write_text(replaced(file.read_text("utf-8"), old, new), encoding="utf-8")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.action", description=(__doc__ or "").partition("\n")[0]
    )
    names = [asked.name for asked in PULL_REQUESTS]
    parser.add_argument("name", nargs="*", help=f"which pull requests (default: all): {', '.join(names)}")
    parser.add_argument(
        "--summaries", type=Path, metavar="DIR", help="keep what each wrote into the job's summary"
    )
    asked = parser.parse_args(given)
    if unknown := set(asked.name) - set(names):
        parser.error(f"there is no pull request {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    with tempfile.TemporaryDirectory() as folder:
        root, started = Path(folder), time.monotonic()
        action = root / "action"
        alone = root / "action that sees nobody else"
        for copy in (action, alone):
            runner.copy_of_program(copy)
        sees_nobody(alone)
        (root / "empty").mkdir()
        reached = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        job = runner.run(
            root / "empty",
            root / "temporary",
            {"extra": "cpu"},
            action_path=action,
            environment=reached,
            only=("install",),
        )
        print(f"install: exit code {job.code}, {time.monotonic() - started:.0f} s")
        if job.code:
            print(job.log)
            return 1
        python = root / "temporary/kernelscope/bin/python"
        words = f"{python} {action}/main.py ladder --new conv my_kernels --device cpu"
        subprocess.run(shlex.split(words), cwd=root, check=True, capture_output=True)
        kernel = (root / "my_kernels/90_mine.py").read_text("utf-8")
        wrong = 0
        for one in PULL_REQUESTS:
            if asked.name and one.name not in asked.name:
                continue
            (root / one.name).mkdir()
            done = tried(one, kernel, alone if one.unseen else action, job, root / one.name)
            well = done.verdict in one.ends and bool(done.code) == (done.verdict == "failed")
            said = f"{done.verdict or 'no verdict'}, exit code {done.code}"
            print(f"{one.name}: {said}{'' if well else ', and has to be ' + ' or '.join(one.ends)}")
            if not well:
                print(done.log)
                wrong += 1
            if asked.summaries:
                asked.summaries.mkdir(parents=True, exist_ok=True)
                (asked.summaries / f"{one.name}.md").write_text(done.summary, encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
