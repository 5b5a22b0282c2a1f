/*
op = "softmax"
rung = 2
name = "warp_a_row"
idea = "A warp a row: neighbouring lanes read neighbouring elements, and the maximum and the sum are formed by shuffles among them."
launch = "one_warp_a_row"
*/
#include "common.cuh"
#include "sums.cuh"

#define LANES 32
#define ALL 0xffffffffu

// x and y are (outer, axis, inner); a row runs along the middle one.
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, const SoftmaxParams p) {
    const int lane = threadIdx.x % LANES;
    const index_t warps = grid_stride() / LANES;
    for (index_t row = first_element() / LANES; row < p.outer * p.inner; row += warps) {
        const index_t base = row / p.inner * p.axis * p.inner + row % p.inner;
        float top = minus_infinity();
        for (int i = lane; i < p.axis; i += LANES) top = fmaxf(top, x[base + i * p.inner]);
#pragma unroll
        for (int d = LANES / 2; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(ALL, top, d));
        LongSum powers;
        for (int i = lane; i < p.axis; i += LANES) powers.add(expf(x[base + i * p.inner] - top));
        float sum = powers.total();
#pragma unroll
        for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(ALL, sum, d);
        const float log_sum = p.log_of_it ? logf(sum) : 0.0f;
        for (int i = lane; i < p.axis; i += LANES) {
            const float v = x[base + i * p.inner] - top;
            y[base + i * p.inner] = p.log_of_it ? v - log_sum : expf(v) / sum;
        }
    }
}
