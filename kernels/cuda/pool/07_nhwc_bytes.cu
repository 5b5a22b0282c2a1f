/*
op = "pool"
rung = 7
name = "nhwc_bytes"
idea = "Numbers of eight bits are compared as they are; with the channels of a pixel side by side a thread has sixteen of them, 16 bytes."
launch = "nhwc_bands"
overlaps = true
reads = ["nchw float32", "nhwc bytes"]
writes = ["nchw float32", "nhwc bytes"]
[defines]
EACH = 16   # channels of a chunk
READS = 0   # how x lies: by its place in `reads`
WRITES = 0  # and y
CHUNKS_AT_ONCE = 4  # chunks of channels of a block
OUTS = 2    # rows of outputs of a block; this line and those below: the launch sets them
TILE = 4    # outputs of a row of a block
X_TYPE = 1  # of x and y
TO = 1
SIZE = 0    # nothing is normalised
AFTER = 0
KIND = 0
C = 16
H = 8
W = 8
OUT_H = 4
OUT_W = 4
KH = 2
KW = 2
STRIDE_H = 2
STRIDE_W = 2
PAD_TOP = 0
PAD_LEFT = 0
PAD_BOTTOM = 0
PAD_RIGHT = 0
COUNT_PAD = 0
WIDE = 0
[needs]
dtype = ["uint8", "int8"]
kind = ["max"]
activation = ["none"]
dilation = 1
kernel_max = 8
*/
#include "nhwc_pool.cuh"

// The pointers are those of every pool; what lies there are bytes.
extern "C" __global__ void pool(const float* __restrict__ x, float* __restrict__ y, const PoolParams p) {
    pool_band(reinterpret_cast<const Given*>(x), reinterpret_cast<Made*>(y), 0.0f, 0.0f, 0.0f);
}
