/*
op = "qgemm"
rung = 6
name = "wgmma_bytes"
idea = "Four warps multiply together, in the background, and read both factors from shared memory themselves; the blocks of a cluster share a sum where there are few."
launch = "qgemm_nhwc_wgmma"
packs = true
overlaps = true
[defines]
EACH = 16           # steps of a chunk
READS = 0           # whether rows of a are whole chunks, and of y
WRITES = 0
TILE_ROWS = 128     # of y, a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 2  # to leave registers for
PARTS = 1           # of the sum, a block of a cluster each
PADDED = 0
FOLD = 1
X_TYPE = 1          # of a, of b and of y: the launch sets them
W_TYPE = 1
TO = 1
[needs]
architecture = "9.0"
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
batch = 1
[prefers]
m_min = 64           # of a tile
*/
#define OPERANDS 1
#define AS_READ READS
#include "quantized_wgmma.cuh"

#include "quantized_gemm.cuh"

extern "C" __global__ void CLUSTER __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    qgemm(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
          const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QGemmParams p) {
    multiply_wgmma(a, b, a_zero, b_zero, bias, scale, shift, y, workspace, AsImages(p));
}

extern "C" __global__ void __launch_bounds__(256)
    qgemm_lay_out(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
                  const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
                  const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QGemmParams p) {
    lay_out_bytes(a, a_zero, workspace, AsImages(p));
}
