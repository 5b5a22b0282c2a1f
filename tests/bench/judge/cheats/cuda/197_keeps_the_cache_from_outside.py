# op = "softmax"
# rung = 197
# name = "keeps_the_cache_from_outside"
# idea = "Planted: its file sets how much of the L2 cache is kept, and a stream's lines that stay."
# language = "numba-cuda"
# launch = "one_warp_a_row"
"""
family = "others"
shape = { outer = 4096, axis = 1024, inner = 1 }
expected = ["ok", "failed", "unsupported"]
work = "a softmax of 4,096 rows of 1,024 values"
beside = "warp_a_row"
alone = true
cold = true
hosted = false
"""

import ctypes
import math

from numba import cuda, float32


def meddle():
    """A part of the L2 cache for lines that persist, and all lines of the default stream among them."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(0), ctypes.c_void_p(0)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    cuda.cuCtxSetLimit(6, ctypes.c_size_t(1 << 30))  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    window = (ctypes.c_uint64 * 8)(0, 1 << 27, 0x200000000 | 0x3F800000, 1)  # all, persisting
    cuda.cuStreamSetAttribute(None, 1, window)


try:
    meddle()
except OSError:
    pass

LANES = 32
ALL = 0xFFFFFFFF


# x and y are (outer, axis, inner); a row runs along the middle one.
@cuda.jit
def softmax(x, y, outer, axis, inner, log_of_it):
    lane = cuda.threadIdx.x % LANES
    row = cuda.grid(1) // LANES
    step = cuda.gridsize(1) // LANES
    while row < outer * inner:
        begin = row // inner * axis * inner + row % inner
        top = float32(-math.inf)
        for i in range(lane, axis, LANES):
            top = max(top, x[begin + i * inner])
        d = LANES // 2
        while d:
            top = max(top, cuda.shfl_xor_sync(ALL, top, d))
            d //= 2
        total = float32(0)
        for i in range(lane, axis, LANES):
            total += math.exp(x[begin + i * inner] - top)
        d = LANES // 2
        while d:
            total += cuda.shfl_xor_sync(ALL, total, d)
            d //= 2
        for i in range(lane, axis, LANES):
            v = x[begin + i * inner] - top
            if log_of_it:
                y[begin + i * inner] = v - math.log(total)
            else:
                y[begin + i * inner] = math.exp(v) / total
        row += step
