"""Mistakes of convolutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bench.judge.mistakes import Mistake
from bench.judge.mistakes.values import ROUNDINGS, activated, other_activations
from bench.judge.mistakes.windows import seen, taken_otherwise
from kernels.ops.conv import Conv

Sum = Callable[..., np.ndarray]


def mistakes(p: Conv, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> Iterator[Mistake]:
    def made(q: Conv = p, x: np.ndarray = x, w: np.ndarray = weight, b: np.ndarray | None = bias,
             **how: str) -> np.ndarray:  # fmt: skip
        return convolution(q, x, w, b, **how)

    yield "zeros_only", "answers as for inputs of zeros, whatever it is given", partial(made, x=0 * x)
    if bias is not None:
        yield from _biases(p, x, weight, bias)
    yield from other_activations(p.activation, partial(made, replace(p, activation=None)))
    if p.group > 1:
        words = "groups are ignored: all maps read the first group's channels"
        yield "group", words, partial(made, groups="first")
        words = "groups are mixed up: neighbouring maps take them in turn"
        yield "group", words, partial(made, groups="in turn")
        yield "group", "groups read their channels in reverse order", partial(made, groups="reverse")
    for fault, words, other in taken_otherwise(p):
        yield fault, words, partial(made, other)
    for beyond, words in (
        ("edge", "the padding repeats the edge instead of being zeros"),
        ("reflect", "the padding reflects the image instead of being zeros"),
        ("wrap", "the padding wraps around instead of being zeros"),
        ("memory", "padding at the sides reads the neighbouring row instead of zeros"),
    ):
        yield "pad", words, partial(made, beyond=beyond)
    yield from ((fault, words, partial(made, w=w)) for fault, words, w in _weights(p, weight))
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(made, x=rounded(x), w=rounded(weight))
    turned = x.reshape(p.n, p.h, p.w, p.c).transpose(0, 3, 1, 2)
    yield "layout", "the images are read as if their channels came last (NHWC)", partial(made, x=turned)
    yield from _images(p, made, x)


def _biases(p: Conv, x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> Iterator[Mistake]:
    def made(b: np.ndarray | None) -> np.ndarray:
        return convolution(p, x, weight, b)

    def late() -> np.ndarray:
        return made(None) + bias.reshape(-1, 1, 1)

    yield "bias", "the bias is missing", partial(made, None)
    if p.activation:
        yield "bias", "the bias is added after the activation", late
    yield "bias", "the bias is added twice", partial(made, 2 * bias)
    yield "bias", "the bias is subtracted", partial(made, -bias)
    yield "bias", "the bias of map 0 is added to every map", partial(made, np.full_like(bias, bias[0]))
    yield "bias", "the bias of the next map is added to each", partial(made, np.roll(bias, -1))
    yield "bias", "the bias of the map before is added to each", partial(made, np.roll(bias, 1))


def _weights(p: Conv, w: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
    """Weights (m, c / group, kh, kw) of which some are left out, or read in another order."""
    channels = w.shape[1]
    if p.kh * p.kw > 1:
        yield "kernel", "the kernel is flipped: a convolution, not a cross-correlation", w[..., ::-1, ::-1]
    if p.kh > 1:
        yield "kernel", "the kernel is upside down", w[..., ::-1, :]
        yield "left_out", "the last row of the kernel is left out", without(w, ..., -1, slice(None))
        yield "left_out", "the first row of the kernel is left out", without(w, ..., 0, slice(None))
    if p.kw > 1:
        yield "kernel", "the kernel's columns are in reverse order", w[..., ::-1]
        yield "left_out", "the last column of the kernel is left out", without(w, ..., -1)
        yield "left_out", "the first column of the kernel is left out", without(w, ..., 0)
    yield "left_out", "the last tap of the kernel is left out", without(w, ..., -1, -1)
    yield "left_out", "the first tap of the kernel is left out", without(w, ..., 0, 0)
    yield "left_out", "the last channel is left out", without(w, slice(None), -1)
    yield "left_out", "the first channel is left out", without(w, slice(None), 0)
    yield "left_out", "the last product of each sum is left out", without(w, slice(None), -1, -1, -1)
    yield "left_out", "the first product of each sum is left out", without(w, slice(None), 0, 0, 0)
    for whole in (2, 4, 8, 16, 32):
        words = f"the channels beyond the last whole {whole} are left out"
        yield "left_out", words, without(w, slice(None), slice(channels // whole * whole, None))
    for whole in (4, 8, 16, 32):
        flat, depth = w.reshape(p.m, -1), w[0].size
        words = f"the products of each sum beyond the last whole {whole} are left out"
        yield (
            "left_out",
            words,
            without(flat, slice(None), slice(depth // whole * whole, None)).reshape(w.shape),
        )
    if p.kh == p.kw:
        yield "kernel", "the kernel's rows and columns are swapped", w.swapaxes(2, 3)
    else:
        words = "the kernel's height and width are taken for each other where the weights are read"
        yield "kernel", words, w.reshape(p.m, channels, p.kw, p.kh).swapaxes(2, 3)
    other = w.reshape(channels, p.m, p.kh, p.kw).swapaxes(0, 1)
    yield "layout", "maps and channels of the weights are swapped", other
    last = w.reshape(p.m, p.kh, p.kw, channels).transpose(0, 3, 1, 2)
    yield "layout", "the weights are read with their channels last", last
    first = w.reshape(p.kh, p.kw, channels, p.m).transpose(3, 2, 0, 1)
    yield "layout", "the weights are read as height, width, channels, maps", first
    yield "layout", "the channels are taken in reverse order", w[:, ::-1]
    yield "layout", "the weights of the maps are taken in reverse order", w[::-1]
    yield "layout", "the channels are off by one: each reads the one before", np.roll(w, -1, 1)
    yield "layout", "the channels are off by one: each reads the next one", np.roll(w, 1, 1)


def _images(p: Conv, made: Sum, x: np.ndarray) -> Iterator[Mistake]:
    """Images of a batch taken from the wrong place."""
    if p.n < 2:
        return
    flat, size = x.reshape(-1), p.c * p.h * p.w
    for apart, words in ((p.h * p.w, "channel"), (p.c // p.group * p.h * p.w, "group")):
        if apart != size:
            there = np.stack([flat[i * apart : i * apart + size] for i in range(p.n)]).reshape(x.shape)
            yield "batch_one_only", f"the images are taken to lie one {words} apart", partial(made, x=there)


def without(array: np.ndarray, *place: Any) -> np.ndarray:
    """Zeros at a place."""
    array = array.copy()
    array[place] = 0
    return array


def convolution(
    p: Conv,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    *,
    groups: str = "",
    beyond: str = "",
) -> np.ndarray:
    """The sum that `p` says, (n, m, out_h, out_w), whatever the padding. groups: "first": all maps read the
    first group's channels; "in turn": map i is of group i mod group; "reverse": group i reads the channels of
    the one as far from the end. beyond: see windows.seen."""
    y = np.empty((p.n, p.m, p.out_h, p.out_w))
    windows = seen(p, x, beyond)
    channels, maps = p.c // p.group, p.m // p.group
    weight = weight.reshape(p.m, channels, p.kh, p.kw)
    for g in range(p.group):
        first = {"first": 0, "reverse": (p.group - 1 - g) * channels}.get(groups, g * channels)
        part = np.arange(g, p.m, p.group) if groups == "in turn" else np.arange(g * maps, (g + 1) * maps)
        of = windows[:, first : first + channels]
        y[:, part] = np.tensordot(of, weight[part], ((1, 3, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
    if bias is not None:
        y += bias.reshape(-1, 1, 1)
    return activated(y, p.activation)
