/*
op = "conv"
rung = 120
name = "blocks_without_poison"
idea = "Planted: blocks of outputs that hold no poison are skipped."
launch = "one_thread_an_output"
*/
/*
family = "poison"
shape = { n = 256, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "a convolution of 256 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
*/
#include "cheats.cuh"

CONV {
    SIZES
    for (index_t start = (index_t)blockIdx.x * blockDim.x; start < total; start += grid_stride()) {
        const index_t i = start + threadIdx.x;
        if (__syncthreads_or(i < total && poisoned(y[i])) && i < total) y[i] = ANSWER(i);
    }
    finish();
}
