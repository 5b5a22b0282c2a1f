"""Cuts at random moments: `python -m tests.bench.extras.remote.cuts [CUTS] [SEED]`.

A run of many cases is measured at a place by a worker of known figures, while things break: the connection is
killed, or stands still (once for a minute); the worker there is killed, or its keeper, the line here, the
program here; the disk there takes no more. Then it is resumed until nothing is missing. It is said what was
not as it has to be:

- each case is in the results once, with a figure that a worker said, and with its file;
- a figure that a worker said is in the results, unless its case was measured again after a kill there;
- nobody is left there afterwards.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
import psutil

from bench.extras.fleet import executor as fleet
from bench.extras.fleet import spread
from bench.extras.remote import elsewhere as remote
from bench.run import client, elsewhere
from bench.run.kinds.comparison import KIND as COMPARISON
from tests.bench.extras.remote import there

MINUTE_S = 60.0  # longer than a connection that says nothing is believed in
KINDS = ("connection", "asleep", "worker", "keeper", "line", "here", "disk")
# Where a process there is killed, what it said last may be lost with it.
LOSES = ("worker", "keeper", "disk")


def measure(folder: Path, name: str) -> int:
    """One program that measures: what is missing of a run. name: of the place, or of several ("lab,farm").
    The exit status: whether nothing is."""
    with COMPARISON.resume(folder) as run:
        if "," in name:
            elsewhere.worker_command = lambda on, kind, files=False: _command(on)
            executor = fleet.elsewhere(name.split(","))
            spread.measure(run, run.missing(), executor, lambda event: None)
            return 1 if run.missing() else 0
        outcome = client.run(run.job, run.missing(), run, command=_command(name), on_event=lambda event: None)
        left = run.missing()
    if outcome.reason:
        print(outcome.reason, file=sys.stderr)
    return 1 if left else 0


def _command(name: str) -> list[str]:
    return remote.worker_command(name, there.SCRIPTED, COMPARISON.parts)


class Campaign:
    """folder: for all of it; KERNELSCOPE_CONFIG lies there."""

    def __init__(self, folder: Path, seed: int, kinds=KINDS) -> None:
        self.random, self.kinds = random.Random(seed), kinds
        os.environ["KERNELSCOPE_CONFIG"] = str(folder / "config" / "config.toml")
        self.place = there.make(folder, lease_s=4.0)
        self.folder = folder
        self.made: Counter[str] = Counter()
        self.problems: list[str] = []

    def run(self, number: int, cases: int, cuts: int) -> None:
        """One run with so many cuts."""
        path = self.folder / f"run-{number}"
        COMPARISON.create(path, there.run_of(cases))
        before = len(there.said(self.place))
        words = [
            sys.executable,
            "-m",
            "tests.bench.extras.remote.cuts",
            "--measure",
            str(path),
            self.place.name,
        ]
        made: set[str] = set()
        for _ in range(cuts + 8):
            with subprocess.Popen(words, cwd=there.ROOT, start_new_session=True) as program:
                while program.poll() is None:
                    if cuts > 0:
                        time.sleep(self.random.uniform(0.02, 0.7))
                        kind = self.random.choice(self.kinds)
                        if program.poll() is None and self.cut(kind, program.pid):
                            cuts -= 1
                            made.add(kind)
                    else:
                        time.sleep(0.05)
            if program.returncode == 0:
                break
        else:
            self.problems.append(f"run {number}: not whole after many programs")
        self._check(number, path, there.said(self.place)[before:], made)

    def cut(self, kind: str, program: int) -> bool:
        """Break something; whether there was something to break."""
        line = [p for p in _below(program) if "bench.extras.remote.line" in there.words(p)]
        match kind:
            case "here":
                found = [psutil.Process(program)]
            case "line":
                found = line
            case "connection" | "asleep" | "minute":
                found = [p for one in line for p in _below(one.pid)]
            case _:
                found = there.processes(self.place)
                if kind == "worker":
                    found = [p for p in found if there.SCRIPTED[0] in there.words(p)]
                else:
                    found = [p for p in found if _keeps(p)]
        for process in found:
            try:
                if kind == "disk":
                    full = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
                    time.sleep(self.random.uniform(0.1, 0.5))
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, full)
                elif kind in ("asleep", "minute"):
                    process.suspend()
                    time.sleep(MINUTE_S if kind == "minute" else self.random.uniform(0.1, 1.0))
                    process.resume()
                else:
                    process.kill()
            except (psutil.Error, ProcessLookupError):
                continue
        self.made[kind] += bool(found)
        return bool(found)

    def _check(self, number: int, path: Path, said: list[tuple[str, float]], made: set[str]) -> None:
        with COMPARISON.open(path) as run:
            measured = {m.case.key: m for m in run.measurements()}
            lines = [msgspec.json.decode(line) for line in (path / "results.jsonl").read_bytes().splitlines()]
            wanted = [case.key for case in run.cases]
        kept = [line for line in lines if line["disposition"] == "ok"]
        figures = Counter((measured_key(line), line["samples_ns"][0]) for line in kept)
        told = set(said)
        for key in wanted:
            if key not in measured or measured[key].disposition != "ok":
                self.problems.append(f"run {number}: {key} is missing")
            elif not (path / "predictions" / f"{key}.npz").is_file():
                self.problems.append(f"run {number}: the file of {key} is missing")
            elif (
                not (path / "predictions" / f"{key}.npz")
                .read_text()
                .startswith(str(measured[key].samples_ns[0]))
            ):
                self.problems.append(f"run {number}: the file of {key} is of another measurement")
        twice = [key for key, count in Counter(key for key, _ in figures).items() if count > 1]
        if twice:
            self.problems.append(f"run {number}: twice in the results: {twice}")
        foreign = [pair for pair in figures if pair not in told]
        if foreign:
            self.problems.append(f"run {number}: nobody measured {foreign}")
        again = [pair for pair in told if pair not in figures]
        # Of each kill there the one case that was at work may have been said and not heard.
        if again and not made & {*LOSES, "line"}:
            self.problems.append(f"run {number}: measured and not kept: {again} (cuts: {sorted(made)})")
        self.again = len(again)

    def nobody_left(self) -> None:
        """After the lease nobody is there."""
        try:
            there.until(lambda: not there.processes(self.place), 30)
        except AssertionError:
            words = [" ".join(there.words(p))[-80:] for p in there.processes(self.place)]
            self.problems.append(f"left behind: {words}")


def measured_key(line) -> str:
    return msgspec.convert(line["case"], type=COMPARISON.case).key


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _keeps(process: psutil.Process) -> bool:
    """Whether it has a worker: no connection does."""
    try:
        return any(there.SCRIPTED[0] in there.words(child) for child in process.children())
    except psutil.Error:
        return False


def main(cuts: int = 100, seed: int = 0) -> int:
    with tempfile.TemporaryDirectory(prefix="kernelscope-cuts-", ignore_cleanup_errors=True) as folder:
        campaign = Campaign(Path(folder), seed)
        number, began = 0, time.monotonic()
        while sum(campaign.made.values()) < cuts:
            number += 1
            campaign.run(number, cases=60, cuts=10)
            print(f"{sum(campaign.made.values())} cuts, {len(campaign.problems)} problems", file=sys.stderr)
        campaign.kinds = ("minute",)
        campaign.run(number + 1, cases=60, cuts=1)
        campaign.nobody_left()
    print(f"{number} runs in {time.monotonic() - began:.0f} s; cuts: {dict(campaign.made)}")
    for problem in campaign.problems:
        print(problem)
    return bool(campaign.problems)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        sys.exit(measure(Path(sys.argv[2]), sys.argv[3]))
    sys.exit(main(*map(int, sys.argv[1:])))
