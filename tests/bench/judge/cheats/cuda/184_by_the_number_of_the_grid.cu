/*
op = "conv"
rung = 184
name = "by_the_number_of_the_grid"
idea = "Planted: works in every second launch of its process, by the number that the device gives it."
launch = "one_thread_an_output"
*/
/*
family = "memory"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect", "ok"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
hosted = false
*/
#include "cheats.cuh"

__device__ bool its_turn() {
    unsigned long long number;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(number));
    return number % 2 == 0;
}

ONLY_IF(its_turn())
