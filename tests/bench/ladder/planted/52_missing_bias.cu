/*
op = "conv"
rung = 52
name = "missing_bias"
idea = "Planted: the bias is left out."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) y[i] = activate(sum(p, x, weight, i), p.activation);
}
