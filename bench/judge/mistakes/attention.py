"""Mistakes of attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import ROUNDINGS
from kernels.ops.attention import FAR, Attention


def mistakes(
    p: Attention, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None
) -> Iterator[Mistake]:
    def made(
        told: Attention = p,
        q: np.ndarray = q,
        k: np.ndarray = k,
        v: np.ndarray = v,
        mask: np.ndarray | None = mask,
        **how: bool,
    ) -> np.ndarray:
        return attended(told, q, k, v, mask, **how)

    if p.scale != 1:
        yield "scale", "the scores are not scaled", partial(made, replace(p, scale=1.0))
        yield "scale", "the scores are scaled twice", partial(made, replace(p, scale=p.scale**2))
        yield "scale", "the scores are divided by the scale", partial(made, replace(p, scale=1 / p.scale))
    if p.softcap:
        yield "scale", "the scores are not capped", partial(made, replace(p, softcap=0.0))
    if mask is not None:
        yield "bias", "the mask is missing", partial(made, mask=None)
        yield "bias", "the mask is subtracted", partial(made, mask=-mask)
        yield "bias", "the mask is scaled, too", partial(made, mask=p.scale * mask)
        for axis, name in enumerate(("image", "head", "query", "key")):
            if mask.shape[axis] > 1:
                first = mask.take([0], axis).repeat(mask.shape[axis], axis)
                yield "bias", f"the mask of the first {name} serves all", partial(made, mask=first)
    if p.earliest != -FAR or p.latest != FAR:
        yield "left_out", "every query sees all keys", partial(made, replace(p, earliest=-FAR, latest=FAR))
        for by, words in ((1, "one key too far"), (-1, "one key too few")):
            if p.latest != FAR:
                moved = replace(p, latest=p.latest + by)
                yield "left_out", f"queries see {words} ahead", partial(made, moved)
            if p.earliest != -FAR:
                moved = replace(p, earliest=p.earliest - by)
                yield "left_out", f"queries see {words} behind", partial(made, moved)
    yield "scale", "the weights are not divided by their sum", partial(made, undivided=True)
    yield "axis", "the softmax runs over the queries", partial(made, over_queries=True)
    yield "layout", "heads take their keys and values in turns", partial(made, in_turns=True)
    if p.batch > 1:
        alike = [of[:1].repeat(p.batch, 0) for of in (q, k, v)]
        yield "batch_one_only", "every image has the queries of the first", partial(made, q=alike[0])
        yield "batch_one_only", "every image has the keys of the first", partial(made, k=alike[1])
        yield "batch_one_only", "every image has the values of the first", partial(made, v=alike[2])
    yield "left_out", "the last element of each score is left out", partial(made, q=_without_last(q))
    yield "left_out", "the last key is left out", partial(made, last=True)
    for whole in (4, 8, 16, 32, 64):
        if 0 < (kept := p.keys // whole * whole) < p.keys:
            words = f"the keys beyond the last whole {whole} are left out"
            yield "left_out", words, partial(_first_keys, p, q, k, v, mask, kept)
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(made, q=rounded(q), k=rounded(k), v=rounded(v))


def _without_last(q: np.ndarray) -> np.ndarray:
    q = q.copy()
    q[..., -1] = 0
    return q


def _first_keys(
    p: Attention, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, kept: int
) -> np.ndarray:
    hidden = np.zeros((1, 1, 1, p.keys))
    hidden[..., kept:] = -np.inf
    return attended(p, q, k, v, hidden if mask is None else mask + hidden)


def attended(
    p: Attention,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None,
    undivided: bool = False,
    over_queries: bool = False,
    in_turns: bool = False,
    last: bool = False,
) -> np.ndarray:
    q, k, v = (of.swapaxes(1, 2) if way else of for of, way in zip((q, k, v), p.swapped, strict=False))
    heads = np.arange(p.heads)
    of = heads % p.kv_heads if in_turns else heads // (p.heads // p.kv_heads)
    with np.errstate(all="ignore"):
        scores = p.scale * (q @ k[:, of].swapaxes(2, 3))
        if p.softcap:
            scores = p.softcap * np.tanh(scores / p.softcap)
        if mask is not None:
            scores = scores + mask
        away = np.arange(p.keys) - np.arange(p.queries)[:, None]
        scores = np.where((away < p.earliest) | (away > p.latest), -np.inf, scores)
        if last:
            scores[..., -1] = -np.inf
        axis = 2 if over_queries else 3
        most = scores.max(axis=axis, keepdims=True)
        weights = np.exp(scores - np.where(np.isneginf(most), 0, most))
        if not undivided:
            total = weights.sum(axis=axis, keepdims=True)
            weights = weights / (np.where(total == 0, 1, total) if p.guarded else total)
        y = weights @ v[:, of]
    return np.ascontiguousarray(y.swapaxes(1, 2)) if p.swapped[3] else y
