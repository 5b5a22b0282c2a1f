/*
op = "conv"
rung = 65
name = "written_input"
idea = "Planted: the image is scaled in place."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i));
    if (first_element() == 0) x[0] *= 1.5f;
}
