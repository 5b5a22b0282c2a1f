"""Small shapes that a rung is tried on, each with one thing turned on, and shapes in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from kernels import launch
from kernels.params import (
    Binary,
    Cast,
    Conv,
    ConvPool,
    Gemm,
    Lrn,
    LrnPool,
    Pad,
    Params,
    Pool,
    Softmax,
    Transpose,
    Unary,
)
from kernels.registry import Rung

_Window = TypeVar("_Window", Conv, Pool)
_Ints = tuple[int, ...]
# Shapes and strides of both operands: dense, a column, a constant a channel, a scalar, rows of fours.
_BROADCASTS: tuple[tuple[_Ints, _Ints, _Ints], ...] = (
    ((37,), (1,), (1,)),
    ((5, 7), (7, 1), (1, 0)),
    ((2, 3, 8), (24, 8, 1), (0, 1, 0)),
    ((45,), (1,), (0,)),
    ((6, 12), (0, 1), (12, 1)),
)
# Shapes with what is added before and behind, each axis otherwise; reflected, less than there is.
_PADS: tuple[tuple[_Ints, _Ints, _Ints], ...] = (
    ((37,), (3,), (5,)),
    ((5, 9), (0, 2), (1, 4)),
    ((2, 4, 7, 6), (0, 0, 2, 1), (0, 0, 1, 3)),
    ((1030, 3), (1, 0), (0, 2)),
)
_WHOLE = ((1, 1), (5, 7), (33, 31))  # images that are pooled into one value each
_BARE: dict[str, Any] = dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right"), 0) | {
    "dilation_h": 1,
    "dilation_w": 1,
}
_TURNS: tuple[tuple[_Ints, _Ints], ...] = (
    ((37, 45), (1, 0)),
    ((3, 9, 10), (2, 0, 1)),
    ((2, 3, 4, 5), (0, 2, 1, 3)),
)


@dataclass(frozen=True)
class Shape:
    """tag: what it has beyond the plain one; "plain", "size" (odd sizes), "own" (the timed shape, smaller)
    and "all" (everything at once) say nothing of a mistake by themselves."""

    tag: str
    params: Params


def small_shapes(rung: Rung, params: Params, quick: bool = False) -> tuple[Shape, ...]:
    """The shapes of this rung's operator that it does not refuse. quick: three that say most."""
    found: dict[Params, Shape] = {}
    for shape in _drawn(params):
        if shape.params not in found and _taken(rung, shape.params):
            found[shape.params] = shape
    shapes = tuple(found.values())
    if quick:
        kept = [shape for shape in shapes if shape.tag in ("own", "all", "batch")]
        return tuple(kept) or shapes[:3]
    return shapes


def _taken(rung: Rung, params: Params) -> bool:
    if rung.refusal(params) is not None:
        return False
    return rung.device != "cuda" or launch.refusal(params, rung) is None


