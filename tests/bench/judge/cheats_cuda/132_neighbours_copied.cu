/*
op = "conv"
rung = 132
name = "neighbours_copied"
idea = "Planted: every other column is a copy of the one beside it."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        if (poisoned(y[i])) {
            y[i] = ANSWER(i);
        } else {
            y[i] = finished(p, bias, i, sum(p, x, weight, i - i % out_w % 2));
        }
    }
    finish();
}
