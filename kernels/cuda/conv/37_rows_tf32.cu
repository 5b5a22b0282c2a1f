/*
op = "conv"
rung = 37
name = "rows_tf32"
idea = "For few channels the rows of the image themselves lie in shared memory, the channels of a column side by side, and all weights beside them: a window's row is then a run of neighbouring words, which go to the tensor cores out of registers, and no patch is ever laid out or fetched twice."
launch = "conv_image_rows"
precision = "tf32"
packs = true
overlaps = true
writes = ["nchw float32", "nhwc tf32"]
[defines]
EACH = 4             # channels of a chunk of y
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
KEPT_NBYTES = 221388
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

#define WGMMA_KIND "k8.f32.tf32.tf32"
#define WGMMA_ORDER ""
#define WGMMA_FED_ORDER ""

// What is computed in.
struct Kind {
    static constexpr int CHUNK = 4;
    using Cell = unsigned;
    static __device__ __forceinline__ Cell cell(float v) { return to_tf32(v); }
};

#include "conv_rows.cuh"  // the kernel conv in this Kind
