/*
op = "reduce"
rung = 3
name = "typed"
idea = "As the plain kernel for elements of any type, which is compiled in: whole numbers, truth values, double precision."
launch = "one_thread_typed"
[defines]
DTYPE = 3  # of the elements, which the launch sets
[needs]
dtype = ["float64", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "arithmetic.cuh"
#include "element.cuh"

// x is (outer, axis, inner), y (outer, inner); a row runs along the middle axis of x.
extern "C" __global__ void reduce(const element* __restrict__ x, void* __restrict__ y, const ReduceParams p) {
    const bool place = p.kind == REDUCE_ARGMAX || p.kind == REDUCE_ARGMIN;
    for (index_t row = first_element(); row < p.outer * p.inner; row += grid_stride()) {
        const element* from = x + row / p.inner * p.axis * p.inner + row % p.inner;
        element result = from[0], top = 0;
        if (place) {
            int best = 0;
            for (int i = 1; i < p.axis; ++i) {
                const element v = from[i * p.inner];
                const bool better = p.kind == REDUCE_ARGMAX ? v > result : v < result;
                if (better || (p.last && v == result)) result = v, best = i;
            }
            ((index_t*)y)[row] = best;
            continue;
        }
        if (p.kind == REDUCE_LOGSUMEXP) {  // the maximum taken out, so that no exponential overflows
            top = result;
            for (int i = 1; i < p.axis; ++i) top = combined(top, from[i * p.inner], BINARY_MAX);
            if (!(fabs((double)top) < -(double)minus_infinity())) top = 0;
        }
        for (int i = 0; i < p.axis; ++i) {
            element v = from[i * p.inner];
            if (p.kind == REDUCE_L1) v = v < (element)0 ? -v : v;
            else if (p.kind == REDUCE_L2 || p.kind == REDUCE_SUMSQUARE) v *= v;
            else if (p.kind == REDUCE_LOGSUMEXP) v = exp((double)(v - top));
            if (i == 0) result = v;
            else if (p.kind == REDUCE_MAX) result = combined(result, v, BINARY_MAX);
            else if (p.kind == REDUCE_MIN) result = combined(result, v, BINARY_MIN);
            else if (p.kind == REDUCE_PROD) result *= v;
            else result += v;
        }
        if (p.kind == REDUCE_MEAN) result /= p.axis;
        else if (p.kind == REDUCE_L2) result = sqrt((double)result);
        else if (p.kind == REDUCE_LOGSUM || p.kind == REDUCE_LOGSUMEXP) result = log((double)result) + top;
        ((element*)y)[row] = result;
    }
}
