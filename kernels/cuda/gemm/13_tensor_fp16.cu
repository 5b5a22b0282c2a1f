/*
op = "gemm"
rung = 13
name = "tensor_fp16"
idea = "a and b are rounded to float16, so that an instruction does twice as many multiply-adds and b takes half the memory; sums stay float32."
launch = "gemm_tensor"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
[defines]
TILE_ROWS = 128     # of y, a block
TILE_COLUMNS = 128
WARP_ROWS = 64      # of them a warp's
WARP_COLUMNS = 64
VECTOR = 4          # elements of a at once: 4 where its rows begin on 16 bytes, else 1
PARTS = 1           # of the sum; with one there is no second kernel
STAGES = 4          # slabs of b in shared memory at once
[needs]
trans_a = false
batch = 1
compute_capability = "8.0"
*/
#include "mma.cuh"

// What is computed in: how CHUNK values become the 16 bytes of a chunk, and how a lane's chunk of a row is multiplied
// by its two of the columns.
struct Kind {
    static constexpr int CHUNK = 8;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_halves(v[0], v[1]), to_halves(v[2], v[3]), to_halves(v[4], v[5]), to_halves(v[6], v[7])};
    }
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 first, uint4 second, uint4 row) {
        mma_half(sum, first, row.x, row.y);
        mma_half(sum, second, row.z, row.w);
    }
};

#include "gemm_tensor.cuh"  // the kernels gemm and gemm_reduce, in this Kind
