/*
op = "conv"
rung = 59
name = "half_sum"
idea = "Planted: products are summed in half precision."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i, true));
}
