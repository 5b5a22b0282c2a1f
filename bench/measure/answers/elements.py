"""Single elements of an answer in float64, each computed on its own from the inputs on which it depends.

The oracle takes minutes for one large image. Some hundred elements, drawn after the pass, take milliseconds,
and a kernel that leaves some out cannot know which ones will be looked at. Possible for operators whose file
in `nodes` has

    elements(p, inputs, places)   float64 (count,) at flat places of y

and for operators of one element. For the others `bench.judge.trial` looks at whole rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bench.measure.answers import nodes, one_node
from kernels.ops import Params

# So many that a kernel which leaves out one in sixty is found with p > 0.999, wherever these are: (59/60)^420
# is 0.0009. Further ones lie at the ends of the axes, where tiles are not whole.
DRAWN, AT_EDGES = 420, 30
# Terms that are gathered at once: little enough to stay in the caches.
TERMS = 1 << 18


def known(p: Params) -> bool:
    """Whether single elements can be had of this operator."""
    return hasattr(nodes.of(p), "elements") or _each_alone(p)


def answer(p: Params, inputs: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """Float64 (count,): what `inputs`, weights among them, give at these flat places of y."""
    found = getattr(nodes.of(p), "elements", None)
    if found is None:
        cut = p.division.cut(len(places))
        shapes = cut.input_shapes
        few = [array.reshape(-1)[places].reshape(shapes[i]) for i, array in enumerate(inputs)]
        return one_node.answer(cut, few).reshape(-1)
    step = max(1, TERMS // max(1, p.flops // (2 * max(1, p.outputs))))
    pieces = [places[start : start + step] for start in range(0, len(places), step)]
    with np.errstate(over="ignore"):
        return np.concatenate([found(p, inputs, piece) for piece in pieces])


def drawn(shape: Sequence[int], random: np.random.Generator) -> np.ndarray:
    """Flat places of a tensor: DRAWN alike among all, and AT_EDGES at the ends of one axis or several; all of
    a small one."""
    size = math.prod(shape)
    if size <= DRAWN + AT_EDGES:
        return np.arange(size)
    at = [random.integers(0, length, AT_EDGES) for length in shape]
    ends = [np.where(random.random(AT_EDGES) < 0.5, 0, length - 1) for length in shape]
    moved = random.random((len(shape), AT_EDGES)) < 0.5
    index = tuple(np.where(there, end, place) for there, end, place in zip(moved, ends, at, strict=True))
    return np.concatenate([random.integers(0, size, DRAWN), np.ravel_multi_index(index, tuple(shape))])


def _each_alone(p: Params) -> bool:
    """Whether an element of y hangs on the element of each input at its place alone."""
    units = p.division
    alone = units.length == p.outputs and units.output == 1 and set(units.inputs) == {1}
    return alone and all(units.cut(count).outputs == count for count in (1, 3))
