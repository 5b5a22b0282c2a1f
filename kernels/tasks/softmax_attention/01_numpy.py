# op = "softmax_attention"
# rung = 1
# name = "numpy"
# idea = "Two matrix products a head, with all its scores between them."
"""y = softmax(q · kᵀ / √d) · v."""

import numpy as np


def bind(p, inputs, output, workspace):
    q, k, v = (array.reshape(p.h, p.n, p.d) for array in inputs)
    y = output.reshape(p.h, p.n, p.d)
    scores, edges = np.empty((p.n, p.n), np.float32), np.empty((p.n, 1), np.float32)
    scale = np.float32(1 / np.sqrt(p.d))

    def run():
        for head in range(p.h):
            np.matmul(q[head], k[head].T, scores)
            np.multiply(scores, scale, scores)
            np.max(scores, axis=1, keepdims=True, out=edges)
            np.exp(np.subtract(scores, edges, scores), scores)
            np.sum(scores, axis=1, keepdims=True, out=edges)
            np.matmul(scores, v[head], y[head])
            np.divide(y[head], edges, y[head])

    return run
