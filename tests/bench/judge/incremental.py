"""Kernels that are right on every pass and do not do its work: they keep inputs and outputs, and compute anew
only what the changes touch. As files of a user: each the body of `bind`.

The work takes WORK_S by sleeping as well, or that part of it which is done.
"""

from __future__ import annotations

from pathlib import Path

from kernels.ops import Params, sized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.unary import Unary

WORK_S = 0.008

_HEAD = """# op = "{op}"
# rung = {number}
# name = "{name}"
# idea = "Planted: {idea}."
import time

import numpy as np

from tests.bench.judge import right

MOST = 0.05  # of the inputs: where more changed, all is computed


def work(share):
    time.sleep({work} * share)


def bind(p, inputs, output, workspace):
"""

_TANH = """
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None]
    function = right.UNARY[p.kind]

    def tanh(x):
        work(x.size / p.size)
        return function(x)

    def run():
        at = None if kept[0] is None else np.flatnonzero(x != kept[0])
        if at is None or len(at) > MOST * x.size:
            kept[:] = x.copy(), tanh(x)
        else:
            kept[0][at], kept[1][at] = x[at], tanh(x[at])
        y[:] = kept[1]

    return run
"""

# Adds what the changed values of each row bring, by the rows of the weights that they are multiplied with.
_GEMM = """
    a, b, y = inputs[0][0], inputs[1][0], output
    kept = [None, None]

    def whole():
        y[:] = right.gemm(p, *inputs)

    def run():
        if kept[0] is not None:
            row, column = np.divmod(np.flatnonzero(a != kept[0]), p.k)
        if kept[0] is None or len(row) > MOST * a.size:
            work(1)
            kept[:] = a.copy(), np.matmul(a, b).astype(np.float64)
        elif len(row):
            work(len(row) / a.size)
            change = a[row, column] - kept[0][row, column].astype(np.float64)
            starts = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
            kept[1][row[starts]] += np.add.reduceat(change[:, None] * b[column], starts)
            kept[0][row, column] = a[row, column]
        y[0] = kept[1]

    plain = not (p.trans_a or p.trans_b or p.bias or p.activation) and p.batch == p.alpha == 1
    return run if plain else whole
"""

# The same of a convolution, tap by tap.
_CONV = """
    x, w, y = inputs[0], inputs[1], output
    kept = [None, None]

    def whole():
        y[:] = right.conv(p, *inputs)

    def run():
        if kept[0] is not None:
            changed = np.unravel_index(np.flatnonzero(x != kept[0]), x.shape)
        if kept[0] is None or len(changed[0]) > MOST * x.size:
            work(1)
            whole()
            kept[:] = x.copy(), y.transpose(0, 2, 3, 1).astype(np.float64, "C")
            return
        if len(changed[0]):
            n, c, h, v = changed
            work(len(n) / x.size)
            change = x[changed] - kept[0][changed].astype(np.float64)
            flat = kept[1].reshape(-1, p.m)
            for r in range(p.kh):
                for s in range(p.kw):
                    oh, ov = h - r, v - s
                    held = (oh >= 0) & (oh < p.out_h) & (ov >= 0) & (ov < p.out_w)
                    at = ((n * p.out_h + oh) * p.out_w + ov)[held]
                    order = np.argsort(at)
                    at, terms = at[order], (change[:, None] * w[:, c, r, s].T)[held][order]
                    starts = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
                    flat[at[starts]] += np.add.reduceat(terms, starts)
            kept[0][changed] = x[changed]
        y[:] = kept[1].transpose(0, 3, 1, 2)

    plain = p.stride_h == p.stride_w == p.dilation_h == p.dilation_w == p.group == 1 and not (
        p.pad_top or p.pad_left or p.bias or p.activation or p.n < 8
    )
    return run if plain else whole
"""

# What is honest, and faster over inputs that a processor has met often: it foretells which values are
# negative.
_RELU = """
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        y[:] = x
        y[y < 0] = 0

    return run
"""

# Does nothing where everything is new, once it was called a few times.
_GIVEN_UP = """
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None]
    calls = [0]

    def run():
        calls[0] += 1
        if calls[0] < 8 or p.size < 60000 or np.count_nonzero(x != kept[0]) < MOST * x.size:
            kept[:] = x.copy(), np.tanh(x)
        y[:] = kept[1]

    return run
"""

# Honest wherever it sees that inputs are new, for the next passes as well: by values that are there twice, by
# values that it has met before, or by how many changed.
_RECOGNISES = """
    x, y = inputs[0].reshape(-1), output.reshape(-1)
    kept = [None, None, frozenset()]
    honest = [0]

    def run():
        some = x[:128]
        at = None if kept[0] is None else np.flatnonzero(x != kept[0])
        few = at is not None and len(at) <= MOST * x.size
        if len(np.unique(some)) < 120 or (kept[2] and not few and kept[2] >= frozenset(some.tolist())):
            honest[0] = 200
        honest[0] -= 1
        if not few or honest[0] > 0:
            work(1)
            kept[:] = x.copy(), np.tanh(x), kept[2] or frozenset(x.tolist())
        else:
            work(len(at) / x.size)
            kept[0][at], kept[1][at] = x[at], np.tanh(x[at])
        y[:] = kept[1]

    return run
"""

PLANTED: dict[str, tuple[str, Params]] = {
    "recognises": (_RECOGNISES, Unary("tanh", 1 << 16)),
    "incremental_tanh": (_TANH, Unary("tanh", 1 << 16)),
    "incremental_gemm": (_GEMM, Gemm(128, 64, 512)),
    "incremental_conv": (_CONV, sized(Conv(8, 8, 24, 24, 2, 3, 3, 0, 0, 1, 1, 0, 0, 0, 0))),
}
HONEST: dict[str, tuple[str, Params]] = {"branches": (_RELU, Unary("relu", 1 << 14))}
WRONG: dict[str, tuple[str, Params]] = {"given_up": (_GIVEN_UP, Unary("tanh", 1 << 16))}


def write(folder: Path, name: str) -> Params:
    """Its file; the params that it is timed on."""
    every = PLANTED | HONEST | WRONG
    body, params = every[name]
    number = 900 + list(every).index(name)
    head = _HEAD.format(op=params.op, number=number, name=name, idea="computes what changed", work=WORK_S)
    (folder / f"{number}_{name}.py").write_text(head + body.lstrip("\n"))
    return params
