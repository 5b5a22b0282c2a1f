/*
op = "scatter"
rung = 1
name = "naive"
idea = "One thread an output element: it looks at all places in their order and takes what is meant for its row, so that no two threads write to one place."
launch = "one_thread_typed"
[defines]
DTYPE = 0  # of the elements, which the launch sets
[needs]
dtype = ["float32", "float64", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "arithmetic.cuh"
#include "element.cuh"

// x and y are (size, inner), updates (count, inner).
extern "C" __global__ void scatter(const element* __restrict__ x, const index_t* __restrict__ places,
                                   const element* __restrict__ updates, element* __restrict__ y,
                                   const ScatterParams p) {
    for (index_t i = first_element(); i < p.size * p.inner; i += grid_stride()) {
        const index_t row = i / p.inner, column = i % p.inner;
        element v = x[i];
        for (int k = 0; k < p.count; ++k) {
            const index_t place = places[k];
            if ((place < 0 ? place + p.size : place) != row) continue;
            const element u = updates[k * p.inner + column];
            if (p.kind == SCATTER_PUT) v = u;
            else if (p.kind == SCATTER_ADD) v = combined(v, u, BINARY_ADD);
            else if (p.kind == SCATTER_MUL) v = combined(v, u, BINARY_MUL);
            else v = combined(v, u, p.kind == SCATTER_MAX ? BINARY_MAX : BINARY_MIN);
        }
        y[i] = v;
    }
}
