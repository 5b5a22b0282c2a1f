/*
op = "reduce"
rung = 1
name = "naive"
idea = "One thread an output: it walks its row from end to end."
launch = "one_thread_an_output"
*/
#include "common.cuh"
#include "sums.cuh"

// x is (outer, axis, inner), y (outer, inner); a row runs along the middle axis of x.
extern "C" __global__ void reduce(const float* __restrict__ x, void* __restrict__ y, const ReduceParams p) {
    const bool place = p.kind == REDUCE_ARGMAX || p.kind == REDUCE_ARGMIN;
    for (index_t row = first_element(); row < p.outer * p.inner; row += grid_stride()) {
        const float* from = x + row / p.inner * p.axis * p.inner + row % p.inner;
        float result = from[0], top = 0.0f;
        if (place) {
            int best = 0;
            for (int i = 1; i < p.axis; ++i) {
                const float v = from[i * p.inner];
                const bool better = p.kind == REDUCE_ARGMAX ? v > result : v < result;
                if (better || (p.last && v == result)) result = v, best = i;
            }
            ((index_t*)y)[row] = best;
            continue;
        }
        if (p.kind == REDUCE_LOGSUMEXP) {  // the maximum taken out, so that no exponential overflows
            top = result;
            for (int i = 1; i < p.axis; ++i) top = larger(top, from[i * p.inner]);
            if (!(fabsf(top) < -minus_infinity())) top = 0.0f;
        }
        LongSum sum;
        for (int i = 0; i < p.axis; ++i) {
            float v = from[i * p.inner];
            if (p.kind == REDUCE_L1) v = fabsf(v);
            else if (p.kind == REDUCE_L2 || p.kind == REDUCE_SUMSQUARE) v *= v;
            else if (p.kind == REDUCE_LOGSUMEXP) v = expf(v - top);
            if (p.kind == REDUCE_MAX) result = larger(result, v);
            else if (p.kind == REDUCE_MIN) result = -larger(-result, -v);
            else if (p.kind == REDUCE_PROD) result = i ? result * v : v;
            else sum.add(v);
        }
        const bool summed = p.kind != REDUCE_MAX && p.kind != REDUCE_MIN && p.kind != REDUCE_PROD;
        if (summed) result = sum.total();
        if (p.kind == REDUCE_MEAN) result /= p.axis;
        else if (p.kind == REDUCE_L2) result = sqrtf(result);
        else if (p.kind == REDUCE_LOGSUM || p.kind == REDUCE_LOGSUMEXP) result = logf(result) + top;
        ((float*)y)[row] = result;
    }
}
