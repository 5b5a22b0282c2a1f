/*
op = "gemm"
rung = 24
name = "streamed_fp16"
idea = "A few rows at the rate at which b can be read: warps stream weights into the very registers that tensor cores multiply from, without shared memory and without a barrier before the sum is complete."
launch = "gemm_streamed"
precision = ["fp16", "bf16"]
packs = true
side = true
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
TILE_COLUMNS = 16  # of a block
ALL_ROWS = 8  # of a and y; the launch sets it to m
WARPS = 16  # of a block, which share a sum
AHEAD = 4   # slabs whose weights a warp has under way
VECTOR = 4  # elements of a at once: 4 where its rows begin on 16 bytes, else 1
READS = 0   # how a lies: by its place in `reads`
WRITES = 0  # and y
[needs]
m_max = 16
trans_a = false
batch = 1
compute_capability = "8.0"
[prefers]
m_min = 3  # fewer are multiplied in no more time than reading b takes
*/
#include "mma.cuh"

// What is computed in: how CHUNK values become the 16 bytes of a chunk, and how a lane's chunks of rows are multiplied by
// its two of the columns.
struct Kind {
    static constexpr int CHUNK = 8;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_halves(v[0], v[1]), to_halves(v[2], v[3]), to_halves(v[4], v[5]), to_halves(v[6], v[7])};
    }
    template <int ROWS>
    static __device__ __forceinline__ void multiply(float (&sum)[ROWS][4], const uint4 (&columns)[2],
                                                    const uint4 (&row)[ROWS][1]) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            mma_half(sum[r], columns[0], row[r][0].x, row[r][0].y);
            mma_half(sum[r], columns[1], row[r][0].z, row[r][0].w);
        }
    }
};

#include "gemm_streamed.cuh"  // the kernel gemm, in this Kind
