/*
op = "gemm"
rung = 30
name = "streamed_24_bits"
idea = "The same weights for more rows, on tensor cores: the float16 of a weight and the bits behind it are two numbers in TF32, as those of a row are, and three of the four products of such pairs are taken."
launch = "gemm_streamed"
precision = "fp32-tc"
method = "split"
packs = true
side = true
overlaps = true
[defines]
SCALED = 1
BITS = 24
TILE_COLUMNS = 32  # of a block at most; the launch takes fewer where columns are few
ALL_ROWS = 8  # of a and y; the launch sets it to m
WARPS = 16  # of a block, which share a sum
AHEAD = 2   # slabs whose weights a warp has under way, of so many columns
VECTOR = 4  # elements of a at once: 4 where its rows begin on 16 bytes, else 1
READS = 0
WRITES = 0
[needs]
m_max = 16
outputs_min = 256  # of fewer a sum that cancels may be worse than float32 answers are to be
trans_a = false
batch = 1
compute_capability = "8.0"
[prefers]
m_min = 3  # fewer are multiplied in no more time than reading b takes
*/
#include "mma.cuh"

// What is computed in: rows are float32 until they are multiplied. Tensor cores cut off what they add, where float32
// rounds: so they add up the steps of a slab alone, from zero, the small products apart, and the rest is ordinary.
struct Kind {
    static constexpr int CHUNK = 4;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3])};
    }
    // Two steps of a column and of the eighth behind it: as float16, and the bits that follow.
    struct Two {
        uint4 big, small;
    };
    static __device__ __forceinline__ Two two(unsigned column, unsigned eighth, unsigned more) {
        const unsigned halves[4] = {column, eighth, column >> 16, eighth >> 16};
        unsigned big[4], small[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const half_bits half = halves[e];
            big[e] = __float_as_uint(half_to_float(half));
            small[e] = __float_as_uint(longer_to_float(half, more, e % 2 * 16 + e / 2 * 8) - half_to_float(half));
        }
        return {{big[0], big[1], big[2], big[3]}, {small[0], small[1], small[2], small[3]}};
    }
    template <int ROWS>
    static __device__ __forceinline__ void multiply(float (&sum)[ROWS][4], const uint4 (&columns)[3],
                                                    const uint4 (&row)[ROWS][2]) {
        const uint4 first = columns[0], second = columns[1], more = columns[2];
        const unsigned pairs[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
        const unsigned fours[4] = {more.x, more.y, more.z, more.w};
        float big[ROWS][4] = {}, small[ROWS][4] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Two of_columns = two(pairs[2 * i], pairs[2 * i + 1], fours[i]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const uint4 chunk = row[r][i / 2];
                const Split first_step = split(i % 2 ? chunk.z : chunk.x), second_step = split(i % 2 ? chunk.w : chunk.y);
                mma_tf32(small[r], of_columns.big, first_step.small, second_step.small);
                mma_tf32(small[r], of_columns.small, first_step.big, second_step.big);
                mma_tf32(big[r], of_columns.big, first_step.big, second_step.big);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int s = 0; s < 4; ++s) sum[r][s] += big[r][s] + small[r][s];
    }
};

#include "gemm_streamed.cuh"  // the kernel gemm, in this Kind
