# op = "softmax"
# rung = 21
# name = "numba"
# idea = "In Numba-CUDA: the warp a row of rung 2, thread by thread as in CUDA C++, in Python's words."
# language = "numba-cuda"
# launch = "one_warp_a_row"
# side = true
import math

from numba import cuda, float32

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
