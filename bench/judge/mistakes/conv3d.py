"""Mistakes of convolutions of volumes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import ROUNDINGS
from kernels.ops.conv3d import Conv3d, Three

_NAMES = ("depth", "height", "width")


def mistakes(
    p: Conv3d, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> Iterator[Mistake]:
    weight = weight.reshape(p.input_shapes[1])
    words = "answers as for inputs of zeros, whatever it is given"
    yield "zeros_only", words, partial(convolved, p, 0 * x, weight, bias)
    if bias is not None:
        yield "bias", "the bias is missing", partial(convolved, p, x, weight, None)
        yield "bias", "the bias is added twice", partial(convolved, p, x, weight, 2 * bias)
    for field, least in (("stride", 1), ("dilation", 1), ("pad", 0)):
        values = getattr(p, field)
        name = "padding" if field == "pad" else field
        if values != (least,) * 3:
            other = _with(p, field, (least, least, least))
            yield field, f"the {name} is ignored", partial(convolved, other, x, weight, bias)
        for a, b in itertools.combinations(range(3), 2):
            swapped = list(values)
            swapped[a], swapped[b] = values[b], values[a]
            if tuple(swapped) != values:
                other = _with(p, field, (swapped[0], swapped[1], swapped[2]))
                words = f"the {name} along {_NAMES[a]} and {_NAMES[b]} is swapped"
                yield field, words, partial(convolved, other, x, weight, bias)
    if p.group > 1:
        words = "groups are ignored: all maps read the first group's channels"
        first = np.concatenate([x.reshape(p.n, p.c, *p.size)[:, : p.c // p.group]] * p.group, axis=1)
        yield "group", words, partial(convolved, p, first, weight, bias)
    flipped = weight[..., ::-1, ::-1, ::-1]
    words = "the kernel is flipped: a convolution, not a cross-correlation"
    yield "kernel", words, partial(convolved, p, x, flipped, bias)
    for axis, name in enumerate(_NAMES):
        kept = np.moveaxis(weight.copy(), axis + 2, 0)
        kept[-1] = 0
        words = f"the kernel's last taps along {name} are left out"
        yield "left_out", words, partial(convolved, p, x, np.moveaxis(kept, 0, axis + 2), bias)
    short = weight.copy()
    short[:, -1] = 0
    yield "left_out", "the last channel is left out", partial(convolved, p, x, short, bias)
    turned = x.reshape(p.n, *p.size, p.c).transpose(0, 4, 1, 2, 3)
    words = "the volumes are read as if their channels came last (NDHWC)"
    yield "layout", words, partial(convolved, p, turned, weight, bias)
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(convolved, p, rounded(x), rounded(weight), bias)


def _with(p: Conv3d, field: str, values: Three) -> Conv3d:
    changed: dict[str, Any] = {field: values}
    return replace(p, **changed)


def convolved(p: Conv3d, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """What `p` says, tap by tap."""
    reach = [
        max(size + before, (out - 1) * step + (k - 1) * d + 1)
        for size, before, out, step, k, d in zip(
            p.size, p.pad, p.out, p.stride, p.kernel, p.dilation, strict=True
        )
    ]
    padded = np.zeros((p.n, p.group, p.c // p.group, *reach))
    inside = tuple(slice(before, before + size) for before, size in zip(p.pad, p.size, strict=True))
    padded[:, :, :, *inside] = x.reshape(p.n, p.group, p.c // p.group, *p.size)
    weight = weight.reshape(p.group, p.m // p.group, p.c // p.group, *p.kernel)
    y = np.zeros((p.n, p.group, p.m // p.group, *p.out))
    for tap in itertools.product(*map(range, p.kernel)):
        seen = tuple(
            slice(t * d, t * d + (out - 1) * step + 1, step)
            for t, d, out, step in zip(tap, p.dilation, p.out, p.stride, strict=True)
        )
        z, row, column = tap
        part = weight[..., z, row, column]
        y += np.einsum("ngczyx,gmc->ngmzyx", padded[:, :, :, *seen], part)
    y = y.reshape(p.n, p.m, *p.out)
    return y if bias is None else y + bias.reshape(-1, 1, 1, 1)
