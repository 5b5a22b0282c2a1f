"""Mistakes of reading images at places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.measure.answers import one_node
from kernels.ops.grid_sample import GRID_MODES, GRID_PADDINGS, GridSample


def mistakes(p: GridSample, x: np.ndarray, grid: np.ndarray) -> Iterator[Mistake]:
    where = "outer edges" if p.corners else "middles"
    words = f"−1 and 1 are taken for the {where} of the first and the last element"
    yield "kind", words, partial(_read, replace(p, corners=not p.corners), x, grid)
    yield "layout", "the grid's axes are taken in reverse order", partial(_read, p, x, grid[..., ::-1].copy())
    for mode in GRID_MODES:
        if mode != p.mode and (mode != "cubic" or p.dims == 2):
            yield "kind", f"it reads as in mode {mode}", partial(_read, replace(p, mode=mode), x, grid)
    for padding in GRID_PADDINGS:
        if padding != p.padding:
            words = f"beyond the image it reads as with padding {padding}"
            yield "kind", words, partial(_read, replace(p, padding=padding), x, grid)
    yield "sign", "places count from the other side", partial(_read, p, x, -grid)
    if p.n > 1:
        same = np.broadcast_to(grid[:1], grid.shape).copy()
        yield "batch_one_only", "every image is read at the first image's places", partial(_read, p, x, same)


def _read(p: GridSample, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    return one_node.answer(p, (x, grid))
