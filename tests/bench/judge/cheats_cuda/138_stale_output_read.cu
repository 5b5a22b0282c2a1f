/*
op = "conv"
rung = 138
name = "stale_output_read"
idea = "Planted: half of the answer is what lay in the output before."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        if (poisoned(y[i])) {
            y[i] = ANSWER(i);
        } else {
            y[i] = 0.5f * (y[i] + ANSWER(i));
        }
    }
    finish();
}
