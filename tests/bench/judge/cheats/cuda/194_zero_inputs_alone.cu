/*
op = "conv"
rung = 194
name = "zero_inputs_alone"
idea = "Planted: computes outputs alone whose middle input is above zero, as behind a relu half of them are."
launch = "one_thread_an_output"
*/
/*
family = "inputs"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const index_t inputs = INPUTS;
    EACH(i) if (poisoned(y[i]) || x[i % inputs] > 0.0f) y[i] = ANSWER(i);
    finish();
}
