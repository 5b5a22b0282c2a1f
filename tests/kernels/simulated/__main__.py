"""Every shipped CUDA rung on every small case, without a GPU, its warps in several orders; every planted
mistake; and what is missing.

    python -m tests.kernels.simulated [--orders 2] [--only conv] [--write docs/results/simulated.md]
    python -m tests.kernels.simulated --speed [--write docs/results/simulated.md]

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

SPEED = "## Speed"
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
        return _speeds(asked.only, asked.write)
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
        speeds = _part_of(asked.write, SPEED)
        page = _page(rows, missing, caught, total, asked.orders, asked.first)
        if HARDWARE.exists():
            page += "\n" + hardware.tables(HARDWARE)
        if speeds:
            page = page.rstrip("\n") + "\n\n" + speeds
        asked.write.write_text(page, encoding="utf-8")
    return 1 if bad else 0


def _speeds(only: str, page: Path | None) -> int:
    """How fast each rung runs, the slowest first; `page` gets them as its last section."""
    able = [r for r in check.RUNGS if only in ("", r.op) and not check.missing_of(r)]
    found = []
    for rung in able:
        found.append(check.speed(rung))
        print(f"{_millions(found[-1].rate):>6} M warp instructions/s  {found[-1].label}", flush=True)
    found.sort(key=lambda speed: speed.rate)
    slow = [speed for speed in found if speed.rate < check.FAST]
    running = sum(speed.running >= check.FAST for speed in found)
    fast = f"{len(found) - len(slow)} of {len(found)} rungs run at {check.FAST / 1e6:.0f} M or more"
    lines = [
        SPEED,
        "",
        "Made by `python -m tests.kernels.simulated --speed --write docs/results/simulated.md` on",
        f"{host.cpu_name()}: millions of warp instructions in a second of processor time on",
        f"one core, the best of {check.TRIES} tries, with every access watched. A pass is a layer of LeNet-5",
        "(conv2 at batch 16, its first product at batch 64; for what joins or changes elements, the maps of",
        "its first convolution at batch 16) where the rung takes it, else its largest small case. *Machine*",
        "leaves out what Python does before and after a launch.",
        "",
        f"{fast} warp instructions a second; the machine alone runs {running}",
        "of them as fast. Where the time of the others goes is sampled once a millisecond. One instruction",
        "of a warpgroup's product does up to 65,536 multiplications a warp, and all that it reads is watched",
        "when it begins and when it ends.",
        "",
        "| rung | M/s | machine, M/s | warp instructions | where the time goes |",
        "|---|---|---|---|---|",
        *(
            f"| {speed.label} | {_millions(speed.rate)} | {_millions(speed.running)} "
            f"| {speed.instructions:,} | {speed.reason} |"
            for speed in found
        ),
        "",
    ]
    print(f"{fast} on {host.cpu_name()}")
    for speed in slow:
        print(f"{speed.label}, {speed.on}: {speed.reason}")
    if page:
        text, part = page.read_text(encoding="utf-8"), _part_of(page, SPEED)
        whole = text.removesuffix(part).rstrip("\n")
        page.write_text("\n".join([whole, "", *lines]), encoding="utf-8")
    return 0


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.1f}"


def _part_of(page: Path, title: str) -> str:
    """The last section of a page from its title on; "" where it has none."""
    if not page.exists():
        return ""
    _, found, rest = page.read_text(encoding="utf-8").partition(f"\n{title}\n")
    return f"{title}\n{rest}" if found else ""


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
