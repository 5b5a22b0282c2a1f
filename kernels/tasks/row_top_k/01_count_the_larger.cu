/*
op = "row_top_k"
rung = 1
name = "count_the_larger"
idea = "One thread an element: it counts the elements of its row that come before it, and if they are fewer than k, that is its place. The row is read n times."
[defines]
BLOCK = 128
[[launch]]
grid = ["ceil(n, BLOCK)", "min(m, 65535)"]
block = "BLOCK"
*/
extern "C" __global__ void row_top_k(const float* __restrict__ x, float* __restrict__ y, const RowTopKParams p) {
    const int own = blockIdx.x * BLOCK + threadIdx.x;
    if (own >= p.n) return;
    for (int row = blockIdx.y; row < p.m; row += gridDim.y) {
        const float* of = x + (long long)row * p.n;
        const float v = of[own];
        int place = 0;
        // Of equal ones the first comes first, so that each place is taken once.
        for (int other = 0; other < p.n && place < p.k; ++other)
            place += of[other] > v || (of[other] == v && other < own);
        if (place < p.k) y[(long long)row * p.k + place] = v;
    }
}
