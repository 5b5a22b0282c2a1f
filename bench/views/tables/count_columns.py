"""Columns of what CUDA rungs cost a GPU, counted on the CPU (bench.measure.ladder.counts): never times."""

from __future__ import annotations

from bench.results.ladder_rows import RungRow
from bench.views.tables.table import Column


def _counted(name: str, title: str | None = None, tip: str = "") -> Column[RungRow]:
    """A count of what ran on the CPU."""
    return Column(name, lambda row: row.measurement.counted.get(name), title=title, tip=tip, holds=int)


def _share(name: str, over: str, under: str, title: str, tip: str, scale: float = 1.0) -> Column[RungRow]:
    """A count over another; None where either is not known, or there is nothing to count."""

    def value(row: RungRow) -> float | None:
        counts = row.measurement.counted
        return counts[over] / counts[under] * scale if counts.get(under) else None

    return Column(name, value, lambda share: f"{share:.1f}", title=title, tip=tip, holds=float)


# What running it on the CPU counts.
COLUMNS: tuple[Column[RungRow], ...] = (
    _counted("instructions", "warp instr.", "Instructions, each of a warp of 32 threads"),
    _share(
        "busy_lanes", "lanes", "instructions", "lanes", "Threads of 32 that are at work in an instruction"
    ),
    _counted("requests"),
    _counted("sectors"),
    _counted("least_sectors"),
    _share(
        "sectors_a_request",
        "sectors",
        "requests",
        "sectors/req.",
        "Sectors of 32 bytes of global memory for each load or store of a warp",
    ),
    _share(
        "sectors_of_least",
        "sectors",
        "least_sectors",
        "× least",
        "Sectors of global memory over the fewest that carry as much",
    ),
    _counted("shared_requests"),
    _counted("wavefronts"),
    _counted("least_wavefronts"),
    _share(
        "wavefronts_of_least",
        "wavefronts",
        "least_wavefronts",
        "conflicts",
        "Wavefronts of shared memory over the fewest that there can be: 1 is without bank conflicts",
    ),
    _counted("divergent", "diverges", "How often threads of a warp go different ways"),
    _counted("barriers"),
    _counted("atomics"),
    _counted("local_sectors"),
)
# Those that people read.
SHOWN = (
    *("instructions", "busy_lanes", "sectors_a_request", "sectors_of_least", "wavefronts_of_least"),
    "divergent",
)
MEANING = (
    "sectors/req.: sectors of 32 bytes of global memory for each load or store of a warp; × least: over the "
    "fewest that carry as much; conflicts: wavefronts of shared memory over the fewest (1.0: no bank "
    "conflicts); lanes: threads of 32 that are at work"
)
