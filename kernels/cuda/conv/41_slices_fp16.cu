/*
op = "conv"
rung = 41
name = "slices_fp16"
priority = 19
idea = "For one small image of many channels: each block keeps a slice of the channels of a whole image in shared memory, where every tap of the window reads it shifted, and the weights of few outputs beside it, fetched while the kernel in front still runs; the blocks of a cluster tell each other their sums."
launch = "conv_image_slices"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
EACH = 8             # channels of a chunk
READS = 0            # how x lies: by its place in `reads`
WRITES = 0           # and y
STRIPS = 4           # of a block, 16 channels of y each: the most
RANKS = 8            # blocks of a cluster, each with a slice of the sum: the most
BAND = 13            # this line and those below: the launch fits them, and compiles the shape in
WARPS = 8
TILES = 4            # of a warp, eight pixels each
C = 256              # of a group
H = 13
W = 13
KH = 3
KW = 3
OUT_H = 13
OUT_W = 13
STRIDE_H = 1
STRIDE_W = 1
PAD_TOP = 1
PAD_LEFT = 1
DILATION_H = 1
DILATION_W = 1
KEPT_NBYTES = 104272
AFTER = 0            # the activation
[tune]
STRIPS = [1, 2, 4]
RANKS = [4, 8]
[needs]
compute_capability = "9.0"
depthwise = false    # of a strip of maps one would count
image_max = 131072   # small images
[prefers]
m_min = 16           # of a strip
*/
#include "half.cuh"
#include "mma_sync.cuh"

// What is computed in.
struct Kind {
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 columns, unsigned first,
                                                    unsigned second) {
        mma_half(sum, columns, first, second);
    }
};

#include "conv_slices.cuh"  // the kernel conv in this Kind
