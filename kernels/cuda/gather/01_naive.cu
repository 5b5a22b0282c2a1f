/*
op = "gather"
rung = 1
name = "naive"
idea = "One thread an output element: it looks its place up, and neighbours of a place are read side by side."
launch = "one_thread_typed"
[defines]
DTYPE = 0  # of the elements, which the launch sets
[needs]
dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "common.cuh"
#include "element.cuh"

// x is (outer, axis, inner), y (outer, count, inner); places are 32 or 64 bits wide.
extern "C" __global__ void gather(const element* __restrict__ x, const void* __restrict__ places, element* __restrict__ y,
                                  const GatherParams p) {
    const index_t total = p.outer * p.count * p.inner;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const index_t rest = i / p.inner;
        const int k = rest % p.count;
        index_t place = p.wide ? ((const index_t*)places)[k] : ((const int*)places)[k];
        if (place < 0) place += p.axis;
        place = place < 0 ? 0 : place >= p.axis ? p.axis - 1 : place;  // nothing beyond x is ever read
        y[i] = x[(rest / p.count * p.axis + place) * p.inner + i % p.inner];
    }
}
