/*
op = "conv"
rung = 133
name = "half_precision"
idea = "Planted: sums are rounded to half precision."
launch = "one_thread_an_output"
*/
/*
family = "precision"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i, true));
    finish();
}
