/*
op = "conv"
rung = 56
name = "unwritten_edge"
idea = "Planted: the last column is left as it was."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) {
        if (i % out_w != out_w - 1) y[i] = finished(p, bias, i, sum(p, x, weight, i));
    }
}
