"""Runs the `run:` steps of action.yml with bash, in folders of their own and with the environment that such a
service sets. What other actions do (`uses:`) is not run.

An expression is known if it names an input, an output of a step before it, or the base of the pull
request; an unknown one is an error, for it would be empty there and nobody would see it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
BASE = "github.event.pull_request.base.sha"


@dataclass
class Job:
    """What came of it. code: of the first step that failed, 0 if none did; log: what all steps printed."""

    code: int = 0
    log: str = ""
    summary: str = ""
    failed: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return self.outputs.get("judge", {}).get("verdict", "")


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return found


def run(
    repository: Path,
    temporary: Path,
    inputs: Mapping[str, str],
    base: str = "",
    action_path: Path = ROOT,
    done: Mapping[str, Mapping[str, str]] | None = None,
    environment: Mapping[str, str] | None = None,
    only: Collection[str] = (),
) -> Job:
    """Run the steps on a repository's checkout. temporary: what the service empties before each job; base:
    the commit that the pull request is held against; done: steps that are not run again, by id, with their
    outputs; only: ids of the steps that are run, instead of all. Raises KeyError for an input or an
    expression that the action does not know."""
    told = action()
    if unknown := set(inputs) - set(told["inputs"]):
        raise KeyError(f"action.yml has no input {', '.join(sorted(unknown))}")
    known = {BASE: base}
    known |= {
        f"inputs.{name}": inputs.get(name, filled(str(about["default"]), known))
        for name, about in told["inputs"].items()
    }
    job = Job(outputs={name: dict(outputs) for name, outputs in (done or {}).items()})
    known |= {
        f"steps.{name}.outputs.{key}": value
        for name in job.outputs
        for key, value in job.outputs[name].items()
    }
    temporary.mkdir(parents=True, exist_ok=True)
    summary = temporary / "summary.md"
    for number, step in enumerate(told["runs"]["steps"]):
        name = step.get("id", "")
        if "run" not in step or name in job.outputs or (only and name not in only):
            continue
        output = temporary / f"output-{number}"
        for path in (output, summary):
            path.touch()
        own = {key: filled(str(value), known) for key, value in step.get("env", {}).items()}
        service = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(action_path),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(repository),
            "HOME": str(temporary / "home"),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin:/usr/bin:/bin")),
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(temporary),
        }
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ended = _bash(words, repository, {**service, **(environment or {}), **own})
        job.log += ended.stdout
        lines = [line.partition("=") for line in output.read_text("utf-8").splitlines()]
        job.outputs[name] = {key: value for key, _, value in lines}
        known |= {f"steps.{name}.outputs.{key}": value for key, value in job.outputs[name].items()}
        job.summary = summary.read_text("utf-8")
        if ended.returncode:
            job.code, job.failed = ended.returncode, name
            break
    return job


def _bash(words: Sequence[str], at: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=at,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def filled(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: known[found[1]], text)


def repository(folder: Path, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """A git repository whose first commit has the files `before`, and whose checkout those of `after`, too.
    The first commit's id."""
    git("init", "--quiet", str(folder), at=folder.parent)
    _commit(folder, before, "the base")
    base = git("rev-parse", "HEAD", at=folder).strip()
    _commit(folder, after, "the pull request")
    return base


def _commit(folder: Path, files: Mapping[str, str], message: str) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git("add", "--all", at=folder)
    git("commit", "--quiet", "--allow-empty", "--message", message, at=folder)


def git(*words: str, at: Path) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], cwd=at, check=True, capture_output=True, text=True).stdout


def copy_of_program(folder: Path) -> None:
    """What a service fetches of this repository: the files that git knows, and nothing that was built."""
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard", at=ROOT).split("\0"):
        if name and (ROOT / name).is_file() and not name.startswith(("tests/", "docs/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
