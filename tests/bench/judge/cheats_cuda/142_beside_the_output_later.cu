/*
op = "conv"
rung = 142
name = "beside_the_output_later"
idea = "Planted: writes behind the end of the output from its two hundredth launch on."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) y[i] = ANSWER(i);
    if (blockIdx.x == 0 && threadIdx.x == 0 && launches > 200) y[total] = 1.0f;
    finish();
}
