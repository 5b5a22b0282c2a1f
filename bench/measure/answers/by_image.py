"""Whether the answer for an image depends on that image alone, and where the image's answer lies in a model's
outputs.

For most models a batch only means several answers at once. Then a few images suffice to judge a batch of any
size. In other models the images of a batch change each other's answers (quantisation by the range of the
whole tensor, a state that is handed on, attention over axis 0), or an output belongs to no image. The model
itself shows which case it is: it is run in float64 over several images, and then over the first and the last
of them alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from engine.graph.graph import Graph
from engine.graph.normal_form import graphs
from kernels.errors import UnsupportedError

ALIKE = 1e-9  # of an output's largest value: sums of float64 in another order
# What takes its scale from the whole tensor, or a branch for all of it: images with the same range, or of the
# same branch, would not show it.
OF_ALL = frozenset({"DynamicQuantizeLinear", "If", "Loop"})
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Images:
    """Where images lie in an output: along `axis`, `each` places for every image, one image after the
    other."""

    axis: int = 0
    each: int = 1

    def rows(self, array: np.ndarray) -> np.ndarray:
        """(images, …): the output with an image a row; of several places an image (images, each, …)."""
        moved = np.moveaxis(array, self.axis, 0)
        if self.each == 1:
            return moved
        count = len(moved) // self.each
        return moved.reshape(count, self.each, *moved.shape[1:])

    def shape(self, of: tuple[int, ...], images: int) -> tuple[int, ...]:
        """The output's shape for so many images. of: its shape for some."""
        return (*of[: self.axis], images * self.each, *of[self.axis + 1 :])


def images_of(one: tuple[int, ...], many: tuple[int, ...], count: int) -> Images | None:
    """Where the images are in an output that has these shapes for one image and for `count`; None if its
    shape does not show it."""
    if len(one) != len(many) or count < 2:
        return None
    grown = [axis for axis, (few, more) in enumerate(zip(one, many, strict=True)) if few != more]
    if len(grown) != 1 or many[grown[0]] != count * one[grown[0]]:
        return None
    return Images(grown[0], one[grown[0]])


def cut(graph: Graph, inputs: Arrays, rows: slice) -> dict[str, np.ndarray]:
    """The inputs of some images of a batch; what has no axis of the batch as it is."""
    axes = graph.batch_axes
    return {
        name: array[(*(slice(None),) * axes[name], rows)] if name in axes else array
        for name, array in inputs.items()
    }


def count(graph: Graph, inputs: Arrays) -> int:
    """How many images these inputs are of."""
    for name, axis in graph.batch_axes.items():
        return inputs[name].shape[axis]
    return graph.fixed_batch or len(next(iter(inputs.values())))


def drawn(graph: Graph, inputs: Arrays) -> int:
    """The place of one of these images, whichever."""
    return secrets.randbelow(count(graph, inputs))


def layout(
    graph: Graph, inputs: Arrays, answers: Arrays, count: int, answer: Callable[[Arrays], Arrays]
) -> dict[str, Images] | None:
    """Where the images are in each output; None if the answer for an image depends on the others, or if that
    cannot be found out. answers: the answers to these inputs of `count` images; answer: computes the answers
    to other inputs. Raises OutOfMemoryError."""
    if graph.fixed_batch is not None or count < 2 or any(node.op_type in OF_ALL for node in graph.nodes):
        return None
    found: dict[str, Images] = {}
    for place in (0, count - 1):
        try:
            alone = answer(cut(graph, inputs, slice(place, place + 1)))
        except UnsupportedError:  # a file may be right for several images alone
            return None
        for info in graph.outputs:
            one, many = alone[info.name], answers[info.name]
            images = images_of(one.shape, many.shape, count)
            if images is None or found.setdefault(info.name, images) != images:
                return None
            if not _alike(images.rows(one)[0], images.rows(many)[place]):
                return None
    return found


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind not in "fc":
        return bool((one == other).all())
    known = np.isfinite(other)
    largest = float(np.abs(other[known]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= ALIKE * largest
    return bool((near | (one == other) | (np.isnan(one) & np.isnan(other))).all())


def random_node(graph: Graph) -> tuple[str, str] | None:
    """(name, operator) of a node that draws new numbers in each pass and on which an output depends; None if
    there is none."""
    for node in graph.nodes:
        if node.name in graph.live and _draws(graph.node_protos[node.name], graph):
            return node.name, node.op_type
    return None


def _draws(node: onnx.NodeProto, graph: Graph) -> bool:
    if node.op_type in RANDOM:
        return True
    if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
        training = graph.initializers.get(node.input[2])
        return training is not None and bool(np.any(training))
    return any(_draws(inner, graph) for body in graphs(node) for inner in body.node)
