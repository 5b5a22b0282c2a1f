/*
op = "conv"
rung = 34
name = "wgmma_tf32"
idea = "The same in float32 rounded to TF32."
launch = "conv_nhwc_wgmma"
precision = "tf32"
packs = true
overlaps = true
reads = ["nchw float32", "nhwc tf32"]
writes = ["nchw float32", "nhwc tf32"]
[defines]
EACH = 4            # channels of a chunk
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

#define WGMMA_KIND "k8.f32.tf32.tf32"
#define WGMMA_ORDER ""

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 4;
    using Cell = unsigned;
    static __device__ __forceinline__ Cell cell(float v) { return to_tf32(v); }
};

#include "conv_wgmma.cuh"  // the kernels conv_lay_out and conv, in this Kind
