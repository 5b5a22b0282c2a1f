/*
op = "conv"
rung = 60
name = "nan"
idea = "Planted: a division of zero by zero at the corner."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    EACH(i) {
        const float v = finished(p, bias, i, sum(p, x, weight, i));
        y[i] = i % ((index_t)out_h * out_w) ? v : __int_as_float(0x7fc00000);
    }
}
