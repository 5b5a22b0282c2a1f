"""Mistakes of a task's kernel, of which nothing is known but its reference: the right answer to other inputs.

Who reads an input wrongly gives the answer to what he read: so each of them is made by changing one input as
such a mistake does, and asking the reference again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.judge.mistakes.common import Mistake, mistakes
from bench.measure.answers import of_tasks, one_node
from kernels.errors import KernelscopeError
from kernels.tasks import TaskParams

TAILS = (4, 32, 64, 128, 256, 512, 1024)
MOST_ELEMENTS = 1 << 16  # of inputs, beyond which the reference is not asked again and again
Change = Callable[[np.ndarray], np.ndarray]


@mistakes.register
def _task(p: TaskParams, *inputs: np.ndarray) -> Iterator[Mistake]:
    if sum(array.size for array in inputs) > MOST_ELEMENTS:
        return
    names = [given.name for given in p.task.spec.input]
    # What changes where something lies, or how many there are of a row, would be another structure: of those
    # that are drawn so, nothing else is tried.
    free = [place for place in range(len(inputs)) if place not in p.weight_inputs]
    for place in free:
        name, array = names[place], inputs[place]
        for fault, words, changed in _changes(name, array):
            yield fault, words, partial(_answered, p, inputs, {place: changed})
    for fault, words, first, second in _swaps(names, inputs, free):
        yield fault, words, partial(_answered, p, inputs, {first: inputs[second], second: inputs[first]})
    yield from _kinds(p, inputs)


def _changes(name: str, array: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
    flat, shape = array.reshape(-1), array.shape
    if array.dtype.kind == "f":
        yield "sign", f"the sign of {name} is reversed", -array
        yield "sign", f"the sign of {name} is lost", np.abs(array)
        yield "kind", f"{name} is cut to whole numbers", np.trunc(array)
    zero = np.zeros_like(flat)
    for where, at in (("last", -1), ("first", 0)):
        without = flat.copy()
        without[at] = zero[at]
        yield "place", f"the {where} element of {name} is left out", without.reshape(shape)
    for whole in TAILS:
        kept = flat.size // whole * whole
        if 0 < flat.size - kept < flat.size:
            words = f"the elements of {name} beyond the last whole {whole} are left out"
            yield "place", words, np.concatenate([flat[:kept], zero[kept:]]).reshape(shape)
    for whole in TAILS:
        if flat.size > whole:
            words = f"of {name} only the first {whole} elements are read"
            yield "place", words, np.concatenate([flat[:whole], zero[whole:]]).reshape(shape)
    if flat.size < 2:
        return
    for by, where, end in ((-1, "further along", -1), (1, "further back", 0)):
        moved = np.roll(flat, by)
        yield "place", f"{name} is read one element {where}, the end as the beginning", moved.reshape(shape)
        moved = moved.copy()
        moved[end] = 0
        yield "place", f"{name} is read one element {where}", moved.reshape(shape)
    yield "stride", f"of {name} each second element is read, twice over", np.resize(flat[::2], shape)
    yield "stride", f"all elements of {name} are read as the first one", np.full_like(array, flat[0])
    yield "layout", f"{name} is read from its end", flat[::-1].reshape(shape)
    if array.ndim > 1:
        turned = np.ascontiguousarray(np.swapaxes(array, -1, -2))
        yield "layout", f"{name} is read by columns instead of by rows", turned.reshape(shape)
        rows = array.reshape(-1, shape[-1])
        yield (
            "place",
            f"all rows of {name} are read as the first one",
            np.broadcast_to(rows[:1], rows.shape).reshape(shape),
        )
        yield "layout", f"the rows of {name} are read in reverse order", rows[::-1].reshape(shape)
        fewer = rows.copy()
        fewer[:, -1] = 0
        yield "place", f"the last column of {name} is left out", fewer.reshape(shape)
        fewer = rows.copy()
        fewer[-1] = 0
        yield "place", f"the last row of {name} is left out", fewer.reshape(shape)


def _swaps(
    names: list[str], inputs: tuple[np.ndarray, ...], free: list[int]
) -> Iterator[tuple[str, str, int, int]]:
    for i, first in enumerate(free):
        for second in free[i + 1 :]:
            one, other = inputs[first], inputs[second]
            if one.shape == other.shape and one.dtype == other.dtype:
                yield "kind", f"{names[first]} and {names[second]} are taken for each other", first, second


def _kinds(p: TaskParams, inputs: tuple[np.ndarray, ...]) -> Iterator[Mistake]:
    """What is done to the answer itself."""
    if not p.exact:
        yield "kind", "the answer is cut to whole numbers", lambda: np.trunc(one_node.answer(p, inputs))
    for place, array in enumerate(inputs):
        if array.shape == p.output_shape and array.dtype.kind == "f":
            name = p.task.spec.input[place].name
            yield "kind", f"{name} is given back unchanged", partial(np.array, array, np.float64)


def _answered(p: TaskParams, inputs: tuple[np.ndarray, ...], changed: dict[int, np.ndarray]) -> np.ndarray:
    """NaN where the reference has no answer to that."""
    try:
        given = [changed.get(place, array) for place, array in enumerate(inputs)]
        return of_tasks.sorted_(p, one_node.answer(p, given))
    except KernelscopeError:
        return np.full(of_tasks.answer_shape(p), np.nan)
