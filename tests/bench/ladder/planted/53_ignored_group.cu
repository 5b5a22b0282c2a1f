/*
op = "conv"
rung = 53
name = "ignored_group"
idea = "Planted: every map reads the channels of the first group."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    const int channels = c / group, maps = m / group;
    EACH(i) {
        // As far in front of the image as its group's channels lie behind its start.
        const index_t back = (index_t)(map_of(p, i) / maps) * channels * h * w;
        y[i] = finished(p, bias, i, sum(p, x - back, weight, i));
    }
}
