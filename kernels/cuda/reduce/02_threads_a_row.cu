/*
op = "reduce"
rung = 2
name = "threads_a_row"
idea = "As many threads a row as leave each a few values, and each joins its own before they meet; rows that lie side by side in memory are read side by side."
launch = "reduce_fitted"
[defines]
LANES = 32  # threads of a row, a power of two; the launch sets these four
ROWS = 8    # of a block
ACROSS = 0  # neighbouring threads have neighbouring rows, not neighbouring elements of one
KIND = 0    # what p.kind says, compiled in
[needs]
kind = ["sum", "mean", "max", "min", "prod", "l1", "l2", "sumsquare", "logsum", "logsumexp"]
*/
#include "common.cuh"
#include "row.cuh"
#include "sums.cuh"

#define SUMMED (KIND != REDUCE_MAX && KIND != REDUCE_MIN && KIND != REDUCE_PROD)

struct Joined {  // two values of a row as one
    __device__ __forceinline__ float operator()(float a, float b) const {
#if KIND == REDUCE_MAX
        return larger(a, b);
#elif KIND == REDUCE_MIN
        return -larger(-a, -b);
#elif KIND == REDUCE_PROD
        return a * b;
#else
        return a + b;
#endif
    }
};

__device__ __forceinline__ float nothing() {  // what joins to any value without changing it
    return KIND == REDUCE_MAX ? minus_infinity() : KIND == REDUCE_MIN ? -minus_infinity() : KIND == REDUCE_PROD;
}

// x is (outer, axis, inner), y (outer, inner); a row runs along the middle axis of x.
extern "C" __global__ void reduce(const float* __restrict__ x, void* __restrict__ y, const ReduceParams p) {
    const index_t row = (index_t)blockIdx.x * ROWS + row_of_block();
    const bool there = row < p.outer * p.inner;  // all threads of a block meet
    const float* from = x + (there ? row / p.inner * p.axis * p.inner + row % p.inner : 0);
    const int count = there ? p.axis : 0;
    const Joined join;
    float top = 0.0f;
#if KIND == REDUCE_LOGSUMEXP
    top = minus_infinity();
    for (int i = lane_of_row(); i < count; i += LANES) top = larger(top, from[i * p.inner]);
    top = of_row(top, Larger());
    if (!(fabsf(top) < -minus_infinity())) top = 0.0f;
#endif
    float result = nothing();
    LongSum sum;
    for (int i = lane_of_row(); i < count; i += LANES) {
        float v = from[i * p.inner];
#if KIND == REDUCE_L1
        v = fabsf(v);
#elif KIND == REDUCE_L2 || KIND == REDUCE_SUMSQUARE
        v *= v;
#elif KIND == REDUCE_LOGSUMEXP
        v = expf(v - top);
#endif
        if (SUMMED)
            sum.add(v);
        else
            result = join(result, v);
    }
    if (SUMMED) result = sum.total();
    result = of_row(result, join);
    if (!there || lane_of_row()) return;
#if KIND == REDUCE_MEAN
    result /= p.axis;
#elif KIND == REDUCE_L2
    result = sqrtf(result);
#elif KIND == REDUCE_LOGSUM || KIND == REDUCE_LOGSUMEXP
    result = logf(result) + top;
#endif
    ((float*)y)[row] = result;
}
