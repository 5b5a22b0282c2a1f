"""Every shipped CUDA rung on every small case, without a GPU, its warps in several orders; every planted
mistake; and what is missing.

    python -m tests.kernels.simulated [--orders 2] [--only conv] [--write docs/results/simulated.md]

Behind its tables stands what a GPU counts and finds (tests.kernels.simulated.hardware), of the file HARDWARE.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

from engine.machine import host
from tests.kernels.simulated import check, hardware, planted

FAST = 20e6  # warp instructions a second and core
HARDWARE = Path("docs/results/simulated-h100.json")  # "counters" and "found" of that module's files


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--orders", type=int, default=2, help="orders of warps that are tried")
    parser.add_argument("--only", default="", help="one operator")
    parser.add_argument("--write", type=Path, help="the page of the table")
    parser.add_argument("--first", action="store_true", help="of each rung one case")
    parser.add_argument("--speed", action="store_true", help="only how fast each rung runs on its case")
    asked = parser.parse_args()
    if asked.speed:
        return _speeds(asked.only)
    started, bad, rows, instructions = time.monotonic(), 0, [], 0
    missing: dict[str, list[str]] = collections.defaultdict(list)
    for rung in check.RUNGS:
        if asked.only not in ("", rung.op):
            continue
        if lacking := check.missing_of(rung):
            for words in lacking:
                missing[words].append(rung.label)
            continue
        cases = [check.case_of(rung)] if asked.first else list(check.cases_of(rung))
        wrong, found = 0, 0
        for case in cases:
            for order in range(asked.orders):
                outcome = check.ran(rung, case, order)
                instructions += outcome.instructions
                wrong += bool(outcome.wrong)
                found += bool(outcome.findings)
                for text in [outcome.wrong, *(finding.words for finding in outcome.findings[:3])]:
                    if text:
                        print(f"{rung.label}, {case.params.words}: {text}", flush=True)
        rows.append((rung.label, len(cases), wrong, found))
        bad += wrong + found
    caught = total = 0
    for mistake in planted.planted() if not asked.only else ():
        with tempfile.TemporaryDirectory() as folder:
            found_wrong = check.findings(Path(folder), mistake, mistake.wrong)
            found_right = check.findings(Path(folder), mistake, mistake.right)
        total += 1
        if check.told(mistake, found_wrong) and not found_right:
            caught += 1
        else:
            said = [finding.words for finding in (*found_wrong, *found_right)]
            print(f"planted: {mistake.name}: {said}", flush=True)
    bad += total - caught
    right = sum(1 for row in rows if not row[2] and not row[3])
    print(
        f"{right} of {len(rows)} rungs right and without a finding on {sum(row[1] for row in rows)} cases in "
        f"{asked.orders} orders; {caught} of {total} planted mistakes found; {instructions:,} warp "
        f"instructions, {time.monotonic() - started:.0f} s"
    )
    for what, which in sorted(missing.items(), key=lambda item: -len(item[1])):
        print(f"{what}: {len(which)} rungs: {', '.join(which)}")
    if asked.write:
        page = _page(rows, missing, caught, total, asked.orders, asked.first)
        if HARDWARE.exists():
            page += "\n" + hardware.tables(HARDWARE)
        asked.write.write_text(page, encoding="utf-8")
    return 1 if bad else 0


def _speeds(only: str) -> int:
    """How fast each rung runs, the slowest first."""
    able = [r for r in check.RUNGS if only in ("", r.op) and not check.missing_of(r)]
    found = [(*check.speed(rung), rung.label) for rung in able]
    for speed, words, label in sorted(found):
        print(f"{speed / 1e6:8.1f} M warp instructions/s  {label}, {words}")
    fast = sum(speed >= FAST for speed, _, _ in found)
    print(f"{fast} of {len(found)} rungs at {FAST / 1e6:.0f} M or more on {host.cpu_name()}")
    return 0


def _page(
    rows: list[tuple[str, int, int, int]],
    missing: dict[str, list[str]],
    caught: int,
    total: int,
    orders: int,
    first: bool,
) -> str:
    which = "one small case" if first else "each small case that it takes"
    lines = [
        "# CUDA kernels without a GPU",
        "",
        f"Made by `python -m tests.kernels.simulated{' --first' * first} --orders {orders} --write",
        f"docs/results/simulated.md`. Each rung runs on the CPU on {which}, its warps in {orders} orders.",
        "Its answer is compared with float64 within the bound of its precision, and each access is watched.",
        "",
        f"{caught} of {total} planted mistakes were found at their line.",
        "",
        "| rung | cases | wrong answers | cases with a finding |",
        "|---|---|---|---|",
        *(f"| {label} | {cases} | {wrong} | {found} |" for label, cases, wrong, found in rows),
        "",
        *_missing(missing),
    ]
    return "\n".join(lines)


def _missing(missing: dict[str, list[str]]) -> list[str]:
    if not missing:
        return ["No shipped rung needs an instruction that is missing.", ""]
    return [
        "## What is missing",
        "",
        "Rungs that need one of these instructions are only compiled:",
        "",
        "| instruction | rungs |",
        "|---|---|",
        *(f"| {what} | {', '.join(which)} |" for what, which in sorted(missing.items())),
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
