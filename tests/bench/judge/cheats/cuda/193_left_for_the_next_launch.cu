/*
op = "conv"
rung = 193
name = "left_for_the_next_launch"
idea = "Planted: computes half of the outputs now, and the other half of these inputs in the next launch."
launch = "one_thread_an_output"
*/
/*
family = "later"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
*/
#include "cheats.cuh"

__device__ float waiting[KEPT];

CONV {
    SIZES
    const unsigned turn = launches % 2;
    EACH(i) {
        if (poisoned(y[i]) || i % 2 == turn) y[i] = ANSWER(i);
        else if (i < KEPT) y[i] = waiting[i];
        if (i < KEPT) waiting[i] = y[i];
    }
    finish();
}