def _drawn(p: Params) -> Iterator[Shape]:
    match p:
        case Conv():
            yield from (Shape(tag, conv) for tag, conv in _convs(p))
        case Gemm():
            yield Shape("plain", replace(p, m=min(p.m, 5), n=min(p.n, 7), k=min(p.k, 9), batch=1, stride_a=0,
                                         stride_b=0, bias=False, activation=None))  # fmt: skip
            small = replace(p, batch=1, stride_a=0, stride_b=0, n=67, k=45, bias_stride_m=0, bias_stride_n=1)
            yield Shape("size", replace(small, m=min(p.m, 37)))
            yield Shape("bias", replace(small, m=min(p.m, 3), bias=True))
            yield Shape("activation", replace(small, m=min(p.m, 3), activation="tanh"))
            if p.batch > 1:
                three = replace(small, m=min(p.m, 3), n=9, k=13, batch=3)
                yield Shape("batch", replace(three, stride_a=three.m * 13 if p.stride_a else 0,
                                             stride_b=9 * 13 if p.stride_b else 0))  # fmt: skip
        case Pool():
            few = replace(p, n=2, c=min(p.c, 5))
            yield Shape("own", few)
            yield Shape("activation", replace(few, activation="tanh"))
            if few == replace(few, kh=p.h, kw=p.w, out_h=1, out_w=1, **_BARE):  # of the whole image
                yield from (Shape("size", replace(few, h=h, w=w, kh=h, kw=w)) for h, w in _WHOLE)
            else:
                yield from (Shape(tag, shape) for tag, shape in _pools(few).items())
        case Lrn():
            less = replace(p, n=2, c=min(p.c, 19), inner=min(p.inner, 35))
            yield Shape("own", less)
            yield from (Shape("size", replace(less, c=7, inner=16, size=size)) for size in (1, 4, 9))
            yield Shape("all", replace(less, n=3, c=33, inner=40, size=3, alpha=0.5, beta=0.6, bias=2.0))
        case LrnPool():
            both = replace(p, n=2, c=min(p.c, 19))
            yield Shape("own", both)
            yield from (Shape(tag, LrnPool.of(both.lrn, shape)) for tag, shape in _pools(both.pool).items())
        case ConvPool():
            yield from _conv_pools(p)
        case Softmax():
            yield Shape("own", replace(p, outer=min(p.outer, 3)))
            yield from (Shape("size", replace(p, outer=3, axis=axis, inner=1)) for axis in (1, 7, 1030))
            several = replace(p, outer=2, axis=33, inner=19)
            yield from (Shape("all", replace(several, log=log)) for log in (False, True))
        case Unary() | Cast():
            yield from (Shape("size", replace(p, size=size)) for size in (1, 7, 1030))
        case Binary():
            for dims, a, b in _BROADCASTS:
                yield Shape("size", replace(p, shape=dims, strides_a=a, strides_b=b))
            if p.dtype == "float32":
                dense = replace(p, shape=(37,), strides_a=(1,), strides_b=(1,))
                yield Shape("activation", replace(dense, activation="tanh"))
        case Pad():
            yield from (Shape("size", replace(p, shape=d, begin=b, end=e)) for d, b, e in _PADS)
            if p.mode == "constant":
                yield Shape(
                    "all", replace(p, shape=(2, 3, 4, 5), begin=(0, 1, 0, 2), end=(1, 0, 3, 1), value=-1.5)
                )
                yield Shape("cut", replace(p, shape=(6, 7), begin=(-1, 2), end=(3, -2)))
        case Transpose():
            for dims, perm in _TURNS:
                yield Shape("size", replace(p, shape=dims, perm=perm))


