/*
op = "conv"
rung = 140
name = "input_put_back"
idea = "Planted: writes the input back as it was first seen, and keeps the answer to that."
launch = "one_thread_an_output"
*/
/*
family = "partial"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
*/
#include "cheats.cuh"

__device__ float first[KEPT];
__device__ unsigned int known;

CONV {
    SIZES
    const unsigned int hash = hash_of(x, INPUTS, INPUTS - 1);
    const bool same = known == hash;
    EACH(i) if (poisoned(y[i]) || !same) y[i] = ANSWER(i);
    for (index_t i = first_element(); i < INPUTS && i < KEPT; i += grid_stride()) {
        if (same) x[i] = first[i];
        else first[i] = x[i];
    }
    if (finished_last()) known = hash;
}
