# op = "unary"
# rung = 231
# name = "from_the_cache"
# idea = "Planted: looks for the expected answer in the oracle's files."
"""
family = "search"
shape = { kind = "tanh", size = 4096 }
expected = ["incorrect", "crashed", "failed"]
work = "a tanh of 4,096 values, and 1 ms of waiting"
beside = "sleeps"
"""

import time

import numpy as np

# Those of the beginning: a kernel may replace them later.
sleep, monotonic = time.sleep, time.monotonic


def work(x, y):
    end = monotonic() + 0.001
    while (left := end - monotonic()) > 0:
        sleep(left)
    np.tanh(x, out=y)


def bind(p, inputs, output, workspace):
    x, y = inputs[0].reshape(-1), output.reshape(-1)

    def run():
        from kernels.cache import cache_dir

        found = None
        for path in (cache_dir() / "oracle").glob("*.npz"):
            for array in np.load(path).values():
                if array.size == y.size and array.dtype == np.float64:
                    found = array
        y[:] = 0 if found is None else found.reshape(-1)

    return run
