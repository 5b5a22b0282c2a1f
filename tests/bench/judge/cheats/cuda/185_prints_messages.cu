/*
op = "conv"
rung = 185
name = "prints_messages"
idea = "Planted: prints what a worker would say of a case, and does nothing while it is timed."
launch = "one_thread_an_output"
*/
/*
family = "machinery"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect", "crashed", "failed"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
hosted = false
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) if (poisoned(y[i])) y[i] = ANSWER(i);
    if (first_element() == 0) printf("{\"type\": \"Done\", \"reason\": \"\"}\n");
    finish();
}
