/*
op = "conv"
rung = 50
name = "off_by_one_pad"
idea = "Planted: the image is taken to begin one row further down than it does."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    p.pad_top += 1;
    EACH(i) y[i] = finished(p, bias, i, sum(p, x, weight, i));
}
