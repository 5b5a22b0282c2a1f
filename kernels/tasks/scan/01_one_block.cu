/*
op = "scan"
rung = 1
name = "one_block"
idea = "One block goes through the vector, a piece of one element a thread at a time, and carries the sum along: right, and one multiprocessor works."
[defines]
BLOCK = 256
[[launch]]
grid = 1
block = "BLOCK"
*/
#include "block_scan.cuh"

extern "C" __global__ void scan(const float* __restrict__ x, float* __restrict__ y, const ScanParams p) {
    float before = 0.0f;  // the sum of all pieces so far
    for (int first = 0; first < p.n; first += BLOCK) {
        const int i = first + threadIdx.x;
        float total;
        const float own = scan_of_block(i < p.n ? x[i] : 0.0f, total);
        if (i < p.n) y[i] = before + own;
        before += total;
    }
}
