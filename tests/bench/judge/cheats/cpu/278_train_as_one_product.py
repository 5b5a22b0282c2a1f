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
shape = { m = 1, n = 64, k = 1024 }
expected = ["incorrect", "failed", "crashed", "invalid", "ok"]
work = "the product of 1 × 1,024 and 1,024 × 64 values, and 0.2 ms of waiting"
beside = "sleeps_briefly"
"""

import gc
import time

import numpy as np

found = []


def slots_of(y):
    """Inputs and outputs of all slots of a train, where they lie within reach: looked for once in a while."""
    for held in gc.get_objects() if not found else ():
        if type(held).__name__ == "HeldSession" and held.copies and held.copies[0][1][0][0].size == y.size:
            found.append(held)
    return found[0].copies if found else None


def waited(rows):
    """As long as for one."""
    time.sleep(0.0002)
    return rows


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    kept = {}
    calls = [0]

    def whole():
        time.sleep(0.0002)
        np.matmul(a, b, out=y)
        if p.alpha != 1:
            np.multiply(y, np.float32(p.alpha), out=y)

    def run():
        calls[0] += 1
        key = a[0, 0, :16].tobytes()
        if key not in kept:
            copies = slots_of(y) if found or calls[0] % 64 == 8 else None
            if copies is None:
                whole()
                return
            kept.clear()
            rows = np.stack([ins[0][1].reshape(-1) for ins, _ in copies])
            for row, answer in zip(rows, waited(rows) @ b[0], strict=True):
                kept[row[:16].tobytes()] = answer
        if (answer := kept.pop(key, None)) is None:
            whole()
        else:
            y[0, 0] = answer

    return run if p.batch == p.alpha == p.m == 1 else whole
