"""What a kernel that ran without a GPU has cost, in sentences: counts, never times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from kernels.ptx.program import LineCounts, Report

WORST = 3  # lines that are named
SECTOR, WARP = 32, 32  # bytes; lanes


def sentences(report: Report, shape: str) -> list[str]:
    """The kernel as a whole, then the lines that cost most beyond what they must. shape: in words."""
    total = report.total
    lanes = total.lanes / max(1, total.instructions)
    words = [
        f"on {shape}: {total.instructions:,} warp instructions, {lanes:.1f} of {WARP} lanes busy; "
        + "; ".join(_memory(total))
    ]
    for space, unit, cause in (
        ("global", "sectors", "neighbouring threads do not read or write neighbouring elements"),
        ("shared", "wavefronts", "threads of a warp use different words of one bank"),
    ):
        over = {key: its.units.get(space, 0) - its.least.get(space, 0) for key, its in report.lines.items()}
        worst = sorted((key for key in over if over[key] > 0), key=lambda key: -over[key])[:WORST]
        for file, line in worst:
            its = report.lines[file, line]
            words.append(
                f"{PurePosixPath(file).name}:{line}: {its.units[space]:,} {unit} of {space} memory where "
                f"{its.least[space]:,} carry as much: {cause}"
            )
    apart = {key: its.divergent for key, its in report.lines.items() if its.divergent}
    for file, line in sorted(apart, key=lambda key: -apart[key])[:1]:
        times = f"{apart[file, line]:,} times"
        words.append(f"{PurePosixPath(file).name}:{line}: lanes of a warp go different ways {times}")
    return words


def _memory(total: LineCounts) -> Iterator[str]:
    units = {"global": "sectors of 32 bytes", "shared": "wavefronts", "local": "sectors of 32 bytes"}
    for space, unit in units.items():
        if requests := total.requests.get(space):
            each = total.units[space] / requests
            yield f"{space} memory: {requests:,} requests of {each:.1f} {unit} each"
    if total.barriers:
        yield f"{total.barriers:,} waits at barriers"
    if total.atomics:
        yield f"{total.atomics:,} atomic instructions"
