import numpy as np


def reference(values, bins):
    return np.bincount(values, minlength=bins)
