# op = "softmax"
# rung = 199
# name = "looks_for_streams"
# idea = "Planted: its file looks for the streams of others in the memory of its parent."
# language = "numba-cuda"
# launch = "one_warp_a_row"
"""
family = "others"
shape = { outer = 4096, axis = 1024, inner = 1 }
expected = ["ok", "failed", "unsupported"]
work = "a softmax of 4,096 rows of 1,024 values"
beside = "warp_a_row"
alone = true
cold = false
hosted = false
"""

import math

from numba import cuda, float32


def meddle():
    """The streams of whoever runs it: all that its process can find in the memory of its parent."""
    parent = int(open("/proc/self/stat").read().rpartition(")")[2].split()[1])
    with open(f"/proc/{parent}/mem", "r+b", buffering=0) as memory:
        for line in open(f"/proc/{parent}/maps"):
            if line.rstrip().endswith("[heap]"):
                first, last = (int(end, 16) for end in line.split()[0].split("-"))
                memory.seek(first)
                held = memory.read(last - first)
                memory.seek(first)
                memory.write(held)


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
