/*
op = "conv"
rung = 124
name = "hash_of_the_launch_before"
idea = "Planted: computes when the hash that the launch before took of all inputs had changed."
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

__device__ unsigned int hashes[2];

CONV {
    SIZES
    const bool changed = hashes[0] != hashes[1];
    EACH(i) if (changed || poisoned(y[i])) y[i] = ANSWER(i);
    if (finished_last()) hashes[launches % 2] = hash_of(x, INPUTS < 4096 ? INPUTS : 4096, 1021);
}
