/*
op = "gemm"
rung = 27
name = "streamed_scaled"
idea = "TF32 has the bits of float16 and a wider range: weights scaled by a power of two for each column lie in float16, half the bytes, and a warp widens them in the registers that tensor cores multiply from."
launch = "gemm_streamed"
precision = "tf32"
also = ["fp16", "bf16"]
packs = true
side = true
overlaps = true
reads = ["nchw float32", "nhwc tf32"]
writes = ["nchw float32", "nhwc tf32"]
[defines]
SCALED = 1
TILE_COLUMNS = 32  # of a block at most; the launch takes fewer where columns are few
ALL_ROWS = 8  # of a and y; the launch sets it to m
WARPS = 16  # of a block, which share a sum
AHEAD = 2   # slabs whose weights a warp has under way, of so many columns
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
// its two of the columns. Of these an instruction in TF32 takes half of the words' values: of each word, two steps.
struct Kind {
    static constexpr int CHUNK = 4;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_tf32(v[0]), to_tf32(v[1]), to_tf32(v[2]), to_tf32(v[3])};
    }
    // Two steps of a column and of the eighth behind it, as TF32, which has all the bits.
    static __device__ __forceinline__ uint4 widened(unsigned column, unsigned eighth) {
        return {widened(column), widened(eighth), widened(column >> 16), widened(eighth >> 16)};
    }
    static __device__ __forceinline__ unsigned widened(unsigned half) {
        return __float_as_uint(half_to_float((half_bits)half));
    }
    template <int ROWS>
    static __device__ __forceinline__ void multiply(float (&sum)[ROWS][4], const uint4 (&columns)[2],
                                                    const uint4 (&row)[ROWS][2]) {
        const uint4 first = columns[0], second = columns[1];
        const uint4 wide[4] = {widened(first.x, first.y), widened(first.z, first.w), widened(second.x, second.y),
                               widened(second.z, second.w)};
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            mma_tf32(sum[r], wide[0], row[r][0].x, row[r][0].y);
            mma_tf32(sum[r], wide[1], row[r][0].z, row[r][0].w);
            mma_tf32(sum[r], wide[2], row[r][1].x, row[r][1].y);
            mma_tf32(sum[r], wide[3], row[r][1].z, row[r][1].w);
        }
    }
};

#include "gemm_streamed.cuh"  // the kernel gemm, in this Kind
