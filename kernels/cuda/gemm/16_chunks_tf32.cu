/*
op = "gemm"
rung = 16
name = "chunks_tf32"
idea = "The same with an a that was rounded to TF32 when it was written."
launch = "gemm_tensor"
precision = "tf32"
packs = true
side = true
overlaps = true
reads = ["nchw float32", "nhwc tf32"]
writes = ["nchw float32", "nhwc tf32"]
[defines]
TILE_ROWS = 128     # of y, a block
TILE_COLUMNS = 128
WARP_ROWS = 64      # of them a warp's
WARP_COLUMNS = 64
VECTOR = 4          # elements of a at once: 4 where its rows begin on 16 bytes, else 1
PARTS = 1           # of the sum; with one there is no second kernel
STAGES = 4          # slabs of b in shared memory at once
READS = 0           # how a lies: by its place in `reads`
WRITES = 0          # and y
[needs]
m_min = 9  # fewer rows take the time of reading b, which warp_columns does best
trans_a = false
batch = 1
compute_capability = "8.0"
*/
#include "mma.cuh"

// What is computed in: how CHUNK values become the 16 bytes of a chunk, and how a lane's chunk of a row is multiplied
// by its two of the columns.
struct Kind {
    static constexpr int CHUNK = 4;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_tf32(v[0]), to_tf32(v[1]), to_tf32(v[2]), to_tf32(v[3])};
    }
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 first, uint4 second, uint4 row) {
        mma_tf32(sum, first, row.x, row.y);
        mma_tf32(sum, second, row.z, row.w);
    }
};

#include "gemm_tensor.cuh"  // the kernels gemm and gemm_reduce, in this Kind
