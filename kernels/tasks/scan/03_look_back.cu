/*
op = "scan"
rung = 3
name = "look_back"
idea = "A decoupled look-back: a block tells the sum of its piece at once, then looks back over the pieces before it until one of them knows the sum of all up to its own. Every element is read once."
workspace = "4 * (1 + 3 * ceil(n, BLOCK * EACH))"  # a counter, and a state and two sums a piece
[defines]
BLOCK = 256
EACH = 8  # elements of a thread
[tune]
EACH = [4, 8, 16]
[[launch]]
kernel = "scan_begin"
grid = "ceil(1 + ceil(n, BLOCK * EACH), BLOCK)"
block = "BLOCK"
[[launch]]
grid = "ceil(n, BLOCK * EACH)"
block = "BLOCK"
*/
#include "block_scan.cuh"

#define PIECE (BLOCK * EACH)
#define PLACE(i) ((i) + (i) / LANES)  // so that elements EACH apart lie in different banks

// What is known of a piece: nothing, its own sum, or the sum of all up to its own.
enum { NOTHING, OWN, ALL };

// In scratch memory: how many pieces were given out, then the state of each, its sum, and that of all up to it.
struct Pieces {
    int* given;
    int* state;
    float *own, *all;
};

__device__ __forceinline__ Pieces pieces_in(float* scratch, int count) {
    int* given = reinterpret_cast<int*>(scratch);
    return {given, given + 1, scratch + 1 + count, scratch + 1 + 2 * count};
}

// Nothing is known of any piece: what lay there before a pass is anything.
extern "C" __global__ void scan_begin(const float* x, float* y, float* scratch, const ScanParams p) {
    const int count = (p.n - 1) / PIECE + 1, i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < 1 + count) reinterpret_cast<int*>(scratch)[i] = 0;
}

extern "C" __global__ void scan(const float* __restrict__ x, float* __restrict__ y, float* scratch, const ScanParams p) {
    const int count = (p.n - 1) / PIECE + 1;
    const Pieces pieces = pieces_in(scratch, count);
    __shared__ int given;
    __shared__ float found;
    // Pieces are given out in the order in which blocks begin: all before this one are at work, whatever the number
    // of this block is, so waiting for them ends.
    if (threadIdx.x == 0) given = atomicAdd(pieces.given, 1);
    __syncthreads();  // all know which piece it is
    const int piece = given;

    // Read side by side, and handed on in shared memory: a thread scans EACH elements in a row.
    __shared__ float held[PLACE(PIECE)];
    const long long first = (long long)piece * PIECE;
    for (int i = threadIdx.x; i < PIECE; i += BLOCK) held[PLACE(i)] = first + i < p.n ? x[first + i] : 0.0f;
    __syncthreads();  // the piece is there
    float values[EACH], sum = 0.0f, total;
    for (int e = 0; e < EACH; ++e) {
        sum += held[PLACE(threadIdx.x * EACH + e)];
        values[e] = sum;
    }
    float before = scan_of_block(sum, total) - sum;

    if (threadIdx.x == 0) {
        pieces.own[piece] = total;
        if (piece == 0) pieces.all[0] = total;
        __threadfence();  // whoever sees the state sees the sums
        atomicExch(&pieces.state[piece], piece == 0 ? ALL : OWN);
        float back = 0.0f;
        for (int other = piece - 1; other >= 0; --other) {
            int state;
            while ((state = atomicAdd(&pieces.state[other], 0)) == NOTHING) {
            }
            __threadfence();
            if (state == ALL) {
                back += *(volatile float*)&pieces.all[other];
                break;
            }
            back += *(volatile float*)&pieces.own[other];
        }
        if (piece > 0) {
            pieces.all[piece] = back + total;
            __threadfence();
            atomicExch(&pieces.state[piece], ALL);
        }
        found = back;
    }
    __syncthreads();  // the sum of all pieces before is found
    before += found;
    for (int e = 0; e < EACH; ++e) held[PLACE(threadIdx.x * EACH + e)] = before + values[e];
    __syncthreads();  // the answers are there
    for (int i = threadIdx.x; i < PIECE; i += BLOCK)
        if (first + i < p.n) y[first + i] = held[PLACE(i)];
}
