/*
op = "conv"
rung = 68
name = "illegal"
idea = "Planted: a write far outside of all memory."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) y[i + (1LL << 44)] = 1.0f;
}
