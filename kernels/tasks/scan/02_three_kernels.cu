/*
op = "scan"
rung = 2
name = "three_kernels"
idea = "Reduce, scan, scan: all blocks add up their pieces, one block scans the sums of the pieces, and all blocks scan their pieces from there on. Every element is read twice."
workspace = "4 * ceil(n, BLOCK * EACH)"  # the sum of each piece, then of all before it
[defines]
BLOCK = 256
EACH = 8  # elements of a thread
[tune]
EACH = [4, 8, 16]
[[launch]]
kernel = "scan_sums"
grid = "ceil(n, BLOCK * EACH)"
block = "BLOCK"
[[launch]]
kernel = "scan_of_sums"
grid = 1
block = "BLOCK"
[[launch]]
grid = "ceil(n, BLOCK * EACH)"
block = "BLOCK"
*/
#include "block_scan.cuh"

#define PIECE (BLOCK * EACH)

extern "C" __global__ void scan_sums(const float* __restrict__ x, float* __restrict__ y, float* __restrict__ sums,
                                     const ScanParams p) {
    float own = 0.0f, total;
    for (int e = 0; e < EACH; ++e) {
        const long long i = (long long)blockIdx.x * PIECE + e * BLOCK + threadIdx.x;
        if (i < p.n) own += x[i];
    }
    scan_of_block(own, total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Of each piece the sum of all pieces before it.
extern "C" __global__ void scan_of_sums(const float* __restrict__ x, float* __restrict__ y, float* __restrict__ sums,
                                        const ScanParams p) {
    const int pieces = (p.n - 1) / PIECE + 1;
    float before = 0.0f;
    for (int first = 0; first < pieces; first += BLOCK) {
        const int i = first + threadIdx.x;
        const float piece = i < pieces ? sums[i] : 0.0f;
        float total;
        const float own = scan_of_block(piece, total);
        if (i < pieces) sums[i] = before + own - piece;
        before += total;
    }
}

extern "C" __global__ void scan(const float* __restrict__ x, float* __restrict__ y, const float* __restrict__ sums,
                                const ScanParams p) {
    float before = sums[blockIdx.x];
    for (int e = 0; e < EACH; ++e) {
        const long long i = (long long)blockIdx.x * PIECE + e * BLOCK + threadIdx.x;
        float total;
        const float own = scan_of_block(i < p.n ? x[i] : 0.0f, total);
        if (i < p.n) y[i] = before + own;
        before += total;
    }
}
