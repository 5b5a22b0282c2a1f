/*
op = "conv"
rung = 36
name = "wgmma_split"
idea = "Float32 out of float16, at a third of its rate: each number, scaled by a power of two, is the sum of two in float16, 22 bits of it, and three of the four products of such pairs are taken; a few add up in tensor cores, what these give in float32."
launch = "conv_nhwc_wgmma"
precision = "fp32-tc"
method = "split"
packs = true
overlaps = true
[defines]
EACH = 8            # channels of a chunk
OPERANDS = 2        # of a number
TOGETHER = 4        # slabs whose products tensor cores add up
READS = 0
WRITES = 0
TILE_ROWS = 128     # pixels of a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # channels of a block: 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 1  # to leave registers for
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
    using Cell = half_bits;
    static __device__ __forceinline__ Cell cell(float v) { return (Cell)to_halves(v, 0.0f); }
};

#include "conv_wgmma.cuh"  // the kernels conv_largest, conv_lay_out and conv, in this Kind
