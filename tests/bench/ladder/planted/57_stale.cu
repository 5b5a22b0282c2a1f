/*
op = "conv"
rung = 57
name = "stale"
idea = "Planted: the first answer is given again for whatever comes later."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

#define KEPT (1 << 20)
__device__ float kept[KEPT];
__device__ bool known[KEPT];

CONV {
    SIZES
    EACH(i) {
        if (i < KEPT && !known[i]) {
            kept[i] = finished(p, bias, i, sum(p, x, weight, i));
            known[i] = true;
        }
        y[i] = i < KEPT ? kept[i] : 0.0f;
    }
}
