/*
op = "top_k"
rung = 1
name = "naive"
idea = "One thread an element of x: it counts those of its row that come before it, and if they are fewer than k, that is where its place is written."
launch = "one_thread_an_input"
[defines]
DTYPE = 0  # of the elements, which the launch sets
[needs]
dtype = ["float32", "float64", "int32", "int64", "uint8", "int8"]
*/
#include "common.cuh"
#include "element.cuh"

// Whether a comes before b whatever their places are; NaN is larger than all others.
__device__ __forceinline__ bool before(element a, element b, bool largest) {
    return largest ? a > b || (a != a && b == b) : a < b || (b != b && a == a);
}

// x is (outer, axis, inner), y (outer, k, inner).
extern "C" __global__ void top_k(const element* __restrict__ x, index_t* __restrict__ y, const TopKParams p) {
    for (index_t i = first_element(); i < p.outer * p.axis * p.inner; i += grid_stride()) {
        const int own = i / p.inner % p.axis;
        const index_t outer = i / p.inner / p.axis, column = i % p.inner;
        const element* row = x + outer * p.axis * p.inner + column;
        const element v = x[i];
        int place = 0;
        for (int other = 0; other < p.axis && place < p.k; ++other) {
            const element u = row[other * p.inner];
            place += before(u, v, p.largest) || (other < own && !before(v, u, p.largest));
        }
        if (place < p.k) y[(outer * p.k + place) * p.inner + column] = own;
    }
}
