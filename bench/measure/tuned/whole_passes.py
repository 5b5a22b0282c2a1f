"""Sessions of whole plans of one model, held against each other: what they answer, and what a pass takes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

import numpy as np

from bench.measure import instances
from bench.measure.answers import accuracy
from engine.backend import Session
from engine.graph.plan import Plan

GAIN = 0.01  # by so much another plan than the chosen kernels' own has to be faster
_TRIES, _TRY_NS = 5, 10e6
_DRAWN = (1 << 20) + 7  # values: no image is another one then


def drawn(plan: Plan) -> dict[str, np.ndarray]:
    """Inputs: so many drawn values, and these again."""
    random = np.random.default_rng(0)
    found = {}
    for name in plan.inputs:
        spec = plan.tensors[name]
        count = min(math.prod(spec.shape), _DRAWN)
        real = np.dtype(spec.dtype).kind == "f"
        values = random.standard_normal(count, np.float32) if real else random.integers(0, 2, count)
        found[name] = np.resize(values.astype(spec.dtype), spec.shape)
    return found


def agree(got: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray], precision: str) -> bool:
    return instances.error_against_first(got, right, precision, accuracy.PROPAGATED_FACTOR).ok


def pass_ns(*sessions: Session) -> list[float]:
    """Of a pass of each, the median of a few trains, in turns."""
    once = [max(1, session.time_runs(1), session.time_runs(1)) for session in sessions]
    counts = [max(1, int(_TRY_NS / ns)) for ns in once]
    rounds = [
        [session.time_runs(count) / count for session, count in zip(sessions, counts, strict=True)]
        for _ in range(_TRIES)
    ]
    return [statistics.median(taken) for taken in zip(*rounds, strict=True)]
