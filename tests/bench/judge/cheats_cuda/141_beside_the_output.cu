/*
op = "conv"
rung = 141
name = "beside_the_output"
idea = "Planted: writes behind the end of the output."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) y[i] = ANSWER(i);
    if (blockIdx.x == 0 && threadIdx.x == 0) y[total] = 1.0f;
    finish();
}
