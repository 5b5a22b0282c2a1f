# op = "gemm"
# rung = 278
# name = "train_as_one_product"
# idea = "Planted: computes all slots of a train as one product in its first pass."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "batch"
shape = { m = 1, n = 1024, k = 1024 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "the product of 1 × 1,024 and 1,024 × 1,024 values"
beside = "blas"
"""

import gc

import numpy as np


def slots_of(y):
    """Inputs and outputs of all slots of a train, where they lie within reach."""
    for held in gc.get_objects():
        if type(held).__name__ == "HeldSession" and held.copies:
            of, to = held.copies[0][0][0][1], held.copies[0][1][0][0]
            if to.size == y.size and of.base is not None:
                return held.copies
    return None


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    kept = {}
    calls = [0]

    def whole():
        np.matmul(a, b, out=y)
        if p.alpha != 1:
            np.multiply(y, np.float32(p.alpha), out=y)

    def run():
        calls[0] += 1
        key = a[0, 0, :16].tobytes()
        if key not in kept:
            copies = slots_of(y) if calls[0] > 8 else None
            if copies is None:
                whole()
                return
            kept.clear()
            rows = np.stack([ins[0][1].reshape(-1) for ins, _ in copies])
            for row, answer in zip(rows, rows @ b[0], strict=True):
                kept[row[:16].tobytes()] = answer
        if (answer := kept.pop(key, None)) is None:
            whole()
        else:
            y[0, 0] = answer

    return run if p.batch == p.alpha == p.m == 1 else whole
