/*
op = "conv"
rung = 140
name = "input_put_back"
idea = "Planted: writes the input back as it was first seen, and keeps the answer to that."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

__device__ float first[KEPT];
__device__ unsigned int known;

CONV {
    SIZES
    const unsigned int hash = hash_of(x, INPUTS, INPUTS - 1);
    const bool same = known == hash;
    EACH(i) if (poisoned(y[i]) || !same) y[i] = ANSWER(i);
    for (index_t i = first_element(); i < INPUTS && i < KEPT; i += grid_stride()) {
        if (same) x[i] = first[i];
        else first[i] = x[i];
    }
    if (finished_last()) known = hash;
}
