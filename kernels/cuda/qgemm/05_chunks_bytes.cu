/*
op = "qgemm"
rung = 5
name = "chunks_bytes"
idea = "b packed once in the order in which lanes take it, and rows of a copied to shared memory past the registers, slabs ahead: tensor cores wait for neither."
launch = "qgemm_nhwc_tensor"
packs = true
overlaps = true
[defines]
EACH = 16           # steps of a chunk
READS = 0           # whether rows of a are whole chunks, and of y
WRITES = 0
TILE_ROWS = 128     # of y, a block
TILE_COLUMNS = 128
WARP_ROWS = 64      # of them a warp's
WARP_COLUMNS = 64
STAGES = 3          # slabs of both in shared memory at once
PARTS = 1           # of the sum; with one there is no second kernel
PADDED = 0
FOLD = 1
X_TYPE = 1          # of a, of b and of y: the launch sets them
W_TYPE = 1
TO = 1
[needs]
compute_capability = "8.0"
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
batch = 1
[prefers]
m_min = 9            # of few rows b is read once, and multiplied meanwhile
*/
#define OPERANDS 1
#define AS_READ READS
#include "quantized_nhwc.cuh"

#include "quantized_gemm.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    qgemm(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
          const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QGemmParams p) {
    multiply_nhwc(a, b, a_zero, b_zero, bias, scale, shift, y, workspace, AsImages(p));
}

extern "C" __global__ void __launch_bounds__(256)
    qgemm_lay_out(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
                  const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
                  const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QGemmParams p) {
    lay_out_bytes(a, a_zero, workspace, AsImages(p));
}

extern "C" __global__ void
    qgemm_reduce(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
                 const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
                 const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QGemmParams p) {
    add_parts(bias, scale, shift, y, workspace, AsImages(p));
}
