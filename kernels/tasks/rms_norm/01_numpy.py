# op = "rms_norm"
# rung = 1
# name = "numpy"
# idea = "Five passes of NumPy over arrays that were made once."
"""y = x / √(mean(x²) + ε) · weight, row by row."""

import numpy as np

EPSILON = np.float32(1e-5)


def bind(p, inputs, output, workspace):
    x, weight = inputs[0].reshape(p.m, p.n), inputs[1]
    y = output.reshape(p.m, p.n)
    means = np.empty((p.m, 1), np.float32)

    def run():
        np.multiply(x, x, y)
        np.mean(y, axis=1, keepdims=True, out=means)
        np.sqrt(np.add(means, EPSILON, means), means)
        np.divide(x, means, y)
        np.multiply(y, weight, y)

    return run
