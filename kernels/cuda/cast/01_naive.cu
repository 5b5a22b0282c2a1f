/*
op = "cast"
rung = 1
name = "naive"
idea = "One thread an element: a float travels as a double and a whole number as 64 bits, both exact, and is rounded once."
launch = "one_thread_an_output"
[needs]
dtype = ["float32", "float16", "float64", "int32", "int64", "uint8", "int8", "bool"]
to = ["float32", "float16", "float64", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "common.cuh"
#include "half.cuh"

template <typename T>
__device__ __forceinline__ void store(void* y, index_t i, T v, int to) {
    if (to == DTYPE_FLOAT32) ((float*)y)[i] = (float)v;
    else if (to == DTYPE_FLOAT16) ((half_bits*)y)[i] = double_to_half((double)v);
    else if (to == DTYPE_FLOAT64) ((double*)y)[i] = (double)v;
    else if (to == DTYPE_INT32) ((int*)y)[i] = (int)(long long)v;
    else if (to == DTYPE_INT64) ((long long*)y)[i] = (long long)v;
    else if (to == DTYPE_UINT8) ((unsigned char*)y)[i] = (unsigned char)(long long)v;
    else if (to == DTYPE_INT8) ((signed char*)y)[i] = (signed char)(long long)v;
    else ((unsigned char*)y)[i] = v != (T)0;
}

extern "C" __global__ void cast(const void* __restrict__ x, void* __restrict__ y, const CastParams p) {
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        if (p.from == DTYPE_FLOAT32) store(y, i, (double)((const float*)x)[i], p.to);
        else if (p.from == DTYPE_FLOAT16) store(y, i, (double)half_to_float(((const half_bits*)x)[i]), p.to);
        else if (p.from == DTYPE_FLOAT64) store(y, i, ((const double*)x)[i], p.to);
        else if (p.from == DTYPE_INT32) store(y, i, (long long)((const int*)x)[i], p.to);
        else if (p.from == DTYPE_INT64) store(y, i, ((const long long*)x)[i], p.to);
        else if (p.from == DTYPE_INT8) store(y, i, (long long)((const signed char*)x)[i], p.to);
        else store(y, i, (long long)((const unsigned char*)x)[i], p.to);
    }
}
