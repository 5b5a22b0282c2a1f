"""Mistakes of joining tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.concat import Concat


def mistakes(p: Concat, *inputs: np.ndarray) -> Iterator[Mistake]:
    parts = [x.reshape(p.outer, width) for x, width in zip(inputs, p.widths, strict=True)]

    def whole(first: int, other: np.ndarray) -> np.ndarray:
        """With another tensor in the place of one."""
        return np.concatenate([*parts[:first], other, *parts[first + 1 :]], axis=1)

    yield "layout", "the tensors are joined in reverse order", lambda: np.concatenate(parts[::-1], axis=1)
    yield "layout", "the tensors lie one behind the other, not side by side", lambda: _behind(p, parts)
    yield (
        "layout",
        "the first row is taken for every row",
        lambda: np.concatenate([x[:1] for x in parts], 1).repeat(p.outer, 0),
    )
    yield (
        "layout",
        "the last tensor is left out: zeros are there",
        lambda: whole(len(parts) - 1, 0 * parts[-1]),
    )
    yield "layout", "the first tensor is left out: zeros are there", lambda: whole(0, 0 * parts[0])
    yield (
        "layout",
        "the rows are those of the one before",
        lambda: np.roll(np.concatenate(parts, axis=1), 1, axis=0),
    )
    yield (
        "layout",
        "it is off by one along the row",
        lambda: np.roll(np.concatenate(parts, axis=1), 1, axis=1),
    )


def _behind(p: Concat, parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([x.reshape(-1) for x in parts]).reshape(p.outer, p.row)
