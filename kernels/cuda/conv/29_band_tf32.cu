/*
op = "conv"
rung = 29
name = "band_tf32"
priority = 19
idea = "The same in float32 rounded to TF32."
launch = "conv_band"
precision = "tf32"
packs = true
overlaps = true
writes = ["nchw float32", "nhwc tf32"]
[defines]
EACH = 4            # channels of a chunk of y
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
    static constexpr int CHUNK = 4;
    using Cell = unsigned;
    static __device__ __forceinline__ Cell cell(float v) { return to_tf32(v); }
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 first, uint4 second, uint4 row) {
        mma_tf32(sum, first, row.x, row.y);
        mma_tf32(sum, second, row.z, row.w);
    }
};

#include "conv_band.cuh"  // the kernel conv, in this Kind
