"""Small runs of steps for a kernel of a whole net, drawn weights for them, and what they give in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.measure.answers import one_node, oracle
from kernels.net.text import Weights
from kernels.ops import Params, sized
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary


def conv(n: int, c: int, h: int, w: int, m: int, k: int, **more: object) -> Conv:
    return sized(Conv(n, c, h, w, m, k, k, 0, 0, **more))  # type: ignore[arg-type]


def pooled(made: Conv, size: int, kind: str = "max", activation: str | None = None, **more: int) -> ConvPool:
    window = Pool(
        kind, made.n, made.m, made.out_h, made.out_w, size, size, 0, 0, size, size, activation=activation
    )
    return ConvPool(made, sized(Pool(**{**vars(window), **more})))  # type: ignore[arg-type]


def lenet(n: int) -> tuple[Params, ...]:
    pads = {"pad_top": 2, "pad_left": 2, "pad_bottom": 2, "pad_right": 2}
    first = pooled(conv(n, 1, 28, 28, 6, 5, bias=True, **pads), 2, activation="tanh")
    second = pooled(conv(n, 6, 14, 14, 16, 5, bias=True), 2, activation="tanh")
    return (
        first,
        second,
        Gemm(n, 120, 400, trans_b=True, bias=True, activation="tanh"),
        Gemm(n, 84, 120, trans_b=True, bias=True, activation="tanh"),
        Gemm(n, 10, 84, trans_b=True, bias=True),
        Softmax(n, 10, 1),
    )


def odd(n: int) -> tuple[Params, ...]:
    """Nothing a multiple of anything: groups, strides, dilation, overlapping windows, an average, no bias."""
    a = conv(n, 3, 17, 13, 6, 3, group=3, stride_h=2, pad_top=1, pad_left=2, pad_right=1, activation="relu")
    b = Pool("max", n, 6, a.out_h, a.out_w, 3, 3, 0, 0, 2, 1, 1, 1, 1, 1)
    b = sized(b)
    c = conv(n, 6, b.out_h, b.out_w, 5, 2, dilation_h=2, bias=True, activation="sigmoid")
    d = pooled(conv(n, 5, c.out_h, c.out_w, 7, 1, bias=True, activation="relu6"), 2, "average")
    size = 7 * d.pool.out_h * d.pool.out_w
    product = Gemm(n, 33, size, beta=0.5, bias=True)
    return (a, b, c, d, Unary("tanh", n * size), product, Softmax(n, 33, 1, True))


def overlapping(n: int) -> tuple[Params, ...]:
    """A pool that no thread has a whole window of; the net gives maps."""
    made = conv(n, 2, 9, 8, 4, 3, bias=True)
    return (
        pooled(made, 3, "average", stride_h=2, stride_w=2, pad_top=1, pad_left=1),
        conv(n, 4, 3, 3, 3, 3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, activation="tanh"),
    )


def later(n: int) -> tuple[Params, ...]:
    """A border first where it is not read from outside; the first step is a product."""
    pads = {"pad_top": 1, "pad_left": 1, "pad_bottom": 1, "pad_right": 1}
    return (
        Gemm(n, 72, 10, bias=True, activation="relu"),
        conv(n, 2, 6, 6, 4, 1, bias=True),
        conv(n, 4, 6, 6, 3, 3, activation="tanh", **pads),
    )


def two_steps(n: int) -> tuple[Params, ...]:
    """As an engine has them where its convolutions are best apart from their pools."""
    a = conv(n, 2, 11, 10, 5, 3, bias=True, activation="relu")
    b = sized(Pool("average", n, 5, a.out_h, a.out_w, 2, 2, 0, 0, 2, 2, activation="tanh"))
    c = conv(n, 5, b.out_h, b.out_w, 3, 2, bias=True)
    return (a, b, c, sized(Pool("max", n, 3, c.out_h, c.out_w, 3, 3, 0, 0, 3, 3)))


def broad(n: int) -> tuple[Params, ...]:
    """More maps than one instruction has, in groups that are no whole eights; a pool that is no square."""
    a = conv(n, 5, 13, 12, 20, 3, stride_w=2, pad_left=1, bias=True, activation="relu")
    b = pooled(a, 2, kh=3, stride_h=3)
    c = conv(n, 20, b.pool.out_h, b.pool.out_w, 36, 2, group=2, bias=True, activation="tanh")
    d = conv(n, 36, c.out_h, c.out_w, 19, 1)
    size = 19 * d.out_h * d.out_w
    product = Gemm(n, 51, size, trans_b=True, activation="relu")
    return (b, c, d, product, Gemm(n, 21, 51, bias=True), Softmax(n, 21, 1))


@dataclass(frozen=True)
class Drawn:
    """A run of steps with its weights, an input, and each step's output in float64."""

    steps: tuple[Params, ...]
    weights: tuple[Weights | None, ...]
    x: np.ndarray
    expected: np.ndarray


def drawn(steps: Sequence[Params], seed: int = 0) -> Drawn:
    rng = np.random.default_rng(seed)
    x = value = rng.standard_normal(steps[0].input_shapes[0]).astype(np.float32)
    weights: list[Weights | None] = []
    for p in steps:
        shapes = p.input_shapes
        given = [
            (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape) / max(shape)))).astype(np.float32)
            for shape in shapes[1:]
        ]
        bias = given[1] if len(given) > 1 else None
        weights.append((given[0], bias) if given else None)
        made = one_node.graph(p, [value.reshape(shapes[0]), *given])
        value = oracle.run(made, {"in0": value.reshape(shapes[0])}, [one_node.OUTPUT])[one_node.OUTPUT]
    return Drawn(tuple(steps), tuple(weights), x, value)


EVERY = [lenet, odd, overlapping, later, two_steps, broad]
