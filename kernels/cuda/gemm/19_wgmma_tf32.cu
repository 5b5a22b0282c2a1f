/*
op = "gemm"
rung = 19
name = "wgmma_tf32"
idea = "The same in float32 rounded to TF32."
launch = "gemm_wgmma"
precision = "tf32"
packs = true
overlaps = true
reads = ["nchw float32", "nhwc tf32"]
writes = ["nchw float32", "nhwc tf32"]
[defines]
TILE_ROWS = 128     # of y, a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 2  # to leave registers for
PARTS = 1           # of the sum; with one there is no second kernel
READS = 0           # how a lies: by its place in `reads`
WRITES = 0          # and y
[needs]
m_min = 9  # fewer rows take the time of reading b, which warp_columns does best
trans_a = false
batch = 1
architecture = "9.0"
[prefers]
m_min = 128  # of a tile of fewer rows the tensor cores' work is half for nothing
outputs_min = 65536
*/
#include "half.cuh"

#define WGMMA_KIND "k8.f32.tf32.tf32"
#define WGMMA_ORDER ""

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 4;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_tf32(v[0]), to_tf32(v[1]), to_tf32(v[2]), to_tf32(v[3])};
    }
};

#include "gemm_wgmma.cuh"  // the kernels gemm_lay_out, gemm and gemm_reduce, in this Kind
