"""Mistakes of what moves elements: axes permuted, tensors joined, padded, picked from, resized."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np

from bench.judge.mistakes.common import Mistake, mistakes
from bench.measure.answers import one_node
from kernels.ops.concat import Concat
from kernels.ops.gather import Gather
from kernels.ops.grid_sample import GRID_MODES, GRID_PADDINGS, GridSample
from kernels.ops.pad import PAD_MODES, Pad
from kernels.ops.resize import COORDINATES, RESIZE_MODES, ROUNDINGS, Resize
from kernels.ops.scatter import Scatter
from kernels.ops.transpose import Transpose

_MOST_AXES = 4  # whose orders are all tried


@mistakes.register
def _transpose(p: Transpose, x: np.ndarray) -> Iterator[Mistake]:
    shape = tuple(p.shape[axis] for axis in p.perm)

    def turned(perm: tuple[int, ...]) -> np.ndarray:
        return x.transpose(perm).reshape(shape)

    inverse = tuple(int(i) for i in np.argsort(p.perm))
    straight = tuple(range(len(p.perm)))
    yield "kind", "the input is given back unchanged", lambda: turned(straight)
    yield "layout", "the axes are permuted the other way: by the inverse", lambda: turned(inverse)
    yield "layout", "the axes are reversed, whatever order was asked for", lambda: turned(straight[::-1])
    if 2 < len(p.perm) <= _MOST_AXES:
        swapped = (*straight[:-2], straight[-1], straight[-2])
        yield "layout", "the last two axes are swapped, whatever order was asked for", lambda: turned(swapped)
        for order in permutations(p.perm):
            if order in (p.perm, inverse, straight, straight[::-1], swapped):
                continue
            words = f"the order of the axes is {_words(order, p.perm)} of those asked for"
            yield "layout", words, partial(turned, order)


def _words(order: tuple[int, ...], perm: tuple[int, ...]) -> str:
    return ", ".join(str(perm.index(axis)) for axis in order)


@mistakes.register
def _concat(p: Concat, *inputs: np.ndarray) -> Iterator[Mistake]:
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


_WORDS = {
    "constant": "the value is added, whatever mode was asked for",
    "edge": "the edge is repeated, whatever mode was asked for",
    "reflect": "the input is reflected, whatever mode was asked for",
    "wrap": "the input wraps around",
}


@mistakes.register
def _pad(p: Pad, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(padded, p, x)
    if p.mode == "constant" and p.value:
        yield "pad", "the value is ignored: zeros are added", partial(made, value=0.0)
    for mode in PAD_MODES:
        if mode != p.mode:
            yield "pad", _WORDS[mode], partial(made, mode=mode)
    yield "pad", "the reflection has the edge twice", partial(made, mode="symmetric")
    yield "pad", "what is added at the beginning and at the end is swapped", partial(made, begin=p.end)
    yield "pad", "what is added at the beginning is ignored", partial(made, begin=(0,) * len(p.begin))
    yield (
        "pad",
        "it is off by one: one more at the beginning",
        partial(made, begin=tuple(b + 1 for b in p.begin)),
    )
    yield (
        "pad",
        "it is off by one: one less at the beginning",
        partial(made, begin=tuple(b - 1 for b in p.begin)),
    )
    yield "pad", "the axes are padded in reverse order", partial(made, begin=p.begin[::-1])


def padded(
    p: Pad, x: np.ndarray, *, begin: tuple[int, ...] = (), mode: str = "", value: float | None = None
) -> np.ndarray:
    """As large as `p` says, with other numbers at the beginning, another mode or value. NaN where numpy has
    nothing to take."""
    begin, mode = begin or p.begin, mode or p.mode
    end = [out - size - b for out, size, b in zip(p.out_shape, p.shape, begin, strict=True)]
    kept = tuple(slice(max(0, -b), size - max(0, -e)) for size, b, e in zip(p.shape, begin, end, strict=True))
    around = [(max(0, b), max(0, e)) for b, e in zip(begin, end, strict=True)]
    if mode == "constant":
        return np.pad(x[kept], around, constant_values=p.value if value is None else value)
    if 0 in x[kept].shape:
        return np.full(p.out_shape, np.nan)
    return np.pad(x[kept], around, mode)  # type: ignore[call-overload]


@mistakes.register
def _gather(p: Gather, x: np.ndarray, places: np.ndarray) -> Iterator[Mistake]:
    whole = np.where(places < 0, places + p.axis, places)

    def at(numbers: np.ndarray) -> Callable[[], np.ndarray]:
        return lambda: x[:, np.clip(numbers, 0, p.axis - 1)]

    yield "layout", "negative places are taken as the first", at(places)
    yield "layout", "the sign of negative places is lost", at(np.abs(places))
    yield "layout", "negative places are off by one", at(np.where(places < 0, whole - 1, whole))
    yield "layout", "places are counted from 1", at(whole - 1)
    yield "layout", "places are off by one further along", at(whole + 1)
    yield "layout", "places are picked in reverse order", at(whole[::-1])
    yield "layout", "the places are ignored: all are taken as they come", at(np.arange(p.count))
    yield "layout", "the first place serves all", at(np.full_like(whole, whole[0]))


_JOINS = {"put": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@mistakes.register
def _scatter(p: Scatter, x: np.ndarray, places: np.ndarray, updates: np.ndarray) -> Iterator[Mistake]:
    rows = np.where(places < 0, places + p.size, places)
    last = dict(zip(rows.tolist(), range(p.count), strict=True))
    first = dict(zip(rows[::-1].tolist(), reversed(range(p.count)), strict=True))

    def of(
        at: np.ndarray, with_: np.ndarray = updates, kind: str = p.kind, into: np.ndarray = x
    ) -> Callable[[], np.ndarray]:
        def made() -> np.ndarray:
            y = into.copy()
            kept = (at >= 0) & (at < p.size)
            if kind == "put":
                y[at[kept]] = with_[kept]
            else:
                _JOINS[kind].at(y, at[kept], with_[kept])  # type: ignore[union-attr]
            return y

        return made

    yield "kind", "the updates are left out", lambda: x
    if p.kind != "put":
        yield (
            "kind",
            "the updates stand in the place of what they should be joined with",
            of(rows, kind="put"),
        )
        for which, chosen in (("last", last), ("first", first)):
            some = np.array(list(chosen))
            words = f"of several updates of one row only the {which} counts"
            yield "kind", words, of(some, updates[list(chosen.values())])
    for kind in _JOINS:
        if kind not in ("put", p.kind):
            yield "kind", f"the updates are joined by {kind}", of(rows, kind=kind)
    yield "kind", "the rest of the tensor is 0", of(rows, into=np.zeros_like(x))
    yield "layout", "negative places are left out", of(places)
    yield "layout", "negative places are taken as the first", of(np.maximum(places, 0))
    yield "layout", "places are counted from 1", of(rows - 1)
    yield "layout", "places are off by one further along", of(rows + 1)
    yield "layout", "the updates come in reverse order", of(rows, updates[::-1])
    if p.kind == "put":
        some = np.array(list(first))
        words = "of several updates of one row the first stays, not the last"
        yield "kind", words, of(some, updates[list(first.values())])


@mistakes.register
def _resize(p: Resize, x: np.ndarray) -> Iterator[Mistake]:
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
    yield (
        "scale",
        "height and width have each other's scale",
        _as(p, x, scale_h=p.scale_w, scale_w=p.scale_h),
    )
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


@mistakes.register
def _grid_sample(p: GridSample, x: np.ndarray, grid: np.ndarray) -> Iterator[Mistake]:
    where = "outer edges" if p.corners else "middles"
    words = f"−1 and 1 are taken for the {where} of the first and the last element"
    yield "kind", words, partial(_read, replace(p, corners=not p.corners), x, grid)
    yield (
        "layout",
        "the grid's axes are taken in reverse order",
        partial(_read, p, x, grid[..., ::-1].copy()),
    )
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
        yield (
            "batch_one_only",
            "every image is read at the first image's places",
            partial(_read, p, x, same),
        )


def _read(p: GridSample, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    return one_node.answer(p, (x, grid))
