/*
op = "quantize"
rung = 1
name = "naive"
idea = "One thread an element: its channel says the scale and the zero, and what lies between Q and DQ stays in a register."
launch = "one_thread_an_output"
[needs]
dtype = ["float32", "uint8", "int8", "int32"]
to = ["float32", "uint8", "int8"]
*/
#include "common.cuh"

// x and y are (outer, channels, inner), scale and zero (channels,).
extern "C" __global__ void quantize(const void* __restrict__ x, const float* __restrict__ scale,
                                    const float* __restrict__ zero, void* __restrict__ y, const QuantizeParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        const int c = p.channels == 1 ? 0 : i / p.inner % p.channels;
        float v;
        if (p.from == DTYPE_FLOAT32) {
            v = rintf(((const float*)x)[i] / scale[c]) + zero[c];  // halves to even
            v = v < p.low ? p.low : v > p.high ? p.high : v;       // NaN stays what it is
        } else if (p.from == DTYPE_UINT8) {
            v = ((const unsigned char*)x)[i];
        } else if (p.from == DTYPE_INT8) {
            v = ((const signed char*)x)[i];
        } else {
            v = ((const int*)x)[i];
        }
        if (p.to == DTYPE_FLOAT32) ((float*)y)[i] = (v - zero[c]) * scale[c];
        else if (p.to == DTYPE_UINT8) ((unsigned char*)y)[i] = (unsigned char)v;
        else ((signed char*)y)[i] = (signed char)v;
    }
}
