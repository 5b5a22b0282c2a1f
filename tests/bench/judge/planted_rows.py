"""Mistakes of operators that walk rows or move elements along an axis."""

from __future__ import annotations

from kernels.ops.reduce import Reduce
from tests.bench.judge.planting import answers

LARGEST = Reduce("argmax", 3, 10, 4)

answers("reduce", "reduce: mean for the sum", lambda p, x: x.mean(axis=1), "mean")
answers(
    "reduce", "reduce: the last left out", lambda p, x: x[:, : max(1, p.axis - 1)].sum(axis=1), "last element"
)
answers("reduce", "reduce: of squares", lambda p, x: (x * x).sum(axis=1), "sumsquare")
answers(
    "reduce",
    "reduce: root left out",
    lambda p, x: (x * x).sum(axis=1),
    "sumsquare",
    params=Reduce("l2", 3, 10, 4),
)
answers(
    "reduce",
    "reduce: neighbours in memory",
    lambda p, x: x.reshape(-1, p.axis).sum(axis=1).reshape(p.outer, p.inner),
    "neighbours",
)
answers(
    "reduce",
    "reduce: maximum for the logarithm of exponentials",
    lambda p, x: x.max(axis=1),
    "exponentials are missing|max",
    params=Reduce("logsumexp", 3, 10, 4),
)
answers("reduce", "reduce: place of the minimum", lambda p, x: x.argmin(axis=1), "argmin", params=LARGEST)
answers("reduce", "reduce: places from 1", lambda p, x: x.argmax(axis=1) + 1, "from 1", params=LARGEST)
