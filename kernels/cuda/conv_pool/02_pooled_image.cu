/*
op = "conv_pool"
rung = 2
name = "pooled_image"
idea = "A pool whose windows lie side by side wants each output of the convolution once: a thread computes a whole window in four maps and keeps the largest or the mean, so that what lies between is never written, nor read, nor a kernel of its own started."
launch = "conv_pool_whole_image"
packs = true
overlaps = true
[defines]
BAND = 5     # rows of y a block; this line and those below: the launch fits them to the shapes
ROWS = 14    # of the padded image that they read
COLUMNS = 14
THREADS = 128
DOWN = 1     # outputs of the pool a thread, one below the other, in FOUR maps
CELL_H = 2   # the pool's window
CELL_W = 2
KIND = 0     # of pool
BETWEEN = 0  # the activation of the convolution, and that of the pool
AFTER = 0
MAPS = 16    # maps a block, a multiple of FOUR
SHARES = 1   # threads that share the channels of a sum
KH = 5       # the window
KW = 5
C = 6        # all the shapes
H = 14
W = 14
M = 16
OUT_H = 5    # of y
OUT_W = 5
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
    conv_pool(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
              float* __restrict__ y, const ConvPoolParams p) {
    whole_image(x, weight, p.n, [=](const float (&cell)[CELL_H][CELL_W], int image, int map, int row, int column) {
        const float shift = bias ? bias[map] : 0.0f;
        float v = KIND == POOL_MAX ? minus_infinity() : 0.0f;
#pragma unroll
        for (int i = 0; i < CELL_H * CELL_W; ++i) {
            const float u = cell[i / CELL_W][i % CELL_W];
            v = KIND == POOL_MAX ? larger(v, u) : v + activate(u + shift, BETWEEN);
        }
        // Neither a sum with the bias nor an activation ever falls: done once, with the largest, they give the same.
        v = KIND == POOL_MAX ? activate(v + shift, BETWEEN) : v / (CELL_H * CELL_W);
        y[(((index_t)image * M + map) * OUT_H + row) * OUT_W + column] = activate(v, AFTER);
    });
}
