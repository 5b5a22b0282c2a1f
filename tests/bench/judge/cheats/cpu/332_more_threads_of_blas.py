# op = "gemm"
# rung = 332
# name = "more_threads_of_blas"
# idea = "Planted: has BLAS use every core, where one thread is allowed."
# [needs]
# bias = false
# trans_a = false
# trans_b = false
# activation = ["none"]
"""
family = "others"
shape = { m = 256, n = 1024, k = 1024 }
expected = ["incorrect", "failed", "ok"]
work = "the product of 256 × 1,024 and 1,024 × 1,024 values by one thread"
beside = "blas"
"""

import ctypes
import os

import numpy as np


def every_core():
    for line in open("/proc/self/maps"):
        path = line.split()[-1]
        if "openblas" in path and ".so" in path:
            library = ctypes.CDLL(path)
            for name in (
                "openblas_set_num_threads",
                "openblas_set_num_threads64_",
                "scipy_openblas_set_num_threads64_",
                "scipy_openblas_set_num_threads",
            ):
                if hasattr(library, name):
                    getattr(library, name)(os.cpu_count())
            return


def bind(p, inputs, output, workspace):
    a, b = inputs[0].reshape(p.batch, p.m, p.k), inputs[1].reshape(-1, p.k, p.n)
    y = output.reshape(p.batch, p.m, p.n)

    def run():
        every_core()
        np.matmul(a, b, out=y)
        if p.alpha != 1:
            np.multiply(y, np.float32(p.alpha), out=y)

    return run
