"""What a mistake is, and mistakes of any operator, told from the right answer: zeros, signs, images that get
another's answer, and answers that lie in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, singledispatch
from itertools import permutations

import numpy as np

from kernels.ops import Params

# fault (of bench.results.ladder_records.Fault), words, and its answer
Mistake = tuple[str, str, Callable[[], np.ndarray]]
OVERFLOWS = "the largest element is not subtracted before exp, which overflows"
_LETTERS = {"image": "N", "channel": "C", "map": "C", "row": "H", "column": "W"}


@singledispatch
def mistakes(p: Params, *inputs: np.ndarray) -> Iterator[Mistake]:
    """Each mistake of the operator that can be made on `p`, with a function that works out its answer in
    float64. Raises TypeError for an operator that has none."""
    raise TypeError(f"bench/judge/mistakes has none of {p.op}, as every operator should")


def of_any(p: Params, inputs: Sequence[np.ndarray], right: np.ndarray) -> Iterator[Mistake]:
    yield "zeros_only", "answers zero, whatever it is given", lambda: np.zeros_like(right)
    names = axis_names(p, right.ndim)
    if inputs[0].size == right.size:
        yield "kind", "the input is given back unchanged", lambda: inputs[0].reshape(right.shape)
    if right.ndim > 1 and right.shape[0] > 1:
        yield from _images(names[0], right)
    for axis, name in enumerate(names):
        if right.shape[axis] > 1:
            yield (
                "layout",
                f"the answer's {one_and_many(name)[1]} are in reverse order",
                partial(np.flip, right, axis),
            )
    if right.ndim <= 4:
        yield from _orders(names, right)
    yield "sign", "the sign is reversed", lambda: -right
    yield "sign", "the sign is lost: absolute values are given", lambda: np.abs(right)
    yield (
        "activation",
        "negative values are cut off, as by a relu that nobody asked for",
        lambda: np.maximum(right, 0),
    )
    for by, where in ((1, "further along"), (-1, "further back")):
        words = f"each element of the answer lies one {where} in memory"
        yield "layout", words, partial(_rolled, right, by)


def _images(name: str, right: np.ndarray) -> Iterator[Mistake]:
    def zeros(place: slice) -> np.ndarray:
        some = right.copy()
        some[place] = 0
        return some

    same = np.broadcast_to(right[:1], right.shape)
    yield "batch_one_only", f"every {name} gets the first {name}'s answer", lambda: same
    yield (
        "batch_one_only",
        f"right for the first {name}, zeros for the others",
        partial(zeros, slice(1, None)),
    )
    yield (
        "batch_one_only",
        f"zeros for the last {name}, right for the others",
        partial(zeros, slice(-1, None)),
    )
    yield "batch_one_only", f"zeros for the first {name}, right for the others", partial(zeros, slice(0, 1))
    for by, other in ((1, "before"), (-1, "behind")):
        words = f"each {name} gets the answer of the one {other} it"
        yield "batch_one_only", words, partial(np.roll, right, by, 0)


def _orders(names: Sequence[str], right: np.ndarray) -> Iterator[Mistake]:
    """The same elements, laid out with their axes in another order."""
    straight = tuple(range(right.ndim))
    for order in permutations(straight):
        # Of one matrix, and of LRN's pixels in one row, some orders are the same and are told once.
        same = (names[0] == "matrix" and order[0]) or (
            names[-1] == "pixel" and order.index(3) != order.index(2) + 1
        )
        if order == straight or same:
            continue
        told = ", ".join(names[axis] for axis in order)
        letters = "".join(_LETTERS.get(names[axis], "") for axis in order)
        known = f" ({letters})" if len(letters) == right.ndim else ""
        words = f"the answer is laid out by {told}{known} instead of {', '.join(names)}"
        yield "layout", words, partial(_turned, right, order)


def _rolled(right: np.ndarray, by: int) -> np.ndarray:
    return np.roll(right.reshape(-1), by).reshape(right.shape)


def _turned(right: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    return right.transpose(order).reshape(right.shape)


def axis_names(p: Params, axes: int) -> tuple[str, ...]:
    """A word for one step along each axis of the answer."""
    if p.axes:
        return p.axes
    if axes == 1:
        return ("element",)
    return tuple(f"element along axis {axis}" for axis in range(axes))


def one_and_many(name: str) -> tuple[str, str]:
    """Of one word, both numbers: "matrix", "matrices"."""
    first, _, rest = name.partition(" ")
    many = {"matrix": "matrices"}.get(first, f"{first}s")
    return name, f"{many} {rest}".strip()
