/*
op = "conv"
rung = 55
name = "stray_write"
idea = "Planted: one element behind the output is written."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i));
    if (first_element() == 0) y[total] = 1.0f;
}
