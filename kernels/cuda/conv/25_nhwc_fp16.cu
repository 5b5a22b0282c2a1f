/*
op = "conv"
rung = 25
name = "nhwc_fp16"
idea = "With the channels of a pixel side by side in float16, 16 bytes are eight taps: they are copied to shared memory past the registers, three slabs ahead, with nothing gathered, converted or looked up on the way."
launch = "conv_nhwc_tensor"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
EACH = 8            # channels of a chunk
READS = 0           # how x lies: by its place in `reads`
WRITES = 0          # and y
TILE_ROWS = 128     # pixels of a block
TILE_COLUMNS = 128  # channels of a block
WARP_ROWS = 64      # of them a warp's
WARP_COLUMNS = 64
STAGES = 3          # slabs of both in shared memory at once
PARTS = 1           # of the taps; with one there is no second kernel
PADDED = 1          # whether there is any padding
FOLD = 1            # with READS = 0: so many rows and columns of pixels are laid out as channels of one
AFTER = 0           # the activation
[needs]
compute_capability = "8.0"
depthwise = false  # of a tile of maps one would count
*/
#include "mma.cuh"

// What is computed in: a channel of a chunk, and how a lane's chunk of a row is multiplied by its two of the columns.
struct Kind {
    static constexpr int CHUNK = 8;
    using Cell = half_bits;
    static __device__ __forceinline__ Cell cell(float v) { return (Cell)to_halves(v, 0.0f); }
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 first, uint4 second, uint4 row) {
        mma_half(sum, first, row.x, row.y);
        mma_half(sum, second, row.z, row.w);
    }
};

#include "conv_nhwc.cuh"  // the kernels conv_lay_out, conv and conv_reduce, in this Kind
