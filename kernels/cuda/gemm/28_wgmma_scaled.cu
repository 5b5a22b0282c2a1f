/*
op = "gemm"
rung = 28
name = "wgmma_scaled"
idea = "TF32 keeps no more bits than float16, only a wider range: rows of a and columns of b, each scaled by a power of two, are as precise in float16, at twice the rate of TF32 and half its bytes."
launch = "gemm_wgmma"
precision = "tf32"
packs = true
side = true
overlaps = true
[defines]
SCALED = 1
TILE_ROWS = 128     # of y, a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 2  # to leave registers for
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
