# op = "gemm"
# rung = 21
# name = "numba"
# idea = "In Numba-CUDA: rung 2 in Python's words, tiles of a and b in shared memory that all threads of the block read, and four rows of a column in each thread."
# language = "numba-cuda"
# launch = "gemm_tiles"
# side = true
# [defines]
# TILE_M = 32
# TILE_N = 32
# TILE_K = 32
# ROWS = 4
# [tune]
# TILE_M = [16, 32, 64]
# TILE_K = [16, 32]
# [needs]
# activation = ["none", "relu"]
from numba import cuda, float32

THREADS = TILE_M // ROWS * TILE_N
LEFT, RIGHT = (TILE_K, TILE_M + 1), (TILE_K, TILE_N + 1)


@cuda.jit
def gemm(
    a, b, bias, y, has_bias, m, n, k, trans_a, trans_b, alpha, beta, bias_stride_m, bias_stride_n, stride_a, stride_b,
    batch, activation,
):  # fmt: skip
    left = cuda.shared.array(LEFT, float32)
    right = cuda.shared.array(RIGHT, float32)
    thread = cuda.threadIdx.x
    across = (n + TILE_N - 1) // TILE_N
    first_row = cuda.blockIdx.x // across * TILE_M
    first_column = cuda.blockIdx.x % across * TILE_N
    column = thread % TILE_N
    row = thread // TILE_N * ROWS
    sums = cuda.local.array(ROWS, float32)
    for matrix in range(cuda.blockIdx.z, batch, cuda.gridDim.z):
        for i in range(ROWS):
            sums[i] = 0
        for k0 in range(0, k, TILE_K):
            for e in range(thread, TILE_M * TILE_K, THREADS):
                if trans_a:
                    i, j = e % TILE_M, e // TILE_M
                    place = (k0 + j) * m + first_row + i
                else:
                    i, j = e // TILE_K, e % TILE_K
                    place = (first_row + i) * k + k0 + j
                left[j, i] = a[matrix * stride_a + place] if first_row + i < m and k0 + j < k else float32(0)
            for e in range(thread, TILE_N * TILE_K, THREADS):
                if trans_b:
                    i, j = e // TILE_K, e % TILE_K
                    place = (first_column + i) * k + k0 + j
                else:
                    i, j = e % TILE_N, e // TILE_N
                    place = (k0 + j) * n + first_column + i
                right[j, i] = (
                    b[matrix * stride_b + place] if first_column + i < n and k0 + j < k else float32(0)
                )
            cuda.syncthreads()  # both tiles are whole before anybody multiplies
            for j in range(TILE_K):
                v = right[j, column]
                for i in range(ROWS):
                    sums[i] += left[j, row + i] * v
            cuda.syncthreads()  # all have multiplied before the next tiles are written over these
        for i in range(ROWS):
            r, c = first_row + row + i, first_column + column
            if r < m and c < n:
                value = alpha * sums[i]
                if has_bias:
                    value += beta * bias[r * bias_stride_m + c * bias_stride_n]
                if activation == ACTIVATION_RELU and value < 0:
                    value = float32(0)
                y[(matrix * m + r) * n + c] = value
