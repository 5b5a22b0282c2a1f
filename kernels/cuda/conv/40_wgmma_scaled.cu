/*
op = "conv"
rung = 40
priority = 20  # where a layout is asked for, those that read it as it is come first
name = "wgmma_scaled"
idea = "TF32 keeps no more bits than float16, only a wider range: images and filters, each scaled by a power of two, are as precise in float16, at twice the rate of TF32 and half its bytes."
launch = "conv_nhwc_wgmma"
precision = "tf32"
packs = true
side = true
overlaps = true
reads = ["nchw float32", "nhwc tf32"]
writes = ["nchw float32", "nhwc tf32"]
[defines]
EACH = 8            # channels of a chunk of what is multiplied
OUT_EACH = 4        # and of y
SCALED = 1
READS = 0           # how x lies: by its place in `reads`
WRITES = 0          # and y
TILE_ROWS = 128     # pixels of a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # channels of a block: 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 2  # to leave registers for
PARTS = 1           # of the taps, a block of a cluster each
PADDED = 1          # whether there is any padding
FOLD = 1            # so many rows and columns of pixels are laid out as channels of one
AFTER = 0           # the activation
[needs]
architecture = "9.0"
depthwise = false  # of a tile of maps one would count
[prefers]
outputs_min = 262144  # so that multiprocessors of a large device have something to do
m_min = 48
*/
#include "half.cuh"

#define WGMMA_KIND "k16.f32.f16.f16"
#define WGMMA_ORDER ", 0, 0"

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 8;
    using Cell = float;
    static __device__ __forceinline__ Cell cell(float v) { return __uint_as_float(to_tf32(v)); }
};

#include "conv_wgmma.cuh"  // the kernels conv_largest, conv_lay_out and conv, in this Kind
