# op = "unary"
# rung = 2
# name = "one_pass"
# idea = "All that an element goes through in one compiled loop, in vector registers."
# compiled = true
# [needs]
# kind = ["sigmoid", "tanh", "swish", "hard_sigmoid", "hard_swish", "gelu", "gelu_tanh"]
"""Exponentials and quotients of polynomials are those of kernels.cpu.loops."""

import numpy as np

from kernels.cpu import simd
from kernels.cpu.compiled import Call, compiled
from kernels.cpu.loops import HALF, ONE, ZERO, erf, over_one_plus_exp, tanh

BLOCK = 1 << 13  # elements of a part
KINDS = ("sigmoid", "tanh", "swish", "hard_sigmoid", "hard_swish", "gelu", "gelu_tanh")
SIGMOID, TANH, SWISH, HARD_SIGMOID, HARD_SWISH, GELU, GELU_TANH = range(len(KINDS))
ROOT_HALF, ROOT_TWO_BY_PI, CUBE = map(np.float32, (0.5**0.5, (2 / np.pi) ** 0.5, 0.044715))


@compiled
def step(a, low, high, scratch):
    kind, x, y = a[2], simd.floats(a[3]), simd.floats(a[4])
    alpha, beta = np.float32(simd.number(a[5])), np.float32(simd.number(a[6]))
    first, last = low * BLOCK, min(a[1], high * BLOCK)
    if kind == SIGMOID:
        for i in range(first, last):
            y[i] = over_one_plus_exp(ONE, -x[i])
    elif kind == TANH:
        for i in range(first, last):
            y[i] = tanh(x[i])
    elif kind == SWISH:
        for i in range(first, last):
            y[i] = over_one_plus_exp(x[i], -alpha * x[i])
    elif kind >= HARD_SIGMOID and kind <= HARD_SWISH:
        for i in range(first, last):
            z = alpha * x[i] + beta
            z = ZERO if z < ZERO else z
            z = ONE if z > ONE else z
            y[i] = z if kind == HARD_SIGMOID else x[i] * z
    elif kind == GELU:
        for i in range(first, last):
            y[i] = HALF * x[i] * (ONE + erf(x[i] * ROOT_HALF))
    else:
        for i in range(first, last):
            z = ROOT_TWO_BY_PI * x[i] * (ONE + CUBE * x[i] * x[i])
            y[i] = HALF * x[i] * (ONE + tanh(z))


def workspace(p):
    return 0


def bind(p, inputs, output, workspace):
    alpha, beta = (1 / 6, 0.5) if p.kind == "hard_swish" else (p.alpha, p.beta)
    arguments = [p.size, KINDS.index(p.kind), inputs[0], output, float(alpha), float(beta)]
    return Call(step, arguments, workspace, 0, -(-p.size // BLOCK))
