/*
op = "conv"
rung = 39
name = "rows_split"
idea = "The same of numbers that are sums of two float16, whose rows lie beside each other: float32 at a third of float16's rate."
launch = "conv_image_rows"
precision = "fp32-tc"
method = "split"
packs = true
overlaps = true
[defines]
EACH = 8             # channels of a chunk of y
OPERANDS = 2         # of a number
TOGETHER = 8         # instructions of big numbers whose products tensor cores add up
WRITES = 0           # how y lies
GROUPS = 2           # warpgroups of a block, 64 pixels each: the most
TILE_COLUMNS = 96    # channels of a block: 64, 96, 128 or 192
BATCH = 2            # instructions whose words are read while those before are multiplied
C = 3                # this line and those below: the launch compiles the shape in
H = 227
W = 227
KH = 11
KW = 11
OUT_H = 55
OUT_W = 55
STRIDE_H = 4
STRIDE_W = 4
PAD_TOP = 0
PAD_LEFT = 0
KEPT_NBYTES = 210968
AFTER = 0            # the activation
[tune]
GROUPS = [1, 2]
BATCH = [2, 4]
[needs]
architecture = "9.0"
group = 1
dilation = 1
[prefers]
outputs_min = 262144  # so that multiprocessors of a large device have something to do
m_min = 32            # of a tile of 64
row_max = 64          # few channels: of many, chunks of a pixel are read at once
*/
#include "half.cuh"

#define WGMMA_KIND "k16.f32.f16.f16"
#define WGMMA_ORDER ", 0, 0"
#define WGMMA_FED_ORDER ", 0"

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 8;
    using Cell = half_bits;
    static __device__ __forceinline__ Cell cell(float v) { return (Cell)to_halves(v, 0.0f); }
};

#include "conv_rows.cuh"  // the kernels conv_largest and conv in this Kind
