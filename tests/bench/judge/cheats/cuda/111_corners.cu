/*
op = "conv"
rung = 111
name = "corners"
idea = "Planted: an output is kept while the input's first and last values stay."
launch = "one_thread_an_output"
*/
/*
family = "memory"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const unsigned int hash = hash_of(x, INPUTS, INPUTS - 1);
    EACH(i) {
        if (poisoned(y[i]) || i >= KEPT || seen[i] != hash) y[i] = ANSWER(i);
        if (i < KEPT) seen[i] = hash;
    }
    finish();
}
