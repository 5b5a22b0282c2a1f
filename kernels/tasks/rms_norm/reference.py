import numpy as np

EPSILON = 1e-5


def reference(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + EPSILON) * weight
