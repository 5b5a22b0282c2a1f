"""The command line or its worker killed (SIGKILL) at a moment drawn at random, in a comparison that is then
gone on with, until it is whole: nothing that was measured may be lost.

`python -m tests.kills --count 500 --state DIR` goes on to that many kills; DIR/state.json counts them and
what was found, DIR/run-N are the runs in which something was. Exit status: 1 where there is anything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.results.claim import LOCK_FILE, Claim
from bench.results.records import Measurement
from bench.results.results_file import ResultsFile, sound
from bench.results.store import RESULTS_FILE
from bench.run.client import worker_environment
from bench.run.kinds.comparison import KIND as COMPARISON
from kernels.errors import InputError
from tests import preloaded

ROOT = Path(__file__).resolve().parents[2]
MODEL = "lenet5-digits"
JOB = (
    *("compare", MODEL, "--backend", "engine-cpu", "--batch", "1,2,4,8", "--images", "8", "--threads", "1"),
    *("--budget", "0.05", "--no-layer-pass"),
)
QUIET = ("--charts", "none", "--format", "csv")
WHOLE_S = 120.0  # that a run may take which nobody kills
ORPHAN_S = 40.0  # that a worker may live on without whoever started it
WHO = ("parent", "worker")
# Since when, and for how many seconds at most, the moment is drawn: all of a run is to be met, on a machine
# of any speed.
SINCE = {"the start": 1.0, "the worker's start": 1.5, "a line": 0.3}


class Kills:
    """Runs that are killed, and what became of them, kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "state.json"
        plain: dict[str, Any] = {
            "runs": 0,
            **dict.fromkeys(WHO, 0),
            **dict.fromkeys(SINCE, 0),
            "findings": [],
        }
        self.state = json.loads(self._file.read_text()) if self._file.exists() else plain

    @property
    def count(self) -> int:
        return sum(self.state[who] for who in WHO)

    def run(self, most: int) -> None:
        """One run from its beginning to its end, killed again and again on the way, `most` times at most."""
        number = self.state["runs"] = self.state["runs"] + 1
        drawn = random.Random(number)
        path = self.folder / f"run-{number}"
        shutil.rmtree(path, ignore_errors=True)
        before: list[bytes] = []
        workers: set[int] = set()
        try:
            for _ in range(min(most, drawn.randint(1, 6))):
                came = self._killed(path, drawn, workers)
                before = _kept(path, before)
                if not came:
                    break
            self._finished(path, before)
            _no_orphans(workers)
        except AssertionError as error:
            self.state["findings"].append(f"run {number}: {error}")
            print(self.state["findings"][-1], file=sys.stderr, flush=True)
        else:
            shutil.rmtree(path, ignore_errors=True)
        temporary = self._file.with_suffix(".part")
        temporary.write_text(json.dumps(self.state, indent=1))
        temporary.replace(self._file)

    def _killed(self, path: Path, drawn: random.Random, workers: set[int]) -> bool:
        """Start or go on, and kill one of the two processes; False where the run ended before."""
        who, since = drawn.choice(WHO), drawn.choice(list(SINCE))
        after_s = drawn.uniform(0.0, SINCE[since])
        lines = _size(path)
        process = _started(path)
        began = time.monotonic() if since == "the start" else None
        found = 0
        while process.poll() is None:
            found = _worker_of(process.pid) or found
            if began is None and (found if since == "the worker's start" else _size(path) > lines):
                began = time.monotonic()
            if began is not None and time.monotonic() - began >= after_s and (found or who == "parent"):
                break
            time.sleep(0.002)
        found = _worker_of(process.pid) or found
        workers |= {found} if found else set()
        if process.poll() is not None:
            _said(process)  # it was over sooner
            return False
        if who == "parent":
            process.kill()
            process.communicate()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found, signal.SIGKILL)
            _said(process)  # the command goes on by itself
        self.state[who] += 1
        self.state[since] += 1
        return True

    def _finished(self, path: Path, before: list[bytes]) -> None:
        """What is left is measured, and all that there was is there still."""
        process = _started(path)
        told = _said(process)
        assert process.returncode == 0, f"going on ended with {process.returncode}: {told[-500:]}"
        _kept(path, before)
        folder = COMPARISON.open(path)
        results = ResultsFile(path / RESULTS_FILE, Measurement)
        measured = results.read()
        assert not results.damaged, f"lines {results.damaged} are damaged"
        came = {
            case.key: measured[case.key].disposition for case in folder.header.cases if case.key in measured
        }
        assert len(folder.header.cases) == 4
        assert list(came.values()) == ["ok"] * 4, f"not all was measured: {came}"
        _nothing_in_the_making(path)

    def table(self) -> str:
        """Markdown: what was killed."""
        held = self.state
        return "\n".join(
            (
                "| runs | kills of the command | of the worker | "
                f"{' | '.join(f'after {s}' for s in SINCE)} | lost |",
                "|--:|--:|--:|--:|--:|--:|--:|",
                f"| {held['runs']} | {' | '.join(str(held[name]) for name in (*WHO, *SINCE))} | "
                f"{len(held['findings'])} |",
            )
        )


