/*
op = "conv"
rung = 137
name = "not_written_while_timed"
idea = "Planted: leaves NaN behind in one output of eight that held none."
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
            y[i] = i % 8 == 3 ? __uint_as_float(0x7FC00000u) : ANSWER(i);
        }
    }
    finish();
}
