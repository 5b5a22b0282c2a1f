/*
op = "conv"
rung = 61
name = "zeros_only"
idea = "Planted: what the image holds is never read."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) y[i] = finished(p, bias, i, 0.0f);
}
