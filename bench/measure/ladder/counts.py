"""What a kernel that ran without a GPU has cost, in sentences: counts, never times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from kernels.ptx.program import LineCounts, Report
from kernels.registry import Rung

WORST = 3  # lines that are named
SECTOR, WARP = 32, 32  # bytes; lanes


def totals(report: Report) -> dict[str, int]:
    """The counts of a pass, by name: `instructions` of warps and their `lanes`, branches at which a warp was
    `divergent`, `barriers`, `atomics`; of global memory `requests`, `sectors` (of 32 bytes) and the
    `least_sectors` that carry as much, of each line no more than it has; of shared memory
    `shared_requests`, `wavefronts`, `least_wavefronts`; of local memory `local_sectors`."""
    total = report.total

    def least(space: str) -> int:
        # A line whose lanes read one address has fewer than that, which makes up for no other line.
        return sum(min(it.units.get(space, 0), it.least.get(space, 0)) for it in report.lines.values())

    return {
        **{name: getattr(total, name) for name in ("instructions", "lanes", "divergent", "barriers")},
        "atomics": total.atomics,
        "requests": total.requests.get("global", 0),
        "sectors": total.units.get("global", 0),
        "least_sectors": least("global"),
        "shared_requests": total.requests.get("shared", 0),
        "wavefronts": total.units.get("shared", 0),
        "least_wavefronts": least("shared"),
        "local_sectors": total.units.get("local", 0),
    }


def sentences(report: Report, shape: str, rung: Rung) -> list[str]:
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
