/*
op = "conv"
rung = 135
name = "zeros_while_timed"
idea = "Planted: writes zeros where no poison lies."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        if (poisoned(y[i])) {
            y[i] = ANSWER(i);
        } else {
            y[i] = 0.0f;
        }
    }
    finish();
}