def _started(path: Path) -> subprocess.Popen[str]:
    try:
        COMPARISON.open(path)
        command = ["compare", "--resume", str(path), *QUIET]
    except InputError:
        # It was killed before there was a run: nothing is lost, and it is begun anew in the same place.
        assert not (path / RESULTS_FILE).exists(), (
            f"{RESULTS_FILE} without a {COMPARISON.file} that can be read"
        )
        command = [*JOB, *QUIET, "--out", str(path)]
    return subprocess.Popen(
        [sys.executable, str(ROOT / "main.py"), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**worker_environment(), preloaded.PLAIN: "1"},  # workers are found by their words
        text=True,
        start_new_session=True,
    )


def _said(process: subprocess.Popen[str]) -> str:
    """What a command that nobody killed told until its end."""
    try:
        told = process.communicate(timeout=WHOLE_S)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"it did not end within {WHOLE_S:g} s") from None
    assert "Traceback" not in told, told[-2000:]
    return told


def _nothing_in_the_making(path: Path) -> None:
    """What a kill left of a file goes with whoever writes here next, once it is too old to be anybody's."""
    for left in _hidden(path):
        os.utime(left, (0, 0))
    claim = Claim(path)
    claim.take()
    claim.release()
    assert not _hidden(path), f"left in the making: {_hidden(path)}"


def _hidden(path: Path) -> list[Path]:
    return [p for p in path.rglob(".*") if p.is_file() and p.name != LOCK_FILE]


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return (path / RESULTS_FILE).stat().st_size
    return 0


def _worker_of(parent: int) -> int:
    """The worker that a command has started; 0 where there is none now."""
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if b"bench.measure.worker" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                return int(child)
    return 0


def _kept(path: Path, before: list[bytes]) -> list[bytes]:
    """The whole lines of the results: those from before, and what was added. Raises AssertionError."""
    data = (path / RESULTS_FILE).read_bytes() if (path / RESULTS_FILE).exists() else b""
    *lines, _ = data.split(b"\n")
    assert lines[: len(before)] == before, "lines that were written before are gone or changed"
    assert all(map(sound, lines)), "a whole line is damaged"
    return lines


def _no_orphans(workers: set[int]) -> None:
    end = time.monotonic() + ORPHAN_S
    while left := [pid for pid in workers if _runs(pid)]:
        assert time.monotonic() < end, f"workers {left} live on"
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and b"bench.measure.worker" in Path(f"/proc/{pid}/cmdline").read_bytes().split(
            b"\0"
        )
    except OSError:
        return False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="kills, those of earlier calls among them")
    parser.add_argument("--state", type=Path, default=Path("kills-state"), metavar="DIR")
    options = parser.parse_args(arguments)
    kills = Kills(options.state)
    claim = Claim(options.state)
    claim.take()
    while kills.count < options.count:
        kills.run(options.count - kills.count)
    print(kills.table())
    for finding in kills.state["findings"]:
        print(finding)
    return 1 if kills.state["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
