/*
op = "conv"
rung = 51
name = "swapped_stride"
idea = "Planted: the strides along height and width change places."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    p.stride_h = stride_w;
    p.stride_w = stride_h;
    EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i));
}
