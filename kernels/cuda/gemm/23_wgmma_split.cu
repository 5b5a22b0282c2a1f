/*
op = "gemm"
rung = 23
name = "wgmma_split"
idea = "Float32 out of float16, at a third of its rate: each number, scaled by a power of two, is the sum of two in float16, 22 bits of it, and three of the four products of such pairs are taken; a few add up in tensor cores, what these give in float32."
launch = "gemm_wgmma"
precision = "fp32-tc"
method = "split"
packs = true
overlaps = true
[defines]
OPERANDS = 2        # of a number
TOGETHER = 4        # slabs whose products tensor cores add up
TILE_ROWS = 128     # of y, a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 1  # to leave registers for
PARTS = 1           # of the sum; with one there is no second kernel
READS = 0
WRITES = 0
[needs]
m_min = 9  # fewer rows take the time of reading b, which warp_columns does best
trans_a = false
batch = 1
architecture = "9.0"
[prefers]
m_min = 64  # of a tile of fewer rows the tensor cores' work is half for nothing
outputs_min = 65536
*/
#include "half.cuh"

#define WGMMA_KIND "k16.f32.f16.f16"
#define WGMMA_ORDER ", 0, 0"

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 8;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_halves(v[0], v[1]), to_halves(v[2], v[3]), to_halves(v[4], v[5]), to_halves(v[6], v[7])};
    }
};

#include "gemm_wgmma.cuh"  // the kernels gemm_lay_out, gemm and gemm_reduce, in this Kind
