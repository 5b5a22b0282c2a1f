"""What windows over images see, and mistakes of what slides them: convolutions, pools, and normalisation
across channels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from bench.judge.mistakes.common import Mistake, mistakes
from bench.judge.mistakes.elementwise import ROUNDINGS, activated, other_activations
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d, Three
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex

Window = TypeVar("Window", Conv, Pool)


def places(p: Conv | Pool) -> tuple[np.ndarray, np.ndarray]:
    """(out_h, kh) rows and (out_w, kw) columns of the image that the windows see; beyond it: padding."""
    rows = np.arange(p.out_h)[:, None] * p.stride_h - p.pad_top + np.arange(p.kh) * p.dilation_h
    columns = np.arange(p.out_w)[:, None] * p.stride_w - p.pad_left + np.arange(p.kw) * p.dilation_w
    return rows, columns


def seen(p: Conv | Pool, x: np.ndarray, beyond: str = "", fill: float = 0.0) -> np.ndarray:
    """(n, c, out_h, kh, out_w, kw) of x (n, c, h, w). beyond: what lies beyond the image: "" (the fill),
    "edge", "reflect", "wrap", or "memory": what lies beside a row of the image in memory."""
    rows, columns = places(p)
    inside = _within(rows, p.h)[:, :, None, None] & _within(columns, p.w)
    if beyond == "memory":
        flat = (rows[:, :, None, None] * p.w + columns) + (
            np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], 1, 1, 1, 1) * (p.h * p.w)
        )
        real = _within(flat, x.size) & _within(rows, p.h)[:, :, None, None]
        return np.where(real, x.reshape(-1)[flat.clip(0, x.size - 1)], fill)
    if beyond:
        rows, columns = _folded(rows, p.h, beyond), _folded(columns, p.w, beyond)
        return x[:, :, rows][..., columns]
    found = x[:, :, rows.clip(0, p.h - 1)][..., columns.clip(0, p.w - 1)]
    return np.where(inside, found, fill)


def _within(places: np.ndarray, size: int) -> np.ndarray:
    return (places >= 0) & (places < size)


def _folded(places: np.ndarray, size: int, how: str) -> np.ndarray:
    if how == "wrap":
        return places % size
    if how == "reflect" and size > 1:
        around = places % (2 * size - 2)
        return np.minimum(around, 2 * size - 2 - around)
    return places.clip(0, size - 1)


def reaches_beyond(p: Conv | Pool) -> np.ndarray:
    """(out_h, out_w): whose window sees more than the image."""
    rows, columns = places(p)
    high, wide = (_within(rows, p.h).all(axis=1), _within(columns, p.w).all(axis=1))
    return np.asarray(~np.logical_and.outer(high, wide))


def taken_otherwise(p: Window) -> Iterator[tuple[str, str, Window]]:
    """(fault, words, params) of windows with a field mistaken; the output has its own size."""
    if p.stride_h != p.stride_w:
        yield (
            "stride",
            "the strides along height and width are swapped",
            _with(p, "stride", p.stride_w, p.stride_h),
        )
        yield (
            "stride",
            "the stride along height is taken from the other axis",
            _with(p, "stride", p.stride_w, p.stride_w),
        )
        yield (
            "stride",
            "the stride along width is taken from the other axis",
            _with(p, "stride", p.stride_h, p.stride_h),
        )
    if (p.stride_h, p.stride_w) != (1, 1):
        yield "stride", "the stride is ignored", _with(p, "stride", 1, 1)
    if p.stride_h != 1:
        yield "stride", "the stride along height is ignored", _with(p, "stride", 1, p.stride_w)
    if p.stride_w != 1:
        yield "stride", "the stride along width is ignored", _with(p, "stride", p.stride_h, 1)
    if (p.dilation_h, p.dilation_w) != (1, 1):
        yield "dilation", "the dilation is ignored", _with(p, "dilation", 1, 1)
    if p.dilation_h != p.dilation_w:
        swapped = _with(p, "dilation", p.dilation_w, p.dilation_h)
        yield "dilation", "the dilations along height and width are swapped", swapped
    if p.dilation_h != 1:
        yield "dilation", "the dilation along height is ignored", _with(p, "dilation", 1, p.dilation_w)
    if p.dilation_w != 1:
        yield "dilation", "the dilation along width is ignored", _with(p, "dilation", p.dilation_h, 1)
    if p.pad_top or p.pad_left:
        yield "pad", "the padding is ignored", replace(p, pad_top=0, pad_left=0)
        if p.pad_top:
            yield "pad", "the padding at the top is ignored", replace(p, pad_top=0)
        if p.pad_left:
            yield "pad", "the padding at the left is ignored", replace(p, pad_left=0)
    if (p.pad_top, p.pad_left) != (p.pad_bottom, p.pad_right):
        swapped = replace(p, pad_top=p.pad_bottom, pad_left=p.pad_right)
        yield "pad", "the padding at the beginning and the padding at the end are swapped", swapped
    if p.pad_top != p.pad_left:
        swapped = replace(p, pad_top=p.pad_left, pad_left=p.pad_top)
        yield "pad", "the padding at the top and at the left is swapped", swapped
    for top, left in ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
        axes = " and ".join(n for n, step in (("top", top), ("left", left)) if step)
        more = "more" if top + left > 0 else "less"
        shifted = replace(p, pad_top=p.pad_top + top, pad_left=p.pad_left + left)
        yield "pad", f"the padding is off by one: one {more} at the {axes}", shifted


def _with(p: Window, name: str, high: int, wide: int) -> Window:
    fields: dict[str, Any] = {f"{name}_h": high, f"{name}_w": wide}
    return replace(p, **fields)


Sum = Callable[..., np.ndarray]


@mistakes.register
def _conv(p: Conv, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> Iterator[Mistake]:
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


_AXES = ("depth", "height", "width")


@mistakes.register
def _conv3d(
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
            other = _with_axes(p, field, (least, least, least))
            yield field, f"the {name} is ignored", partial(convolved, other, x, weight, bias)
        for a, b in itertools.combinations(range(3), 2):
            swapped = list(values)
            swapped[a], swapped[b] = values[b], values[a]
            if tuple(swapped) != values:
                other = _with_axes(p, field, (swapped[0], swapped[1], swapped[2]))
                words = f"the {name} along {_AXES[a]} and {_AXES[b]} is swapped"
                yield field, words, partial(convolved, other, x, weight, bias)
    if p.group > 1:
        words = "groups are ignored: all maps read the first group's channels"
        first = np.concatenate([x.reshape(p.n, p.c, *p.size)[:, : p.c // p.group]] * p.group, axis=1)
        yield "group", words, partial(convolved, p, first, weight, bias)
    flipped = weight[..., ::-1, ::-1, ::-1]
    words = "the kernel is flipped: a convolution, not a cross-correlation"
    yield "kernel", words, partial(convolved, p, x, flipped, bias)
    for axis, name in enumerate(_AXES):
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


def _with_axes(p: Conv3d, field: str, values: Three) -> Conv3d:
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


@mistakes.register
def _conv_transpose(
    p: ConvTranspose, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> Iterator[Mistake]:
    weight = weight.reshape(p.input_shapes[1])
    made = partial(transposed, p, x, weight, bias)
    words = "answers as for inputs of zeros, whatever it is given"
    yield "zeros_only", words, partial(transposed, p, 0 * x, weight, bias)
    if bias is not None:
        yield "bias", "the bias is missing", partial(transposed, p, x, weight, None)
        yield "bias", "the bias is added twice", partial(transposed, p, x, weight, 2 * bias)
    strides = replace(p, stride_h=p.stride_w, stride_w=p.stride_h)
    dilations = replace(p, dilation_h=p.dilation_w, dilation_w=p.dilation_h)
    pads = replace(p, pad_top=p.pad_left, pad_left=p.pad_top)
    for fault, words, other in (
        ("stride", "the stride is ignored", replace(p, stride_h=1, stride_w=1)),
        ("stride", "the strides along height and width are swapped", strides),
        ("dilation", "the dilation is ignored", replace(p, dilation_h=1, dilation_w=1)),
        ("dilation", "the dilations along height and width are swapped", dilations),
        ("pad", "the padding is ignored", replace(p, pad_top=0, pad_left=0)),
        ("pad", "the padding at the top and at the left is swapped", pads),
    ):
        if other != p:
            yield fault, words, partial(transposed, other, x, weight, bias)
    if p.group > 1:
        words = "groups are ignored: all maps read the first group's channels"
        yield "group", words, partial(made, first_group=True)
    if p.kh * p.kw > 1:
        words = "the kernel is flipped: the window is added the other way round"
        yield "kernel", words, partial(transposed, p, x, weight[..., ::-1, ::-1], bias)
        last = weight.copy()
        last[..., -1, -1] = 0
        yield "left_out", "the last tap of the kernel is left out", partial(transposed, p, x, last, bias)
    if p.kh == p.kw:
        words = "the kernel's rows and columns are swapped"
        yield "kernel", words, partial(transposed, p, x, weight.swapaxes(2, 3), bias)
    swapped = weight.reshape(p.m // p.group, p.c, p.kh, p.kw).swapaxes(0, 1)
    yield "layout", "maps and channels of the weights are swapped", partial(transposed, p, x, swapped, bias)
    short = x.copy()
    short[:, -1] = 0
    yield "left_out", "the last channel is left out", partial(transposed, p, short, weight, bias)
    for words, rounded in ROUNDINGS:
        yield "half_precision", words, partial(transposed, p, rounded(x), rounded(weight), bias)


def transposed(
    p: ConvTranspose,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    first_group: bool = False,
) -> np.ndarray:
    """What `p` says, added up element by element of the window."""
    channels, maps = p.c // p.group, p.m // p.group
    grouped = x.reshape(p.n, p.group, channels, p.h, p.w)
    if first_group:
        grouped = np.broadcast_to(grouped[:, :1], grouped.shape)
    taps = weight.reshape(p.group, channels, maps, p.kh, p.kw)
    bottom = max(p.whole[0], p.out_h) + p.pad_top
    right = max(p.whole[1], p.out_w) + p.pad_left
    y = np.zeros((p.n, p.group, maps, bottom, right))
    for i in range(p.kh):
        for j in range(p.kw):
            top, left = i * p.dilation_h, j * p.dilation_w
            part = np.einsum("ngchw,gcm->ngmhw", grouped, taps[..., i, j])
            y[
                ...,
                top : top + (p.h - 1) * p.stride_h + 1 : p.stride_h,
                left : left + (p.w - 1) * p.stride_w + 1 : p.stride_w,
            ] += part
    kept = y[..., p.pad_top : p.pad_top + p.out_h, p.pad_left : p.pad_left + p.out_w]
    answer = kept.reshape(p.n, p.m, p.out_h, p.out_w)
    return answer if bias is None else answer + bias.reshape(-1, 1, 1)


@mistakes.register
def _pool(p: Pool, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(pooled, p, x)
    if p.kind == "max":
        yield "kind", "the average is taken, not the maximum", partial(pooled, replace(p, kind="average"), x)
        yield "kind", "the minimum is taken, not the maximum", partial(_least, p, x)
        words = "the padding counts as zeros, which may win the maximum"
        yield "pad", words, partial(made, fill=0.0)
        yield "kind", "the maximum begins at 0, so that negative values are lost", partial(made, least=0.0)
    else:
        yield "kind", "the maximum is taken, not the average", partial(pooled, replace(p, kind="max"), x)
        yield "scale", "the sum is not divided", partial(made, divisor="one")
        if p.count_include_pad:
            other = replace(p, count_include_pad=False)
            yield "pad", "the padding is not counted in the average", partial(pooled, other, x)
        else:
            other = replace(p, count_include_pad=True)
            yield "pad", "the padding is counted in the average", partial(pooled, other, x)
        words = "the average is always divided by the window's whole size"
        yield "pad", words, partial(made, divisor="whole")
        if p.activation:
            early = partial(pooled, replace(p, activation=None), activated(x, p.activation))
            yield "activation", "the activation is applied before the average", early
    yield from other_activations(p.activation, partial(pooled, replace(p, activation=None), x))
    for fault, words, other in taken_otherwise(p):
        yield fault, words, partial(pooled, other, x)
    for beyond, words in (
        ("edge", "the padding repeats the edge"),
        ("memory", "padding at the sides reads the neighbouring row"),
    ):
        yield "pad", words, partial(made, beyond=beyond)
    for words, place in (
        ("the last row of the window is left out", (-1, slice(None))),
        ("the last column of the window is left out", (slice(None), -1)),
        ("the first row of the window is left out", (0, slice(None))),
        ("the first column of the window is left out", (slice(None), 0)),
        ("the last tap of the window is left out", (-1, -1)),
        ("the first tap of the window is left out", (0, 0)),
    ):
        taken = np.ones((p.kh, p.kw), bool)
        taken[place] = False
        if taken.any():
            yield "left_out", words, partial(made, taken=taken)
    turned = x.reshape(p.n, p.h, p.w, p.c).transpose(0, 3, 1, 2)
    yield "layout", "the images are read as if their channels came last (NHWC)", partial(pooled, p, turned)


def pooled(
    p: Pool,
    x: np.ndarray,
    *,
    fill: float | None = None,
    least: float = -np.inf,
    divisor: str = "",
    beyond: str = "",
    taken: np.ndarray | None = None,
) -> np.ndarray:
    """What `p` says, (n, c, out_h, out_w). fill: what the padding holds (None: nothing that counts); least:
    where a maximum begins; divisor: "one" or "whole" (the window's size); beyond: see windows.seen; taken:
    (kh, kw), the taps that are read."""
    largest = p.kind == "max"
    nothing = -np.inf if largest else 0.0
    windows = seen(p, x, beyond, nothing if fill is None else fill)
    taps = np.ones((p.kh, p.kw), bool) if taken is None else taken
    windows = np.where(taps[:, None, :], windows, nothing)
    if largest:
        return activated(np.maximum(windows.max(axis=(3, 5)), least), p.activation)
    total = windows.sum(axis=(3, 5))
    if divisor != "one":
        total /= p.kh * p.kw if divisor == "whole" else _counted(p, taps)
    return activated(total, p.activation)


def _least(p: Pool, x: np.ndarray) -> np.ndarray:
    return activated(-pooled(replace(p, activation=None), -x), p.activation)


def _counted(p: Pool, taps: np.ndarray) -> np.ndarray:
    rows, columns = places(p)
    pads = (p.pad_top, p.pad_left, p.pad_bottom, p.pad_right) if p.count_include_pad else (0, 0, 0, 0)
    high = (rows >= -pads[0]) & (rows < p.h + pads[2])
    wide = (columns >= -pads[1]) & (columns < p.w + pads[3])
    counted = np.einsum("akbl,kl->ab", high[:, :, None, None] & wide, taps.astype(float))
    return np.asarray(np.maximum(counted, 1))


@mistakes.register
def _pool_index(p: PoolIndex, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(_indices, p, x)
    yield "kind", "the place is the minimum's, not the maximum's", partial(_indices, p, -x)
    words = "rows and columns of the image are counted the other way round"
    yield "layout", words, partial(_indices, replace(p, by_columns=not p.by_columns), x)
    words = "places are counted within each image, not in the whole tensor"
    yield "layout", words, partial(made, whole=False)
    yield "place", "places are counted within each window", partial(made, in_window=True)
    for fault, words, other in taken_otherwise(p.pool):
        yield fault, words, partial(_indices, replace(p, pool=other), x)


def _indices(p: PoolIndex, x: np.ndarray, whole: bool = True, in_window: bool = False) -> np.ndarray:
    """What `p` says; places within each image where not `whole`."""
    pool = p.pool
    windows = seen(pool, x.reshape(pool.n, pool.c, pool.h, pool.w), "", -np.inf)  # (n, c, oh, kh, ow, kw)
    flat = windows.transpose(0, 1, 2, 4, 3, 5).reshape(*pool.output_shape, pool.kh * pool.kw)
    tap = flat.argmax(axis=-1)
    if in_window:
        return tap
    rows, columns = places(pool)
    row = rows[np.arange(pool.out_h)[:, None], tap // pool.kw]
    column = columns[np.arange(pool.out_w), tap % pool.kw]
    place = column * pool.h + row if p.by_columns else row * pool.w + column
    images = np.arange(pool.n * pool.c).reshape(pool.n, pool.c, 1, 1) * (pool.h * pool.w)
    return np.asarray(place + images if whole else place)


@mistakes.register
def _conv_pool(p: ConvPool, *inputs: np.ndarray) -> Iterator[Mistake]:
    for fault, words, answer in mistakes(p.conv, *inputs):
        yield fault, words, _maps_pooled(p, answer)
    for fault, words, answer in mistakes(p.pool, convolution(p.conv, *inputs)):
        yield fault, f"in the pool {words}", answer


def _maps_pooled(p: ConvPool, maps: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
    return lambda: pooled(p.pool, maps())


@mistakes.register
def _lrn(p: Lrn, x: np.ndarray) -> Iterator[Mistake]:
    made = partial(normalised, p, x)
    yield "scale", "the normalisation is missing", lambda: x
    if p.size > 1:
        raised = replace(p, alpha=p.alpha * p.size)
        yield "scale", "alpha is not divided by the size", partial(normalised, raised, x)
    yield "bias", "the bias is missing", partial(normalised, replace(p, bias=0.0), x)
    if p.bias != 1:
        yield "bias", "the bias is taken to be 1", partial(normalised, replace(p, bias=1.0), x)
    for beta, words in (
        (1.0, "beta is ignored"),
        (0.5, "beta is taken to be 0.5"),
        (0.75, "beta is taken to be 0.75"),
    ):
        if p.beta != beta:
            yield "scale", words, partial(normalised, replace(p, beta=beta), x)
    yield (
        "sign",
        "it multiplies by the sum's power instead of dividing",
        partial(normalised, replace(p, beta=-p.beta), x),
    )
    yield "kind", "the values of the sum are not squared", partial(made, squares=np.abs(x))
    yield "kind", "the values of the sum are not squared and keep their sign", partial(made, squares=x)
    if p.size > 1:
        before = (p.size - 1) // 2
        yield (
            "left_out",
            "the last channel of each sum is left out",
            partial(made, size=p.size - 1, before=before),
        )
        yield (
            "left_out",
            "the first channel of each sum is left out",
            partial(made, size=p.size - 1, before=before - 1),
        )
        words = "each sum is of the channels before it, none behind"
        yield "layout", words, partial(made, before=p.size - 1)
        yield "layout", "each sum is of the channels behind it, none before", partial(made, before=0)
        if p.size % 2 == 0:
            yield "layout", "sums of even size lean the other way", partial(made, before=p.size // 2)
    yield "kind", "each sum holds its own channel alone", partial(made, size=1, before=0)
    yield "kind", "each sum is of all channels", partial(made, size=2 * p.c, before=p.c)


def normalised(
    p: Lrn,
    x: np.ndarray,
    *,
    size: int | None = None,
    before: int | None = None,
    squares: np.ndarray | None = None,
) -> np.ndarray:
    """What `p` says of x (n, c, …). size, before: how many channels a sum has, and how many of them lie
    before its own; squares: what is summed."""
    squares = x * x if squares is None else squares
    size = p.size if size is None else size
    before = (p.size - 1) // 2 if before is None else before
    total = np.zeros_like(x)
    for c in range(p.c):
        total[:, c] = squares[:, max(0, c - before) : max(0, c - before + size)].sum(axis=1)
    with np.errstate(all="ignore"):
        return np.asarray(x / (p.bias + p.alpha / p.size * total) ** p.beta)


@mistakes.register
def _lrn_pool(p: LrnPool, x: np.ndarray) -> Iterator[Mistake]:
    if p.dtype != "float32":
        return  # what is wrong with a sum or a window is not to be told from steps of eight bits
    for fault, words, answer in mistakes(p.lrn, x):
        yield fault, words, _normal_pooled(p, answer)
    for fault, words, answer in mistakes(p.pool, normalised(p.lrn, x)):
        yield fault, f"in the pool {words}", answer


def _normal_pooled(p: LrnPool, normal: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
    return lambda: pooled(p.pool, normal())
