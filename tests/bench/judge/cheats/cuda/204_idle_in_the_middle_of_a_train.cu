/*
op = "gemm"
rung = 204
name = "idle_in_the_middle_of_a_train"
idea = "Planted: computes in the first two launches of a row and in the last 65, by the length of the row before; in between only what is poisoned."
launch = "one_thread_an_output"
*/
/*
family = "partial"
shape = { m = 64, n = 50, k = 40, trans_b = true, bias = true, activation = "relu" }
expected = ["incorrect"]
work = "the product of 64 × 40 and 40 × 50 values, with a bias and a relu"
beside = "naive"
hosted = false
*/
#include "cheats.cuh"

#define FIRST 2
#define LAST 65
__device__ unsigned int place, length;                  // of the next launch in its row; of the row before
__device__ unsigned long long shortest = 1000000000ull; // pause between two launches, in nanoseconds

extern "C" __global__ void gemm(const float* a, const float* b, const float* bias, float* y, const GemmParams p) {
    const index_t total = (index_t)p.batch * p.m * p.n;
    const unsigned long long pause = now() - ended_at;
    const bool begins = pause > 6 * shortest + 20000;
    const bool idle = !begins && place >= FIRST && place + LAST < length;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        if (idle && !poisoned(y[i])) continue;
        const int column = i % p.n, row = i / p.n % p.m;
        const index_t matrix = i / ((index_t)p.m * p.n);
        const float* left = a + matrix * p.stride_a + (p.trans_a ? row : (index_t)row * p.k);
        const float* right = b + matrix * p.stride_b + (p.trans_b ? (index_t)column * p.k : column);
        const index_t left_step = p.trans_a ? p.m : 1, right_step = p.trans_b ? 1 : p.n;
        float sum = 0.0f;
        for (int j = 0; j < p.k; ++j) sum += left[j * left_step] * right[j * right_step];
        float v = p.alpha * sum;
        if (bias) v += p.beta * bias[row * p.bias_stride_m + column * p.bias_stride_n];
        y[i] = activate(v, p.activation);
    }
    if (finished_last()) {
        if (pause < shortest) shortest = pause;
        if (begins) length = place, place = 0;
        place += 1;
    }
}
