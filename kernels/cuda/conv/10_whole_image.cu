/*
op = "conv"
rung = 10
priority = 30
name = "whole_image"
idea = "A small image fits into shared memory with its border and all its channels, and so do the weights: a block reads both once, waits once, and then only multiplies. Where images are few, their rows, their maps and the channels of a sum are shared among more blocks and threads."
launch = "conv_whole_image"
packs = true
overlaps = true
[defines]
BAND = 10    # rows of y a block; this line and those below: the launch fits them to the shapes
ROWS = 14    # of the padded image that they read
COLUMNS = 14
THREADS = 128
DOWN = 4     # outputs a thread, one below the other, in FOUR maps
CELL_H = 1   # outputs that a pool makes one of: there is none
CELL_W = 1
MAPS = 16    # maps a block, a multiple of FOUR
SHARES = 1   # threads that share the channels of a sum
KH = 5       # the window
KW = 5
C = 6        # all the shapes
H = 14
W = 14
M = 16
OUT_H = 10
OUT_W = 10
STRIDE_H = 1
STRIDE_W = 1
PAD_TOP = 0
PAD_LEFT = 0
DILATION_H = 1
DILATION_W = 1
GROUP = 1
[needs]
kernel_max = 16
image_max = 16384
weights_max = 65536
*/
#include "whole_image.cuh"

// weight is packed: (GROUP, PARTS, TAPS, MAPS), zero where a map is beyond the last.
extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    whole_image(x, weight, p.n, [=](const float (&cell)[1][1], int image, int map, int row, int column) {
        const float v = cell[0][0] + (bias ? bias[map] : 0.0f);
        y[(((index_t)image * M + map) * OUT_H + row) * OUT_W + column] = activate(v, p.activation);
    });
}
