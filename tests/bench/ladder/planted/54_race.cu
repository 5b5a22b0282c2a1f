/*
op = "conv"
rung = 54
name = "race"
idea = "Planted: two warps write to one place in shared memory, and whoever is last wins."
launch = "one_thread_an_output"
*/
#include "direct.cuh"

CONV {
    SIZES
    __shared__ float held[256];
    const index_t i = first_element();
    const int t = threadIdx.x;
    const float v = i < total ? finished(p, bias, i, sum(p, x, weight, i)) : 0.0f;
    const long long until = clock64() + ((unsigned)clock64() * 2654435761u >> 21);
    while (clock64() < until) {
    }
    held[t] = v;
    held[t ^ 32] = 0.0f;
    __syncthreads();
    if (i < total) y[i] = held[t];
}
