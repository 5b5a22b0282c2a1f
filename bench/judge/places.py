"""Where answers are wrong, and on which shapes: what is certain about a rung when no mistake explains it.

Each statement holds on every failing shape: a part of the answer outside of which everything is right, or
something that all failing shapes have and no other one has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from bench.judge.mistakes.common import axis_names, one_and_many
from bench.judge.mistakes.windows import reaches_beyond
from bench.judge.tried_shape import Explanation, TriedShape
from kernels import header
from kernels.ops import Params
from kernels.ops.conv import Conv
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.tasks import TaskParams

Indices = Callable[[int], range]


def where(wrong: Sequence[TriedShape], right: Sequence[Params]) -> Explanation | None:
    """(fault, words), or None. right: params of the shapes that passed."""
    found = [said for said in (_trait([case.params for case in wrong], right), _part(wrong, right)) if said]
    if not found:
        return None
    return found[0][0], ", and ".join(words for _, words in found)


# ------------------------------------------------------------------------------------------------- shapes


def _any(name: str, test: Callable[[object], bool]) -> Callable[[Params], bool]:
    """Whether a field of this name, of the params or of what they are made of, is so."""

    def told(p: Params) -> bool:
        parts = [p, *(getattr(p, part) for part in ("conv", "pool") if hasattr(p, part))]
        return any(test(getattr(part, name)) for part in parts if hasattr(part, name))

    return told


def _either(*tests: Callable[[Params], bool]) -> Callable[[Params], bool]:
    return lambda p: any(test(p) for test in tests)


def _differ(first: str, second: str) -> Callable[[Params], bool]:
    def told(p: Params) -> bool:
        parts = [p, *(getattr(p, part) for part in ("conv", "pool") if hasattr(p, part))]
        return any(getattr(part, first) != getattr(part, second) for part in parts if hasattr(part, first))

    return told


def _above(least: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int | float) and value > least


_PADS = ("pad_top", "pad_left", "pad_bottom", "pad_right")
_TRAITS: tuple[tuple[str, str, Callable[[Params], bool]], ...] = (
    ("batch_one_only", "right at batch 1, and wrong at every larger batch",
     _either(_any("n", _above(1)), _any("batch", _above(1)))),
    ("bias", "wrong only where there is a bias", _any("bias", bool)),
    ("pad", "wrong only where there is padding", _either(*(_any(name, bool) for name in _PADS))),
    ("stride", "wrong only where the stride is above 1",
     _either(_any("stride_h", _above(1)), _any("stride_w", _above(1)))),
    ("stride", "wrong only where the two strides differ", _differ("stride_h", "stride_w")),
    ("dilation", "wrong only where the kernel is dilated",
     _either(_any("dilation_h", _above(1)), _any("dilation_w", _above(1)))),
    ("group", "wrong only where there are groups", _any("group", _above(1))),
    ("activation", "wrong only where there is an activation", _any("activation", bool)),
    ("kernel", "wrong only where the kernel's height and width differ", _differ("kh", "kw")),
    ("pad", "wrong only where the padding is counted", _any("count_include_pad", bool)),
    ("kind", "wrong only where the logarithm is asked for", _any("log", bool)),
)  # fmt: skip


def _trait(wrong: Sequence[Params], right: Sequence[Params]) -> Explanation | None:
    """The one thing that all failing shapes have and no other one has."""
    if isinstance(wrong[0], TaskParams):
        return _size(wrong, right)
    found = [
        (fault, words)
        for fault, words, has in _TRAITS
        if right and all(map(has, wrong)) and not any(map(has, right))
    ]
    return found[0] if len(found) == 1 else None


def _size(wrong: Sequence[Params], right: Sequence[Params]) -> Explanation | None:
    """Of a task: which of its sizes parts the shapes that fail from the others. One that passes says little:
    that of one element is right by chance."""
    if len(right) < 2:
        return None
    for name in header.sizes_of(wrong[0]):
        failed, passed = ({getattr(p, name) for p in shapes} for shapes in (wrong, right))
        if min(failed) > max(passed):
            return (
                "place",
                f"right where {name} is up to {max(passed):,}, and wrong where it is {min(failed):,} or more",
            )
        for whole in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
            if all(size % whole for size in failed) and not any(size % whole for size in passed):
                return "place", f"wrong only where {name} is no multiple of {whole}"
    return None


# -------------------------------------------------------------------------------------------------- parts


def _tail(whole: int, size: int) -> range:
    return range(size // whole * whole, size)


_ENDS: tuple[tuple[str, Indices], ...] = (
    ("the last {one}", lambda size: range(size - 1, size)),
    ("the first {one}", lambda size: range(1)),
    ("all {many} but the first", lambda size: range(1, size)),
    ("all {many} but the last", lambda size: range(size - 1)),
)
_TAILS: tuple[tuple[str, Indices], ...] = tuple(
    (f"the {{many}} beyond the last whole {whole}", partial(_tail, whole)) for whole in (2, 4, 8, 16, 32, 64)
)


def _part(wrong: Sequence[TriedShape], right: Sequence[Params]) -> Explanation | None:
    """A part of the answer beyond which all is right."""
    masks = [_mask(case) for case in wrong]
    windows = [_reaching(case.params) for case in wrong]
    if all(
        reach is not None and not mask[..., ~reach].any() for mask, reach in zip(masks, windows, strict=True)
    ) and any(reach is not None and not reach.all() for reach in windows):
        return "pad", "wrong only where a window reaches beyond the image"
    if told := _output(wrong, masks):
        return told
    names = axis_names(wrong[0].params, wrong[0].expected.ndim)
    if any(mask.ndim != len(names) for mask in masks):
        return None
    parts = []
    for axis, name in enumerate(names):
        others = tuple(i for i in range(len(names)) if i != axis)
        along = [np.asarray(mask.any(axis=others)) for mask in masks]
        one, many = one_and_many(name)
        words = _stretch(along, tails=True) or _stretch(along, tails=False)
        if words:
            parts.append(words.format(one=one, many=many))
    if not parts:
        return None
    zeros = all(
        case.got is not None and not case.got[mask].any() for case, mask in zip(wrong, masks, strict=True)
    )
    return "place", f"wrong only in {' of '.join(reversed(parts))}{', which is zeros' if zeros else ''}"


def _output(wrong: Sequence[TriedShape], masks: Sequence[np.ndarray]) -> Explanation | None:
    """Of several outputs the one in which all lies that is wrong."""
    p = wrong[0].params
    if not isinstance(p, TaskParams) or len(p.output_shapes) < 2:
        return None
    found = {p.named(int(place))[0] for p, mask in _each(wrong, masks) for place in np.flatnonzero(mask)}
    return ("place", f"wrong only in {found.pop()}") if len(found) == 1 else None


def _each(
    wrong: Sequence[TriedShape], masks: Sequence[np.ndarray]
) -> Iterator[tuple[TaskParams, np.ndarray]]:
    for case, mask in zip(wrong, masks, strict=True):
        if isinstance(case.params, TaskParams):
            yield case.params, mask


def _stretch(along: Sequence[np.ndarray], tails: bool) -> str:
    """Words for the stretch of an axis that holds all that is wrong, on every shape; "" where there is none.
    What lies beyond whole tiles is told only where sizes differ: one alone is the last so many."""
    if tails and len({len(wrong) for wrong in along}) < 2:
        return ""
    for words, indices in _TAILS if tails else _ENDS:
        expected = [set(indices(len(wrong))) for wrong in along]
        found = [set(np.flatnonzero(wrong).tolist()) for wrong in along]
        whole = [len(some) == len(wrong) for some, wrong in zip(expected, along, strict=True)]
        if expected == found and not all(whole) and not (tails and len({len(some) for some in found}) < 2):
            return words
    return ""


def _mask(case: TriedShape) -> np.ndarray:
    assert case.got is not None
    with np.errstate(all="ignore"):
        return np.asarray(~(np.abs(case.got - case.expected) <= case.bound * case.largest))


def _reaching(p: Params) -> np.ndarray | None:
    """(rows, columns): whose window sees more than the image; None of what has no windows, or two of them."""
    if isinstance(p, LrnPool):
        p = p.pool
    return reaches_beyond(p) if isinstance(p, Conv | Pool) else None
