"""Mistakes of resizing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from kernels.ops.resize import COORDINATES, RESIZE_MODES, ROUNDINGS, Resize


def mistakes(p: Resize, x: np.ndarray) -> Iterator[Mistake]:
    for mode in RESIZE_MODES:
        if mode != p.mode:
            yield "kind", f"it is resized as {mode}, whatever was asked for", _as(p, x, mode=mode)
    for other in COORDINATES[:-1]:
        if other != p.coordinates:
            words = f"places are counted as {other.replace('_', ' ')}"
            yield "scale", words, _as(p, x, coordinates=other)
    if p.mode == "nearest":
        for other in ROUNDINGS:
            if other != p.rounding:
                words = f"places are rounded by {other.replace('_', ' ')}"
                yield "kind", words, _as(p, x, rounding=other)
    if p.mode == "cubic":
        words = "what lies outside is weighed otherwise than was asked for"
        yield "pad", words, _as(p, x, exclude_outside=not p.exclude_outside)
        yield "scale", "the cubic coefficient is taken as -0.75", _as(p, x, cubic_a=-0.75)
        yield "scale", "the cubic coefficient is taken as -0.5", _as(p, x, cubic_a=-0.5)
    yield "scale", "height and width have each other's scale", _as(p, x, scale_h=p.scale_w, scale_w=p.scale_h)
    yield "scale", "the columns are scaled as the rows", _as(p, x, scale_w=p.scale_h)
    yield "scale", "the rows are scaled as the columns", _as(p, x, scale_h=p.scale_w)
    words = "the scales are taken the other way round"
    yield "scale", words, _as(p, x, scale_h=1 / p.scale_h, scale_w=1 / p.scale_w)
    turned = x.reshape(p.outer, p.inner, p.h, p.w).transpose(0, 2, 3, 1)
    yield "layout", "the last axis is read as if it came before the image", partial(resized, p, turned)
    one = x[:1].repeat(p.outer, axis=0)
    yield "batch_one_only", "every image is answered as the first", partial(resized, p, one)


def _as(p: Resize, x: np.ndarray, **changed: object) -> partial[np.ndarray]:
    return partial(resized, replace(p, **changed), x)  # type: ignore[arg-type]


def resized(p: Resize, x: np.ndarray) -> np.ndarray:
    """What `p` says."""
    x = x.reshape(p.outer, p.h, p.w, p.inner)
    rows, columns = p.taps()
    tall = np.einsum("notwi,ot->nowi", x[:, rows.at], rows.weight)
    y = np.einsum("nowti,wt->nowi", tall[:, :, columns.at], columns.weight)
    y[:, rows.beyond] = p.value
    y[:, :, columns.beyond] = p.value
    return y
