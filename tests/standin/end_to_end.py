"""The kernels of engine/cuda/affine.cu and top_k.cu by NumPy, from their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.standin.code import Module
from tests.standin.memory import Memory


def affine(
    memory: Memory, module: Module, pointers: Sequence[int], scalars: Sequence[float]
) -> Callable[[], None]:
    size, *channels = scalars
    factors, offsets = np.array(channels[:3], np.float32), np.array(channels[3:], np.float32)

    def do() -> None:
        pixels = memory.view(pointers[0], (int(size),), np.uint8)
        channel = np.arange(int(size)) // module.define("INNER") % module.define("CHANNELS")
        made = pixels.astype(np.float32) * factors[channel] + offsets[channel]
        memory.view(pointers[1], (int(size),), np.float32)[:] = made

    return do


def top_k(
    memory: Memory, module: Module, pointers: Sequence[int], scalars: Sequence[float]
) -> Callable[[], None]:
    rows, classes = map(int, scalars)
    count = module.define("K")

    def do() -> None:
        scores = memory.view(pointers[0], (rows, classes), np.float32)
        places = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        memory.view(pointers[1], (rows, count), np.float32)[:] = np.take_along_axis(scores, places, 1)
        memory.view(pointers[2], (rows, count), np.int32)[:] = places

    return do


FILES = {"affine.cu": affine, "top_k.cu": top_k}
