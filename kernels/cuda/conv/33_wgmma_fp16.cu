/*
op = "conv"
rung = 33
name = "wgmma_fp16"
idea = "Four warps multiply together, in the background, and read both operands from shared memory themselves: a chunk of a patch is read once for up to 192 channels, and no register holds it."
launch = "conv_nhwc_wgmma"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
EACH = 8            # channels of a chunk
READS = 0           # how x lies: by its place in `reads`
WRITES = 0          # and y
TILE_ROWS = 128     # pixels of a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # channels of a block: 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 2  # to leave registers for
PARTS = 1           # of the taps, a block of a cluster each
PADDED = 1          # whether there is any padding
FOLD = 1            # with READS = 0: so many rows and columns of pixels are laid out as channels of one
AFTER = 0           # the activation
[needs]
architecture = "9.0"
depthwise = false  # of a tile of maps one would count
[prefers]
outputs_min = 262144  # so that multiprocessors of a large device have something to do
m_min = 48
*/
#include "half.cuh"

#define WGMMA_KIND "k16.f32" HALF_TYPE HALF_TYPE
#define WGMMA_ORDER ", 0, 0"  // the steps of both operands lie side by side

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 8;
    using Cell = half_bits;
    static __device__ __forceinline__ Cell cell(float v) { return (Cell)to_halves(v, 0.0f); }
};

#include "conv_wgmma.cuh"  // the kernels conv_lay_out and conv, in this Kind
