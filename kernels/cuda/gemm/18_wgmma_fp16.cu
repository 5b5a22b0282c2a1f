/*
op = "gemm"
rung = 18
name = "wgmma_fp16"
idea = "Four warps multiply together, in the background, and read both operands from shared memory themselves."
launch = "gemm_wgmma"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
TILE_ROWS = 128     # of y, a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 2  # to leave registers for
PARTS = 1           # of the sum; with one there is no second kernel
READS = 0           # how a lies: by its place in `reads`
WRITES = 0          # and y
[needs]
trans_a = false
batch = 1
architecture = "9.0"
[prefers]
m_min = 128  # of a tile of fewer rows the tensor cores' work is half for nothing
outputs_min = 65536
*/
#include "half.cuh"

#define WGMMA_KIND "k16.f32" HALF_TYPE HALF_TYPE
#define WGMMA_ORDER ", 0, 0"  // the steps of both operands lie side by side

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 8;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_halves(v[0], v[1]), to_halves(v[2], v[3]), to_halves(v[4], v[5]), to_halves(v[6], v[7])};
    }
};

#include "gemm_wgmma.cuh"  // the kernels gemm_lay_out, gemm and gemm_reduce, in this Kind