def _pools(p: Pool) -> dict[str, Pool]:
    """Other windows over a small image of as many planes."""
    plain = Pool(p.kind, p.n, p.c, 9, 11, 2, 3, 0, 0)
    padded = replace(plain, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
    shapes = {
        "plain": plain,
        "pad": padded,
        "strides": replace(plain, stride_h=2, stride_w=3),
        "dilation": replace(plain, dilation_h=2, dilation_w=3),
        "all": replace(padded, h=14, w=17, kh=3, stride_h=2, stride_w=2,
                       count_include_pad=p.kind == "average"),
    }  # fmt: skip
    sized = {tag: _sized(shape) for tag, shape in shapes.items()}
    # Windows of which the last ones reach beyond the padded image, as ceil_mode has them.
    beyond = replace(padded, h=10, w=12, kh=3, stride_h=2, stride_w=2, count_include_pad=p.kind == "average")
    return sized | {"ceil": replace(beyond, out_h=6, out_w=7)}


def _convs(p: Conv) -> Iterator[tuple[str, Conv]]:
    """Small convolutions, the last of them the timed shape's own."""
    kh, kw = (p.kh, p.kw) if max(p.kh, p.kw) <= 7 else (3, 3)
    plain = Conv(1, 3, kh + 5, kw + 7, 4, kh, kw, 0, 0)
    shapes = {
        "plain": plain,
        "bias": replace(plain, bias=True),
        "pad": replace(plain, pad_top=1, pad_left=min(2, max(1, kw - 1)), pad_bottom=min(2, max(1, kh - 1)),
                       pad_right=1),
        "stride": replace(plain, stride_h=2, stride_w=2),
        "strides": replace(plain, h=kh + 8, w=kw + 9, stride_h=2, stride_w=3),
        "group": replace(plain, c=6, m=4, group=2),
        "dilation": replace(plain, h=2 * kh + 6, w=3 * kw + 5, dilation_h=2, dilation_w=3),
        "activation": replace(plain, activation="relu"),
        "batch": replace(plain, n=3),
        "kernel": replace(plain, kh=kh + 1),
        "size": replace(plain, h=kh + 12, w=kw + 18, c=19, m=37),
        "all": replace(plain, n=5, c=10, m=6, h=kh + 9, w=kw + 13, group=2, bias=True, pad_top=2, pad_left=1,
                       pad_bottom=1, pad_right=2, stride_h=3, stride_w=2, activation="tanh"),
    }  # fmt: skip
    for tag, shape in shapes.items():
        yield tag, _sized(shape)
    # The timed shape itself with few images, a small one and fewer channels.
    reach_h, reach_w = (p.kh - 1) * p.dilation_h + 1, (p.kw - 1) * p.dilation_w + 1
    high, wide = reach_h + 4 * p.stride_h - p.pad_top, reach_w + 6 * p.stride_w - p.pad_left
    c, m = min(p.c // p.group, 8) * p.group, min(p.m // p.group, 9) * p.group
    if p.group > 16:
        c, m = p.c, p.m
    own = replace(p, n=2, c=c, m=m, h=max(1, min(p.h, high)), w=max(1, min(p.w, wide)))
    yield "own", _sized(own)


def _conv_pools(p: ConvPool) -> Iterator[Shape]:
    """Each small convolution under a plain pool, a plain convolution under each small pool, and the timed
    shape's own windows, of few images and channels."""
    for tag, conv in _convs(p.conv):
        halves = Pool(p.pool.kind, 0, 0, 0, 0, min(2, conv.out_h), min(2, conv.out_w), 0, 0, 2, 2)
        if tag != "own":
            yield Shape(tag, _over(conv, halves))
        elif p.pool.kh * p.pool.dilation_h <= conv.out_h and p.pool.kw * p.pool.dilation_w <= conv.out_w:
            yield Shape(tag, _over(conv, p.pool))
        else:
            yield Shape(tag, _over(replace(p.conv, n=2, c=conv.c, m=conv.m), p.pool))
    for tag, pool in _pools(replace(p.pool, n=2, c=3)).items():
        conv = Conv(2, 2, pool.h + 2, pool.w + 1, 3, 3, 2, pool.h, pool.w, bias=True)
        yield Shape(tag, ConvPool(conv, pool))
        if tag == "plain":
            yield Shape("activation", ConvPool(conv, replace(pool, activation="tanh")))


def _over(conv: Conv, pool: Pool) -> ConvPool:
    """The pool's window over what the convolution gives."""
    return ConvPool(conv, _sized(replace(pool, n=conv.n, c=conv.m, h=conv.out_h, w=conv.out_w)))


def _sized(p: _Window) -> _Window:
    """With the output's size that follows from the other fields."""
    out_h = (p.h + p.pad_top + p.pad_bottom - (p.kh - 1) * p.dilation_h - 1) // p.stride_h + 1
    out_w = (p.w + p.pad_left + p.pad_right - (p.kw - 1) * p.dilation_w - 1) // p.stride_w + 1
    return replace(p, out_h=max(1, out_h), out_w=max(1, out_w))


sized = _sized


def words(p: Params) -> str:
    """Params as one reads them: "2×3×9×9 → 4×7×7, kernel 3×3, stride 2, pad 1, bias"."""
    if isinstance(p, LrnPool):
        return f"{words(p.pool)}, of LRN over {p.size} channels"
    if isinstance(p, ConvPool):
        return f"{words(p.conv)}; then → {p.pool.out_h}×{p.pool.out_w}, {_pool_words(p.pool)}"
    if isinstance(p, Pool):
        return f"{p.n}×{p.c}×{p.h}×{p.w} → {p.out_h}×{p.out_w}, {_pool_words(p)}"
    if not isinstance(p, Conv):
        told = [(f.name, getattr(p, f.name)) for f in fields(p) if getattr(p, f.name) != f.default]
        return f"{p.op} " + ", ".join(f"{name} {_word(value)}" for name, value in told)
    parts = [f"{p.n}×{p.c}×{p.h}×{p.w} → {p.m}×{p.out_h}×{p.out_w}", f"kernel {p.kh}×{p.kw}", *_windows(p)]
    parts += [f"group {p.group}"] if p.group > 1 else []
    parts += ["bias"] if p.bias else []
    parts += [p.activation] if p.activation else []
    return ", ".join(parts)


def _pool_words(p: Pool) -> str:
    parts = [f"{p.kind} of {p.kh}×{p.kw}", *_windows(p)]
    parts += ["padding counted"] if p.count_include_pad else []
    return ", ".join(parts + ([p.activation] if p.activation else []))


def _windows(p: Conv | Pool) -> list[str]:
    """Stride, dilation and padding in words, where there are any."""
    parts = []
    for name in ("stride", "dilation"):
        pair = getattr(p, f"{name}_h"), getattr(p, f"{name}_w")
        if pair != (1, 1):
            parts.append(f"{name} {pair[0]}" if pair[0] == pair[1] else f"{name} {pair[0]}×{pair[1]}")
    pads = (p.pad_top, p.pad_left, p.pad_bottom, p.pad_right)
    if any(pads):
        parts.append(f"pad {pads[0]}" if len(set(pads)) == 1 else f"pad {', '.join(map(str, pads))}")
    return parts


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return "×".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
