import numpy as np


def reference(x, k):
    return -np.sort(-x, axis=1)[:, :k]
