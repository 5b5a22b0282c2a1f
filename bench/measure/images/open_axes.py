"""Which sizes a model's open axes get: what the user says, else what the model's file says of itself, else a
guess from the data set, which is told."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.graph import sizes
from engine.graph.graph import Graph, TensorInfo
from kernels.errors import InputError
from models import datasets

SAID = "kernelscope.dim"  # of a model's file: "height=224 sequence=128"
PIXELS = 224  # a side of a picture that nobody knows the size of, as ImageNet's nets take them
LENGTH = 128  # of a sequence, or of whatever else is open
MULTIPLE = 32  # nets that halve a picture five times, and double it again, take multiples of it
MOST = 640
_CHANNELS = (1, 3, 4)


def closed(graph: Graph, given: Mapping[str, int], dataset: str, lenient: bool = False) -> tuple[Graph, str]:
    """The graph without open axes beside its batch, and what was guessed of them in a sentence ("": nothing
    was). given: sizes that the user says, by name; dataset: what will be fed. lenient: what no axis is called
    is passed over, as it may be meant for another model. Raises InputError."""
    open_ = sizes.names(graph)
    wanted = {**_said(graph), **given}
    if lenient:
        wanted = {name: size for name, size in wanted.items() if name in open_}
    graph = sizes.sized(graph, wanted)
    if not graph.open_axes:
        return graph, ""
    guessed = _guess(graph, dataset)
    told = " ".join(f"--dim {name}={size}" for name, size in guessed.items())
    words = f"the file leaves axes open beside its batch; guessed were {told}, which can be given otherwise"
    return sizes.sized(graph, guessed), words


def _said(graph: Graph) -> dict[str, int]:
    """What the model's file says of itself. Raises InputError."""
    text = next((p.value for p in graph.proto.metadata_props if p.key == SAID), "")
    known = sizes.names(graph)
    try:
        pairs = [part.partition("=") for part in text.split()]
        return {name: int(size) for name, _, size in pairs if name in known}
    except ValueError:
        raise InputError(
            f"model {graph.name} says {SAID} {text!r} of itself, which is no NAME=SIZE NAME=SIZE"
        ) from None


def _guess(graph: Graph, dataset: str) -> dict[str, int]:
    """A size for each open axis, by what it is called."""
    infos = {info.name: info for info in graph.inputs}
    sides: tuple[int, int] | None = None
    found: dict[str, int] = {}
    for name, axis in graph.open_axes:
        info = infos[name]
        called = info.shape[axis] or f"{name}.{axis}"
        place = _side(graph, info, axis)
        if place is not None and sides is None:
            sides = _sides(dataset)
        found.setdefault(str(called), LENGTH if place is None or sides is None else sides[place])
    return found


def _side(graph: Graph, info: TensorInfo, axis: int) -> int | None:
    """0 for an axis that is the height of a picture, 1 for its width; None for any other."""
    shape = info.shape
    if len(shape) != 4 or np.dtype(info.dtype).kind not in "fu":
        return None
    if shape[3] in _CHANNELS and shape[1] not in _CHANNELS:
        return axis - 1 if axis in (1, 2) else None
    return axis - 2 if axis in (2, 3) else None


def _sides(dataset: str) -> tuple[int, int]:
    """(height, width) to prepare a data set's pictures to: those of its first, to whole multiples of
    `MULTIPLE` where it is larger. Raises DataError where it cannot be had."""
    if dataset == "random":
        return PIXELS, PIXELS
    height, width = np.asarray(datasets.load(dataset, 1).first(1)[0]).shape[:2]
    return _rounded(height), _rounded(width)


def _rounded(size: int) -> int:
    return size if size <= MULTIPLE else min(MOST, round(size / MULTIPLE) * MULTIPLE)
