/*
op = "conv"
rung = 138
name = "stale_output_read"
idea = "Planted: half of the answer is what lay in the output before."
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

CONV {
    SIZES
    EACH(i) {
        if (poisoned(y[i])) {
            y[i] = ANSWER(i);
        } else {
            y[i] = 0.5f * (y[i] + ANSWER(i));
        }
    }
    finish();
}
