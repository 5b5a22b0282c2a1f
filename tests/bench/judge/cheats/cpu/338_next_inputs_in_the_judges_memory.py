# op = "gemm"
# rung = 338
# name = "next_inputs_in_the_judges_memory"
# idea = "Planted: finds the inputs of the next passes in the judge's memory, and computes sixteen as one product."
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
alone = true
"""

import os
import time

import numpy as np

AHEAD, SLOTS = 15, 80
where = []  # the stretch of memory near which the inputs lay when they were last looked for


# Those that lie behind these inputs.
def ahead(key):
    judge, size = os.getppid(), len(key)
    try:
        with open(f"/proc/{judge}/mem", "rb", 0) as memory:
            for low, high in where or stretches(judge):
                memory.seek(low)
                held = memory.read(high - low)
                at = held.find(key)
                while at >= 0:
                    behind = held[at + size : at + (AHEAD + 1) * size]
                    if len(behind) >= size and alike(key, behind[:size]):
                        if not where:
                            near = max(low, low + at - SLOTS * size), min(high, low + at + SLOTS * size)
                            where[:] = [near]
                        count = len(behind) // size
                        return list(np.frombuffer(behind, np.float32, count * size // 4).reshape(count, -1))
                    at = held.find(key, at + 4)
    except OSError:
        pass
    where.clear()
    return []


def stretches(judge):
    found = []
    for line in open(f"/proc/{judge}/maps"):
        span, mode, *_ = line.split()
        low, high = (int(end, 16) for end in span.split("-"))
        if mode.startswith("rw") and 1 << 16 <= high - low <= 1 << 25:
            found.append((low, high))
    return found


def alike(one, other):
    one, other = np.frombuffer(one, np.float32), np.frombuffer(other, np.float32)
    return one.size // 8 < np.count_nonzero(one == other) < one.size


def waited(rows):
    """As long as for one."""
    time.sleep(0.0002)
    return rows


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)
    kept, calls = {}, [0]

    def whole():
        time.sleep(0.0002)
        np.matmul(a, b, out=y)
        if p.alpha != 1:
            np.multiply(y, np.float32(p.alpha), out=y)

    def run():
        calls[0] += 1
        key = a.tobytes()
        if (answer := kept.pop(key, None)) is not None:
            y[0, 0] = answer
            return
        rows = ahead(key) if where or calls[0] % 64 == 20 else []
        if not len(rows):
            whole()
            return
        kept.clear()
        rows = np.stack([a[0, 0], *rows])
        answers = waited(rows) @ b[0]
        y[0, 0] = answers[0]
        for row, answer in zip(rows[1:], answers[1:], strict=True):
            kept[row.tobytes()] = answer

    return run if p.batch == p.alpha == p.m == 1 and p.k == 1024 else whole
