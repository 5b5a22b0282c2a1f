"""The action with the program itself: `python -m tests.action [NAME...]`, some minutes.

In empty folders it installs what the action installs, makes a repository with a kernel, and runs the
steps for each pull request of PULL_REQUESTS. Exit codes: 0 each ended as it has to; 1 one did not. On a
machine that other programs use nothing may be decided about a slower kernel: this is told, and is no
failure here.
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
    " --rung conv1=mine --no-layer-pass --budget 2"
)
LADDER = (
    "ladder conv --device cpu --model lenet5-digits --node conv1 --batch 16 --kernels my_kernels --rung mine"
    " --budget 1"
)
# What is replaced in the kernel that `ladder --new` writes.
EQUAL = ("CHANNELS = 128", "CHANNELS = 128  # as before")
SLOWER = (
    "    return run\n",
    "    def thrice():\n        for _ in range(3):\n            run()\n\n    return thrice\n",
)
WRONG = ("if p.bias:", "if p.bias and p.n < 0:")


class PullRequest(NamedTuple):
    """change: of the kernel; ends: the verdicts that are as it has to be."""

    name: str
    command: str
    change: tuple[str, str]
    ends: tuple[str, ...]


PULL_REQUESTS = (
    PullRequest("equal", COMPARE, EQUAL, ("ok", "undecided")),
    PullRequest("slower", COMPARE, SLOWER, ("failed", "undecided")),
    PullRequest("wrong", COMPARE, WRONG, ("failed",)),
    PullRequest("equal-ladder", LADDER, EQUAL, ("ok", "undecided")),
    PullRequest("slower-ladder", LADDER, SLOWER, ("failed", "undecided")),
    PullRequest("wrong-ladder", LADDER, WRONG, ("failed",)),
)


def tried(asked: PullRequest, kernel: str, action: Path, install: runner.Job, at: Path) -> runner.Job:
    """The action on a repository whose pull request changes the kernel so."""
    old, new = asked.change
    if kernel.count(old) != 1:
        raise ValueError(f"the kernel of `ladder --new` no longer has {old!r} once")
    name = "my_kernels/90_mine.py"
    base = runner.repository(at / "work", {name: kernel}, {name: kernel.replace(old, new)})
    temporary = at / "temporary"
    results = temporary / "kernelscope-results"
    results.mkdir(parents=True)
    installed = Path(install.outputs["install"]["results"]).with_name("kernelscope")
    (temporary / "kernelscope").symlink_to(installed)
    done = {"install": {"results": str(results)}}
    return runner.run(at / "work", temporary, {"command": asked.command}, base, action, done)


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
        runner.copy_of_program(action)
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
            done = tried(one, kernel, action, job, root / one.name)
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
