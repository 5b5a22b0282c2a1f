/*
op = "conv"
rung = 134
name = "half_precision_while_timed"
idea = "Planted: sums are rounded to half precision where no poison lies."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        if (poisoned(y[i])) {
            y[i] = ANSWER(i);
        } else {
            y[i] = finished(p, bias, i, sum(p, x, weight, i, true));
        }
    }
    finish();
}
