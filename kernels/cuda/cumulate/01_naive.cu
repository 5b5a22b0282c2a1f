/*
op = "cumulate"
rung = 1
name = "naive"
idea = "One thread a row: it walks along the axis and writes what it has so far."
launch = "one_thread_a_row"
[defines]
DTYPE = 0  # of the elements, which the launch sets
[needs]
dtype = ["float32", "float64", "int32", "int64", "uint8", "int8"]
*/
#include "common.cuh"
#include "element.cuh"

// x and y are (outer, axis, inner); a row runs along the middle one.
extern "C" __global__ void cumulate(const element* __restrict__ x, element* __restrict__ y, const CumulateParams p) {
    for (index_t row = first_element(); row < p.outer * p.inner; row += grid_stride()) {
        const index_t base = row / p.inner * p.axis * p.inner + row % p.inner;
        element so_far = p.kind == CUMULATE_SUM ? 0 : 1;
        for (int i = 0; i < p.axis; ++i) {
            const index_t at = base + (p.reverse ? p.axis - 1 - i : i) * p.inner;
            const element v = x[at];
            if (p.exclusive) y[at] = so_far;
            so_far = p.kind == CUMULATE_SUM ? so_far + v : so_far * v;
            if (!p.exclusive) y[at] = so_far;
        }
    }
}
