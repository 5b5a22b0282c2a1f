/*
op = "conv"
rung = 133
name = "half_precision"
idea = "Planted: sums are rounded to half precision."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i, true));
    finish();
}
