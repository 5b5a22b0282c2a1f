"""Changed files without end: models, weights' headers, records, arrays and events, in a child under limits.

`python -m tests.fuzz --state DIR` (`make fuzz`) goes on where the last call ended: DIR/state.json counts what
was tried by target, all told and since the code that it runs through was last changed; DIR/findings/ holds a
file a finding. What is a finding: an exception that is not the program's own, a process that dies, more than
5 s, more than 2 GiB. Exit status: 1 where there is any. `--only TARGET --seed N` tries one again, here.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.results.claim import Claim
from tests.fuzz import child

SLICE_S = 15.0
TAIL_NBYTES = 6000
LAST_S = 60.0  # beyond a slice: what starting takes on a busy machine
MOST_OF_A_KIND = 10
COUNTED = ("seed", "cases", "records", "cases_of_code", "records_of_code")
STATE_FILE, FINDINGS = "state.json", "findings"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--state", type=Path, default=Path("fuzz-state"), metavar="DIR")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S", help="how long this call tries")
    parser.add_argument("--only", default="", metavar="TARGET,…")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="try this one")
    options = parser.parse_args(arguments)
    known = import_module(child.TARGETS).TARGETS
    wanted = [name for name in options.only.split(",") if name] or list(known)
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(known)}")
    if options.seed is not None:
        child.limited()
        with tempfile.TemporaryDirectory() as folder:
            for name in wanted:
                child.one(name, -1, Path(folder))  # what is loaded late is no part of it
                signal.setitimer(signal.ITIMER_REAL, child.MOST_S)
                print(f"{name} {options.seed}: {child.one(name, options.seed, Path(folder))} tried")
        return 0
    kept = Kept(options.state)
    claim = Claim(options.state)  # two that count into one folder would end each other
    claim.take()
    end = time.monotonic() + options.seconds
    total = sum(known[name][1] for name in wanted)
    while (left := end - time.monotonic()) > 0:
        for name in wanted:
            share = known[name][1] / total
            kept.run(name, min(SLICE_S * known[name][1], left * share + 0.01))
    print(kept.table())
    return 1 if kept.findings() else 0


class Kept:
    """What was tried and found, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / FINDINGS).mkdir(parents=True, exist_ok=True)
        self._file = folder / STATE_FILE
        self._kinds: Counter[str] = Counter()
        self.state: dict[str, dict[str, Any]] = (
            json.loads(self._file.read_text()) if self._file.exists() else {}
        )

    def run(self, target: str, seconds: float) -> None:
        """Try files of a target for so long, in as many processes as it takes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._process(target, left)

    def _process(self, target: str, seconds: float) -> None:
        held = self.state.setdefault(
            target,
            {"seed": 0, "cases": 0, "records": 0, "code": "", "cases_of_code": 0, "records_of_code": 0},
        )
        counters = self.folder / f"{target}.counters"
        counters.write_bytes(child.COUNTERS.pack(held["seed"], 0, 0))
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
            command = [sys.executable, "-m", "tests.fuzz.child", target, str(seconds), str(counters)]
            process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment, cwd=child.ROOT)
            stuck = False
            try:
                code = process.wait(seconds + LAST_S)
            except subprocess.TimeoutExpired:
                stuck = True
                process.kill()
                code = process.wait()
            except BaseException:
                process.kill()
                process.wait()
                raise
            output.seek(0)
            said = [json.loads(line) for line in output.read().splitlines()]
            errors.seek(0)
            text = errors.read()[-TAIL_NBYTES:].decode("utf-8", "replace")
        seed, cases, records = child.COUNTERS.unpack(counters.read_bytes())
        counters.unlink()
        loaded = next((line["code"] for line in said if "code" in line), None)
        if loaded is None:
            raise SystemExit(f"the child of {target} did not start:\n{text}")
        if code:
            words = "did not end" if stuck else _ended(code)
            self._found(target, seed, f"the process {words}\n{text}")
            seed, cases = seed + 1, cases + 1
        for line in said:
            if "seed" in line:
                self._found(target, line["seed"], line["text"])
        if held["code"] != loaded:
            held.update(code=loaded, cases_of_code=0, records_of_code=0)
        held["seed"] = seed
        for name, more in (("cases", cases), ("records", records)):
            held[name] += more
            held[f"{name}_of_code"] += more
        temporary = self._file.with_suffix(".part")
        temporary.write_text(json.dumps(self.state, indent=1))
        temporary.replace(self._file)

    def _found(self, target: str, seed: int, text: str) -> None:
        again = f"python -m tests.fuzz --only {target} --seed {seed}"
        # A fault that every other file meets is told once, and a few of its files are kept.
        last = (text.strip().splitlines() or [""])[-1]
        kind = f"{target} {''.join(c for c in last if not c.isdigit())[:120]}"
        self._kinds[kind] += 1
        if self._kinds[kind] <= MOST_OF_A_KIND:
            (self.folder / FINDINGS / f"{target}-{seed}.txt").write_text(f"{again}\n\n{text}\n")
        if self._kinds[kind] == 1:
            print(f"{target} {seed}: {last}", file=sys.stderr, flush=True)

    def findings(self) -> list[Path]:
        return sorted((self.folder / FINDINGS).iterdir())

    def table(self) -> str:
        """Markdown: what was tried, by target."""
        found = [path.name.rpartition("-")[0] for path in self.findings()]
        lines = [
            "| target | files | records | of this code: files | records | findings |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        for name, held in self.state.items():
            counts = (held["cases"], held["records"], held["cases_of_code"], held["records_of_code"])
            lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in counts)} | {found.count(name)} |")
        return "\n".join(lines)


def _ended(code: int) -> str:
    if code == -signal.SIGALRM:
        return f"took more than {child.MOST_S:g} s"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


if __name__ == "__main__":
    sys.exit(main())
