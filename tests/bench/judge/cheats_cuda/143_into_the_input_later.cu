/*
op = "conv"
rung = 143
name = "into_the_input_later"
idea = "Planted: writes into its input from its two hundredth launch on."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) y[i] = ANSWER(i);
    if (blockIdx.x == 0 && threadIdx.x == 0 && launches > 200) x[1] = 1.0f;
    finish();
}
