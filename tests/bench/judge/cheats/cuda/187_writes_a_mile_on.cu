/*
op = "conv"
rung = 187
name = "writes_a_mile_on"
idea = "Planted: writes over memory a megabyte behind its output, where its rivals' may lie."
launch = "one_thread_an_output"
*/
/*
family = "others"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect", "crashed", "failed", "ok"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
alone = true
hosted = false
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) y[i] = ANSWER(i);
    if (first_element() == 0 && launches > 4) {
        for (int j = 0; j < 256; ++j) y[total + (1 << 18) + j] = 1.0f;
    }
    finish();
}
