/*
op = "conv"
rung = 188
name = "traps_when_warm"
idea = "Planted: ends itself by a trap once it is warm."
launch = "one_thread_an_output"
*/
/*
family = "ends"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["crashed", "failed", "incorrect"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
alone = true
hosted = false
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) y[i] = ANSWER(i);
    if (first_element() == 0 && launches > 40) asm volatile("trap;");
    finish();
}
