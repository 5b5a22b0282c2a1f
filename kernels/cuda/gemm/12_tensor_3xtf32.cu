/*
op = "gemm"
rung = 12
name = "tensor_3xtf32"
idea = "Float32 out of TF32: each number is taken as a sum of two in TF32, and three of the four products of such pairs, the small ones first, give nearly what float32 would, at a third of the rate of TF32."
launch = "gemm_tensor"
precision = "fp32-tc"
method = "split"
packs = true
overlaps = true
[defines]
TILE_ROWS = 128     # of y, a block
TILE_COLUMNS = 128
WARP_ROWS = 32      # of them a warp's
WARP_COLUMNS = 64
VECTOR = 4          # elements of a at once: 4 where its rows begin on 16 bytes, else 1
PARTS = 1           # of the sum; with one there is no second kernel
STAGES = 4          # slabs of b in shared memory at once
[needs]
m_min = 9  # fewer rows take the time of reading b, which warp_columns does best
trans_a = false
batch = 1
compute_capability = "8.0"
*/
#include "mma.cuh"

// What is computed in: how CHUNK values become the 16 bytes of a chunk, and how a lane's chunk of a row is multiplied
// by its two of the columns. Tensor cores cut off what they add, where float32 rounds: over thousands of steps
// that would be the largest error of all. So they add up the steps of a slab alone, from zero, and the rest is
// ordinary.
struct Kind {
    static constexpr int CHUNK = 4;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3])};
    }
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 first, uint4 second, uint4 row) {
        float part[4] = {};
        multiply(part, first, split(row.x), split(row.y));
        multiply(part, second, split(row.z), split(row.w));
#pragma unroll
        for (int s = 0; s < 4; ++s) sum[s] += part[s];
    }
    static __device__ __forceinline__ void multiply(float (&part)[4], uint4 columns, Split row0, Split row1) {
        const Split x = split(columns.x), y = split(columns.y), z = split(columns.z), w = split(columns.w);
        const uint4 big = {x.big, y.big, z.big, w.big};
        mma_tf32(part, {x.small, y.small, z.small, w.small}, row0.big, row1.big);
        mma_tf32(part, big, row0.small, row1.small);
        mma_tf32(part, big, row0.big, row1.big);
    }
};

#include "gemm_tensor.cuh"  // the kernels gemm and gemm_reduce, in this Kind
