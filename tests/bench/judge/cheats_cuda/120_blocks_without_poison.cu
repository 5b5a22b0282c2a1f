/*
op = "conv"
rung = 120
name = "blocks_without_poison"
idea = "Planted: blocks of outputs that hold no poison are skipped."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    for (index_t start = (index_t)blockIdx.x * blockDim.x; start < total; start += grid_stride()) {
        const index_t i = start + threadIdx.x;
        if (__syncthreads_or(i < total && poisoned(y[i])) && i < total) y[i] = ANSWER(i);
    }
    finish();
}
