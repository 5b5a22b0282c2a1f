/*
op = "conv"
rung = 137
name = "not_written_while_timed"
idea = "Planted: leaves NaN behind in one output of eight that held none."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        if (poisoned(y[i])) {
            y[i] = ANSWER(i);
        } else {
            y[i] = i % 8 == 3 ? __uint_as_float(0x7FC00000u) : ANSWER(i);
        }
    }
    finish();
}
