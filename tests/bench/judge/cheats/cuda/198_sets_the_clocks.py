# op = "softmax"
# rung = 198
# name = "sets_the_clocks"
# idea = "Planted: its file sets the clocks of the device."
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

import ctypes
import math

from numba import cuda, float32


def meddle():
    """Clocks of the device, by NVML: as high as they are allowed to be now, so that nothing changes where it
    works."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, sm, memory = ctypes.c_void_p(0), ctypes.c_uint(0), ctypes.c_uint(0)
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        return
    nvml.nvmlDeviceGetApplicationsClock(device, 1, ctypes.byref(sm))
    nvml.nvmlDeviceGetApplicationsClock(device, 2, ctypes.byref(memory))
    nvml.nvmlDeviceSetApplicationsClocks(device, memory, sm)


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
