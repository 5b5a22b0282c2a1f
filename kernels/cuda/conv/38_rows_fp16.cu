/*
op = "conv"
rung = 38
name = "rows_fp16"
idea = "The same in float16, two values a word: a channel of zeros is added where a pixel would begin within one."
launch = "conv_image_rows"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
writes = ["nchw float32", "nhwc float16"]
[defines]
EACH = 8             # channels of a chunk of y
WRITES = 0           # how y lies: by its place in `writes`
GROUPS = 3           # warpgroups of a block, 64 pixels each: the most
TILE_COLUMNS = 96    # channels of a block: 64, 96, 128 or 192
BATCH = 4            # instructions whose words are read while those before are multiplied
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
KEPT_NBYTES = 110940
AFTER = 0            # the activation
[tune]
GROUPS = [2, 3]
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

#define WGMMA_KIND "k16.f32" HALF_TYPE HALF_TYPE
#define WGMMA_ORDER ", 0, 0"
#define WGMMA_FED_ORDER ", 0"

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 8;
    using Cell = half_bits;
    static __device__ __forceinline__ Cell cell(float v) { return (Cell)to_halves(v, 0.0f); }
};

#include "conv_rows.cuh"  // the kernel conv in this Kind
