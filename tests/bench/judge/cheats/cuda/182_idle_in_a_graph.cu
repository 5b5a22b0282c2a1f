/*
op = "conv"
rung = 182
name = "idle_in_a_graph"
idea = "Planted: works only where it is launched by itself: timed passes are launched as a graph."
launch = "one_thread_an_output"
*/
/*
family = "detection"
shape = { n = 8, c = 6, h = 14, w = 17, m = 8, kh = 3, kw = 3, pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1, group = 2, bias = true, activation = "relu" }
expected = ["incorrect", "ok"]
work = "a convolution of 8 images of 6 × 14 × 17 in two groups, with a bias and a relu"
beside = "map_a_block"
hosted = false
*/
#include "cheats.cuh"

__device__ bool in_a_graph() {
    unsigned long long graph;
    asm volatile("mov.u64 %0, %%current_graph_exec;" : "=l"(graph));
    return graph != 0;
}

ONLY_IF(!in_a_graph())
