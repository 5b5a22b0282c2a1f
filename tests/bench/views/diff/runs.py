"""Comparisons that differ in one thing each, on the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bench.results.records import Case, Measurement
from tests.bench import synthetic
from tests.bench.results.test_thin import saved

OURS, THEIRS = "engine-cpu", "ort-cpu"
Change = Callable[[Measurement], Measurement]


def run(
    path: Path,
    seed: int = 0,
    factor: Callable[[Case], float] = lambda case: 1.0,
    change: Change = lambda measurement: measurement,
    batches: Sequence[int] = (1, 4, 16),
    backends: Sequence[str] = (OURS, THEIRS),
    environment: dict[str, Any] | None = None,
    job: dict[str, Any] | None = None,
    **more: Any,
) -> Path:
    """One whose times are `factor` times what they are otherwise, in eight rounds, and every case changed."""
    header, found = synthetic.run(backends=backends, batches=batches, layers=False, **more)
    made = []
    for measurement in found:
        case = measurement.case
        rng = np.random.default_rng([seed, *case.key.encode()])
        overhead, cost = synthetic.COSTS[case.backend]
        base = 1e3 * (overhead + cost * case.batch) * factor(case)
        samples = (
            base * (1 + 0.004 * rng.standard_normal(8)).repeat(6) * (1 + 0.002 * rng.standard_normal(48))
        )
        timed = msgspec.structs.replace(
            measurement,
            samples_ns=tuple(float(value) for value in samples) if measurement.samples_ns else (),
            rounds=tuple(range(0, 48, 6)),
        )
        made.append(change(timed))
    header = msgspec.structs.replace(
        header,
        environment=msgspec.structs.replace(header.environment, **(environment or {})),
        job=msgspec.structs.replace(header.job, **(job or {})),
    )
    saved(path, header, made)
    return path


def ours(batch: int | None, times: float) -> Callable[[Case], float]:
    """So many times as long on our backend, at one batch size (None: at all)."""
    return lambda case: times if case.backend == OURS and batch in (None, case.batch) else 1.0
