/*
op = "conv"
rung = 28
name = "band_fp16"
priority = 20
idea = "An image of few channels need not be laid out anew: the band of it under a block's pixels is rounded to float16 once, into shared memory, and what a lane multiplies at once is four pixels that are neighbours there."
launch = "conv_band"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
writes = ["nchw float32", "nhwc float16"]
[defines]
EACH = 8            # channels of a chunk of y
WRITES = 0          # how y lies: by its place in `writes`
TILE_ROWS = 128     # pixels of a block, all of one image
TILE_COLUMNS = 64   # channels of a block
WARP_ROWS = 64      # of them a warp's
WARP_COLUMNS = 32
STAGES = 3          # slabs of weights in shared memory at once
PARTS = 1           # the sum is never divided
AFTER = 0           # the activation; this line and those below: the launch sets them
C = 3
KH = 3
KW = 3
BAND_ROWS = 8       # rows of the image under a block's windows, at most
LEAD = 64           # values from one to the next
UNIT = 1            # of them in one read
[needs]
compute_capability = "8.0"
group = 1
*/
#include "mma.cuh"

// What is computed in: a value of the band, and how a lane's chunk of a row is multiplied by its two of the columns.
struct Kind {
    static constexpr int CHUNK = 8;
    using Cell = half_bits;
    static __device__ __forceinline__ Cell cell(float v) { return (Cell)to_halves(v, 0.0f); }
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 first, uint4 second, uint4 row) {
        mma_half(sum, first, row.x, row.y);
        mma_half(sum, second, row.z, row.w);
    }
};

#include "conv_band.cuh"  // the kernel conv, in this Kind
