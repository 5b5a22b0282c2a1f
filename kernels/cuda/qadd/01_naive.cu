/*
op = "qadd"
rung = 1
name = "naive"
idea = "One thread an element: both numbers less their zero points, by their scales in double precision, rounded once."
launch = "one_thread_an_output"
[needs]
dtype = ["uint8", "int8"]
to = ["uint8", "int8"]
*/
#include "quantized.cuh"

extern "C" __global__ void qadd(const void* __restrict__ a, const void* __restrict__ b, void* __restrict__ y,
                                const QAddParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        const double left = (double)(whole(a, i, p.a_type) - p.a_zero) * (double)p.a_scale;
        const double right = (double)(whole(b, i, p.b_type) - p.b_zero) * (double)p.b_scale;
        double q = rint((left + right) / (double)p.out_scale) + (double)p.out_zero;  // halves to even
        q = q < p.low ? p.low : q > p.high ? p.high : q;
        if (p.to == DTYPE_UINT8) ((unsigned char*)y)[i] = (unsigned char)(int)q;
        else ((signed char*)y)[i] = (signed char)(int)q;
    }
}
