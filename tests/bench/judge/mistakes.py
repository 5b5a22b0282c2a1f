"""Mistakes planted in rungs, and what the judge says of each:

    python -m tests.bench.judge.mistakes

prints a table of mistake, finding, and whether the finding is true: "true" (it names the mistake), "none" (no
more than where and by how much) or "false" (it names something that it is not).
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest import mock

from bench import judge
from bench.results.finding import Finding
from engine.isolated import pool
from kernels import processes
from tests.bench.judge import (
    planted_conv,
    planted_elementwise,
    planted_gemm,
    planted_pools,
    planted_quantized,
    planted_rows,
    planted_sequences,
    planted_unnamed,
    planted_values,
    planting,
)
from tests.bench.judge.planting import Planted

ALL = planting.ALL
__all__ = [
    "planted_conv",
    "planted_elementwise",
    "planted_gemm",
    "planted_pools",
    "planted_quantized",
    "planted_rows",
    "planted_sequences",
    "planted_unnamed",
    "planted_values",
]
# Findings that name nothing: where it is wrong and by how much.
NAMELESS = ("wrong", "place")


def found(mistake: Planted, folder: Path) -> Finding | None:
    """What the judge finds; None where it lets it pass. None does harm: one process runs them all, and is
    not stopped in between."""

    def shared(kind: str, what: str, own: object = None) -> pool.Child:
        return child(kind, what, own and "planted")

    child = pool.child
    try:
        with (
            mock.patch.object(pool, "child", shared),
            mock.patch.object(processes, "halted", return_value=True),
        ):
            judge.examine(planting.rung_of(mistake, folder), mistake.params, threads=1).close()
    except judge.Wrong as wrong:
        return wrong.finding
    return None


def verdict(mistake: Planted, finding: Finding | None) -> str:
    """ "true", "none", "false", or "missed" where there is no finding."""
    if finding is None:
        return "missed"
    named = finding.reason.partition(";")[0] + ";"
    if mistake.told(named):
        return "true"
    return "none" if finding.fault in NAMELESS else "false"


def table(mistakes: Iterable[Planted]) -> Iterator[tuple[Planted, Finding | None, str]]:
    """What is found of these, one by one."""
    with tempfile.TemporaryDirectory() as folder:
        for mistake in mistakes:
            finding = found(mistake, Path(folder))
            yield mistake, finding, verdict(mistake, finding)


def main() -> int:
    counts: Counter[str] = Counter()
    print("| mistake | finding | |\n|---|---|---|")
    for mistake, finding, word in table(ALL.values()):
        counts[word] += 1
        told = finding.reason.partition(";")[0] if finding else ""
        print(f"| {mistake.name} | {told} | {word} |", flush=True)
    print(
        f"\n{len(ALL)} mistakes: {counts['true']} named, {counts['none']} placed alone, {counts['false']} "
        f"misnamed, {counts['missed']} missed"
    )
    return 1 if counts["false"] or counts["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
