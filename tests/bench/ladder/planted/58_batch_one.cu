/*
op = "conv"
rung = 58
name = "batch_one"
idea = "Planted: all images get the first one's answer."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    const index_t image = (index_t)m * out_h * out_w;
    EACH(i) y[i] = finished(p, bias, i % image, sum(p, x, weight, i % image));
}
