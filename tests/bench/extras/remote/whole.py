"""The commands that measure, here and at a place: `python -m tests.bench.extras.remote.whole [PLACE]`.

Without PLACE it makes one that is this machine with another home and another cache: through a server of
OpenSSH on the loopback, and where there is none by a launch prefix. First a kernel is saved some times under
`ladder --watch`, here and there, and it is told how long its verdict takes. Then each command runs here and
there. What does not depend on time has to be the same: cases, how they ended, answers, their errors, layers,
files. Nor may `runs diff` find a case faster or slower, wrong or worse: what it says is told, and `--untimed`
leaves it at that, for a busy machine. On a machine with a GPU the comparison is the default one.

Which kernel is the fastest is measured once and kept in the cache: two that are nearly as fast would change
places between two caches. So the place that is this machine begins each command with what was measured here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from bench.extras.remote import places
from bench.results.kinds import kind_of
from bench.run import defaults
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.diff.between import between
from bench.views.sentences.diff_sentences import verdict
from engine import backends
from engine.planning import choices
from tests.bench.extras.remote import loopback, there

MAIN = there.ROOT / "main.py"
SHAPE = ("--shape", "1,8,16,16,8,3")
SAVES = 4
# What measurements say of one machine's time and moment.
OF_TIME = {
    # When it was, how often and how long, and in what state the machine was then.
    *("started_at", "samples_ns", "runs_per_sample", "rounds", "instances", "quantile", "load", "telemetry"),
    *("validity", "first_run_ns", "phases", "wall_ns", "launched_ns", "dataset_ns", "time_ns", "clock"),
    *("cold", "passes", "pass_ns", "breakdown", "breakdowns", "sum", "timed", "unprofiled_ns", "profiled_ns"),
    *("clocks", "process", "memory", "unrest"),
    # Sentences made of times, or about them; which machine it was.
    *("finding", "beyond", "notes", "facts"),
    # Of the passes that were checked: which they were is drawn, and how many the budget says.
    "checks",
    # How many there are hangs on the passes that were recorded; that their files came is compared.
    "events",
}
# Of a place with a cache of its own: which kernel is the fastest was measured by each, and layers are joined
# by that.
OF_CHOICES = {"chosen", "rung", "layers"}


def device() -> str:
    able = backends.get("engine-cuda").unavailable() is None
    return "cuda" if able else "cpu"


def commands(kernels: Path) -> dict[str, list[str]]:
    """The words of each command, without where and out."""
    where = device()
    both = ("--backend", f"engine-{where}", "--backend", f"ort-{where}")
    short = ["compare", "lenet5-digits", *both, "--batch", "8", "--budget", "0.3"]
    return {
        "compare": COMPARISON.arguments(defaults.job()) if where == "cuda" else short,
        "profile": ["profile", "lenet5-digits", *both, "--batch", "8", "--budget", "0.2", "--runs", "2"],
        "ladder": ["ladder", "conv", *SHAPE, "--device", where, "--kernels", str(kernels), "--budget", "0.2"],
    }


def run(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(MAIN), *words], capture_output=True, text=True, check=False, **options
    )


def settled(found: Any, without: Collection[str]) -> Any:
    """What of a record does not depend on time."""
    match found:
        case dict():
            return {name: settled(value, without) for name, value in found.items() if name not in without}
        case list():
            return [settled(value, without) for value in found]
    return found


def share_choices(place: places.Place) -> None:
    """What was measured here for once is known there."""
    here = choices.STORE.folder()
    if here.is_dir():
        shutil.copytree(here, Path(place.folder, "cache", choices.STORE.name), dirs_exist_ok=True)


def told_by_diff(here: Path, elsewhere: Path) -> tuple[str, list[str]]:
    """What `runs diff` says of two runs; and of it, what is not to be said of the same work on one
    machine."""
    found = between(here, elsewhere)
    bad = [
        f"runs diff: {change.pair.words}: {change.verdict} {change.wrong} {change.worse}".rstrip()
        for change in found.changes
        if change.wrong or change.worse or (change.verdict in ("FASTER", "SLOWER") and not change.doubts)
    ]
    return verdict(found, "there"), bad


def compared(here: Path, elsewhere: Path, shared: bool = True) -> list[str]:
    """In words, what two runs that have to be the same differ in. shared: whether they had their choices of
    kernels in common."""
    without = OF_TIME if shared else OF_TIME | OF_CHOICES
    kind = kind_of(here)
    assert kind is not None
    problems = []
    lines = [
        {
            json.dumps(line["case"]): line
            for line in map(json.loads, (path / "results.jsonl").read_text().splitlines())
        }
        for path in (here, elsewhere)
    ]
    if lines[0].keys() != lines[1].keys():
        problems.append(f"cases: {sorted(lines[0].keys() ^ lines[1].keys())}")
    for case in lines[0].keys() & lines[1].keys():
        a, b = (settled(side[case], without) for side in lines)
        problems += [
            f"{case}: {name}: {a.get(name)!r} and {b.get(name)!r}"[:300]
            for name in {*a, *b}
            if a.get(name) != b.get(name)
        ]
        if lines[1][case].get("facts", {}).get("machine") is None:
            problems.append(f"{case}: it does not say on which machine it was measured")
    for part in kind.parts:
        names = [{p.name for p in (path / part).glob("*")} for path in (here, elsewhere)]
        if names[0] != names[1]:
            problems.append(f"files in {part}: {sorted(names[0] ^ names[1])}")
        if part == "predictions":
            problems += [
                f"{part}/{name} differs"
                for name in names[0] & names[1]
                if not _same(here / part / name, elsewhere / part / name)
            ]
    return problems


def _same(a: Path, b: Path) -> bool:
    with np.load(a) as one, np.load(b) as other:
        names = set(one) - {"ns"}  # how long it took
        return set(one) == set(other) and all(_equal(one[name], other[name]) for name in names)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def saves(kernel: Path, words: list[str], folder: Path) -> list[float]:
    """Seconds from saving a kernel to its verdict, under `ladder --watch`."""
    environment = {**os.environ, "COLUMNS": "200"}
    log = folder / "watch.txt"
    comment = "#" if kernel.suffix == ".py" else "//"
    found = []
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-u", str(MAIN), *words, "--watch"],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        try:
            drawn = _drawn(log, 1, 120)
            for number in range(SAVES):
                drawn = _settled(log, drawn)
                began = time.monotonic()
                kernel.write_text(kernel.read_text() + f"{comment} saved {number}\n")
                drawn = _drawn(log, drawn + 1, 60)
                found.append(time.monotonic() - began)
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
    return found


def _drawn(log: Path, count: int, limit_s: float) -> int:
    """Wait until the table was drawn so many times."""
    end = time.monotonic() + limit_s
    while (now := log.read_text().count("waiting for a file")) < count:
        assert time.monotonic() < end, log.read_text()[-2000:]
        time.sleep(0.01)
    return now


def _settled(log: Path, drawn: int) -> int:
    """Wait until nothing is timed any more, and the next worker is ready."""
    still = time.monotonic()
    while time.monotonic() - still < 4:
        now = _drawn(log, drawn, 60)
        if now != drawn:
            drawn, still = now, time.monotonic()
        time.sleep(0.05)
    return drawn


def _made(folder: Path, ends: contextlib.ExitStack) -> places.Place:
    """A place that is this machine, until `ends` is closed."""
    if loopback.SSHD and shutil.which("ssh"):
        data = {name: value for name in ("KERNELSCOPE_DATA",) if (value := os.environ.get(name))}
        ends.enter_context(loopback.entered(ends.enter_context(loopback.loopback(folder / "sshd", **data))))
        print("the place: this machine, through ssh on the loopback")
        return there.make(folder, host=loopback.HOST, launch=(), shared=True, lease_s=60.0)
    os.environ["KERNELSCOPE_CONFIG"] = str(folder / "config" / "config.toml")
    print("the place: this machine, by a launch prefix")
    return there.make(folder, lease_s=60.0)


def main(*given: str) -> int:
    timed, name = "--untimed" not in given, next((word for word in given if word != "--untimed"), "")
    bad = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started ends, too
    with (
        tempfile.TemporaryDirectory(prefix="kernelscope-whole-", ignore_cleanup_errors=True) as directory,
        contextlib.ExitStack() as ends,
    ):
        folder = Path(directory)
        os.chdir(folder)
        place = _made(folder, ends) if not name else places.load(name)
        os.environ["KERNELSCOPE_CACHE"] = str(folder / "cache-here")
        kernels = folder / "mine"
        made = run(["ladder", "conv", str(kernels), "--new", "--device", device()])
        kernel = Path(made.stdout.strip())
        words = ["ladder", "conv", *SHAPE, "--device", device(), "--kernels", str(kernels), "--rung", "mine"]
        took = [saves(kernel, [*words, *on], folder) for on in ([], ["--on", place.name])]
        for where, seconds in zip(("here", "there"), took, strict=True):
            print(f"saved → judged {where}: {', '.join(f'{s:.2f}' for s in seconds)} s")
        more = statistics.median(took[1]) - statistics.median(took[0])
        print(f"there it takes {more:+.2f} s more (at most 2)")
        bad += more > 2
        for command, words in commands(kernels).items():
            paths = {where: folder / f"{command}-{where}" for where in ("here", "there")}
            for where, path in paths.items():
                on = ["--on", place.name] if where == "there" else []
                if on and not name:
                    share_choices(place)
                began = time.monotonic()
                done = run([*words, *on, "--out", str(path), "--charts", "none"])
                print(f"{command} {where}: {time.monotonic() - began:.1f} s, exit code {done.returncode}")
                if done.returncode:
                    print(done.stderr[-1000:])
            problems = compared(paths["here"], paths["there"], shared=not name)
            said, moved = told_by_diff(paths["here"], paths["there"])
            print(f"{command}: runs diff: {said}")
            problems += moved if timed else []
            bad += len(problems)
            print("\n".join([f"{command}: {len(problems)} differences", *problems]))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
