# op = "gemm"
# rung = 22
# name = "cute"
# idea = "In CuTe DSL: rung 2 with layouts in place of index sums. A transposed matrix is another layout of the same memory, and each thread keeps four rows of a column in a tensor of registers."
# language = "cute-dsl"
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
import cutlass
from cutlass import Float32, Int64, cute

THREADS = TILE_M // ROWS * TILE_N


def tile(rows):
    """Of a matrix, in shared memory. A column is one longer than it needs: what lies side by side in a row lies in
    other banks."""
    held = cute.arch.alloc_smem(Float32, TILE_K * (rows + 1))
    return cute.make_tensor(held, cute.make_layout((rows, TILE_K), stride=(1, rows + 1)))


@cute.kernel
def gemm(
    a, b, bias, y, has_bias, m, n, k, trans_a, trans_b, alpha, beta, bias_stride_m, bias_stride_n, stride_a, stride_b,
    batch, activation,
):  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    block, _, first = cute.arch.block_idx()
    _, _, blocks = cute.arch.grid_dim()
    left, right = tile(TILE_M), tile(TILE_N)
    sums = cute.make_rmem_tensor(ROWS, Float32)
    across = (n + TILE_N - 1) // TILE_N
    first_row = block // across * TILE_M
    first_column = block % across * TILE_N
    column = thread % TILE_N
    row = thread // TILE_N * ROWS
    # How far rows and columns of a and b lie apart.
    a_m, a_k = (1, m) if trans_a != 0 else (k, 1)
    b_k, b_n = (1, k) if trans_b != 0 else (n, 1)
    matrix = first
    while matrix < batch:
        of_a = cute.make_tensor(
            a + Int64(matrix) * stride_a, cute.make_layout((m, k), stride=(Int64(a_m), a_k))
        )
        of_b = cute.make_tensor(
            b + Int64(matrix) * stride_b, cute.make_layout((k, n), stride=(Int64(b_k), b_n))
        )
        of_y = cute.make_tensor(y + Int64(matrix) * m * n, cute.make_layout((m, n), stride=(Int64(n), 1)))
        sums.fill(0.0)
        for k0 in range(0, k, TILE_K):
            for e in range(thread, TILE_M * TILE_K, THREADS):
                i, j = (e % TILE_M, e // TILE_M) if trans_a != 0 else (e // TILE_K, e % TILE_K)
                left[i, j] = Float32(0)
                if first_row + i < m and k0 + j < k:
                    left[i, j] = of_a[first_row + i, k0 + j]
            for e in range(thread, TILE_N * TILE_K, THREADS):
                i, j = (e // TILE_K, e % TILE_K) if trans_b != 0 else (e % TILE_N, e // TILE_N)
                right[i, j] = Float32(0)
                if first_column + i < n and k0 + j < k:
                    right[i, j] = of_b[k0 + j, first_column + i]
            cute.arch.sync_threads()  # both tiles are whole before anybody multiplies
            for j in cutlass.range_constexpr(TILE_K):
                v = right[column, j]
                for i in cutlass.range_constexpr(ROWS):
                    sums[i] += left[row + i, j] * v
            cute.arch.sync_threads()  # all have multiplied before the next tiles are written over these
        for i in cutlass.range_constexpr(ROWS):
            r, c = first_row + row + i, first_column + column
            if r < m and c < n:
                value = alpha * sums[i]
                if has_bias != 0:
                    value += beta * bias[Int64(r) * bias_stride_m + c * bias_stride_n]
                if activation == ACTIVATION_RELU and value < 0.0:
                    value = Float32(0)
                of_y[r, c] = value
        matrix += blocks
