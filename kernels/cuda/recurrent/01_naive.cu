/*
op = "recurrent"
rung = 1
name = "naive"
idea = "A block a sequence and direction, whose state stays in shared memory from step to step; a warp at a time works out the gates of one hidden element, its lanes side by side along a row of the weights."
launch = "one_block_a_sequence"
[defines]
BLOCK = 256
*/
#include "common.cuh"
#include "sums.cuh"
#include "warp.cuh"

__device__ __forceinline__ float gate(float v, int function, float clip) {
    if (clip > 0.0f) v = v < -clip ? -clip : v > clip ? clip : v;
    if (function == GATE_SIGMOID) return sigmoid(v);
    if (function == GATE_TANH) return tanhf(v);
    if (function == GATE_RELU) return relu(v);
    v = 0.2f * v + 0.5f;
    return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}

// A row of the recurrence times the state; every lane gets the sum.
__device__ __forceinline__ float product(const float* __restrict__ row, const float* state, int hidden) {
    LongSum sum;
    for (int k = threadIdx.x % LANES; k < hidden; k += LANES) sum.add(row[k] * state[k]);
    return sum_of_lanes(sum.total());
}

// sums (D, steps, n, G * H), recurrence (D, G * H, H), bias (D, 2 * G * H), first and cell (D, n, H), peepholes (D, 3 * H);
// y (steps + 1 or 2, D, n, H). Gates: of a GRU z, r, h; of an LSTM i, o, f, c; its peepholes i, o, f.
extern "C" __global__ void recurrent(const float* __restrict__ sums, const float* __restrict__ recurrence,
                                     const float* __restrict__ bias, const int* __restrict__ lengths,
                                     const float* __restrict__ first, const float* __restrict__ cell,
                                     const float* __restrict__ peepholes, float* __restrict__ y,
                                     const RecurrentParams p) {
    extern __shared__ float4 dynamic[];
    const int hidden = p.hidden, d = blockIdx.x / p.n, n = blockIdx.x % p.n;
    float *h = (float*)dynamic, *next = h + hidden;  // the state, and that behind the step
    float *kept = next + hidden, *reset = kept + hidden;  // a cell, or a GRU's update gate; its reset gate
    const int gates = p.kind == RECURRENT_LSTM ? 4 : p.kind == RECURRENT_GRU ? 3 : 1, wide = gates * hidden;
    const int directions = p.direction == DIRECTION_BIDIRECTIONAL ? 2 : 1;
    const bool reverse = d == 1 || p.direction == DIRECTION_REVERSE;
    const float* weights = recurrence + (index_t)d * wide * hidden;
    const float *of_x = bias + (index_t)d * 2 * wide, *of_h = of_x + wide;
    const float* peep = peepholes + (index_t)d * 3 * hidden;
    const int f = p.gate, g = p.candidate;
    const index_t state = ((index_t)d * p.n + n) * hidden, step = (index_t)directions * p.n * hidden;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    int length = lengths[n];
    length = length < 0 ? 0 : length > p.steps ? p.steps : length;
    for (int j = threadIdx.x; j < hidden; j += blockDim.x) {
        h[j] = first[state + j];
        if (p.kind == RECURRENT_LSTM) kept[j] = cell[state + j];
    }
    __syncthreads();
    for (int s = length; s < p.steps; ++s) {  // behind its end a sequence has zeros
        for (int j = threadIdx.x; j < hidden; j += blockDim.x) y[s * step + state + j] = 0.0f;
    }
    for (int s = 0; s < length; ++s) {
        const int t = reverse ? length - 1 - s : s;
        const float* x = sums + (((index_t)d * p.steps + t) * p.n + n) * wide;
        if (p.kind == RECURRENT_GRU) {
            for (int j = warp; j < hidden; j += warps) {
                const int r = hidden + j;
                const float of_z = product(weights + (index_t)j * hidden, h, hidden);
                const float of_r = product(weights + (index_t)r * hidden, h, hidden);
                if (lane == 0) {
                    kept[j] = gate(x[j] + of_z + of_x[j] + of_h[j], f, p.clip);
                    const float open = gate(x[r] + of_r + of_x[r] + of_h[r], f, p.clip);
                    reset[j] = p.linear_before_reset ? open : open * h[j];
                }
            }
            __syncthreads();  // all of what is multiplied next is there
        }
        for (int j = warp; j < hidden; j += warps) {
            float now;
            if (p.kind == RECURRENT_RNN) {
                const float sum = product(weights + (index_t)j * hidden, h, hidden);
                now = gate(x[j] + sum + of_x[j] + of_h[j], g, p.clip);
            } else if (p.kind == RECURRENT_GRU) {
                const int c = 2 * hidden + j;
                const float sum = product(weights + (index_t)c * hidden, p.linear_before_reset ? h : reset, hidden);
                const float more = p.linear_before_reset ? reset[j] * (sum + of_h[c]) : sum + of_h[c];
                const float candidate = gate(x[c] + more + of_x[c], g, p.clip);
                now = (1.0f - kept[j]) * candidate + kept[j] * h[j];
            } else {
                float v[4];
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const int row = k * hidden + j;
                    v[k] = x[row] + product(weights + (index_t)row * hidden, h, hidden) + of_x[row] + of_h[row];
                }
                const float before = kept[j];
                const float in = gate(v[0] + peep[j] * before, f, p.clip);
                const float keep = p.coupled ? 1.0f - in : gate(v[2] + peep[2 * hidden + j] * before, f, p.clip);
                const float held = keep * before + in * gate(v[3], g, p.clip);
                __syncwarp();  // every lane has read the cell before one of them writes it
                if (lane == 0) kept[j] = held;
                now = gate(v[1] + peep[hidden + j] * held, f, p.clip) * gate(held, p.last, 0.0f);
            }
            if (lane == 0) next[j] = now, y[t * step + state + j] = now;
        }
        __syncthreads();  // nobody reads the old state any more
        float* old = h;
        h = next, next = old;
    }
    for (int j = threadIdx.x; j < hidden; j += blockDim.x) {
        y[p.steps * step + state + j] = h[j];
        if (p.kind == RECURRENT_LSTM) y[(p.steps + 1) * step + state + j] = kept[j];
    }
}
