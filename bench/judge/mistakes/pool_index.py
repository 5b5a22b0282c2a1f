"""Mistakes in where the maxima of a pool lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.windows import places, seen, taken_otherwise
from kernels.ops.pool_index import PoolIndex


def mistakes(p: PoolIndex, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(found, p, x)
    yield "kind", "the place is the minimum's, not the maximum's", partial(found, p, -x)
    words = "rows and columns of the image are counted the other way round"
    yield "layout", words, partial(found, replace(p, by_columns=not p.by_columns), x)
    words = "places are counted within each image, not in the whole tensor"
    yield "layout", words, partial(made, whole=False)
    yield "place", "places are counted within each window", partial(made, in_window=True)
    for fault, words, other in taken_otherwise(p.pool):
        yield fault, words, partial(found, replace(p, pool=other), x)


def found(p: PoolIndex, x: np.ndarray, whole: bool = True, in_window: bool = False) -> np.ndarray:
    """What `p` says; places within each image where not `whole`."""
    pool = p.pool
    windows = seen(pool, x.reshape(pool.n, pool.c, pool.h, pool.w), "", -np.inf)  # (n, c, oh, kh, ow, kw)
    flat = windows.transpose(0, 1, 2, 4, 3, 5).reshape(*pool.output_shape, pool.kh * pool.kw)
    tap = flat.argmax(axis=-1)
    if in_window:
        return tap
    rows, columns = places(pool)
    row = rows[np.arange(pool.out_h)[:, None], tap // pool.kw]
    column = columns[np.arange(pool.out_w), tap % pool.kw]
    place = column * pool.h + row if p.by_columns else row * pool.w + column
    images = np.arange(pool.n * pool.c).reshape(pool.n, pool.c, 1, 1) * (pool.h * pool.w)
    return np.asarray(place + images if whole else place)
