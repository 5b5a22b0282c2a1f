/*
op = "cast"
rung = 1
name = "naive"
idea = "One thread an element: a float travels as a double and a whole number as 64 bits, both exact, and is rounded once; to what no instruction rounds to, from float32 by arithmetic."
launch = "one_thread_an_output"
[needs]
dtype = [
    "float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8", "bool", "int16",
    "uint16", "uint32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2",
]
*/
#include "common.cuh"
#include "half.cuh"
#include "narrow.cuh"

template <typename T>
__device__ __forceinline__ void store(void* y, index_t i, T v, const CastParams& p) {
    const int to = p.to;
    if (to == DTYPE_FLOAT32) ((float*)y)[i] = (float)v;
    else if (to == DTYPE_FLOAT16) ((half_bits*)y)[i] = double_to_half((double)v);
    else if (to == DTYPE_BFLOAT16) ((unsigned short*)y)[i] = (unsigned short)to_narrow((float)v, narrow_of(to), false);
    else if (to == DTYPE_FLOAT64) ((double*)y)[i] = (double)v;
    else if (to == DTYPE_INT64) ((long long*)y)[i] = (long long)v;
    else if (to == DTYPE_BOOL) ((unsigned char*)y)[i] = v != (T)0;
    else if (to == DTYPE_FLOAT8_E8M0FNU) ((unsigned char*)y)[i] = to_exponent((float)v, p.saturate, p.towards);
    else if (is_narrow(to)) ((unsigned char*)y)[i] = (unsigned char)to_narrow((float)v, narrow_of(to), p.saturate);
    else if (to == DTYPE_INT32 || to == DTYPE_UINT32) ((int*)y)[i] = (int)(long long)v;
    else if (to == DTYPE_INT16 || to == DTYPE_UINT16) ((short*)y)[i] = (short)(long long)v;
    else if (to == DTYPE_INT4 || to == DTYPE_UINT4) ((unsigned char*)y)[i] = (unsigned char)((long long)v & 15);
    else if (to == DTYPE_INT2 || to == DTYPE_UINT2) ((unsigned char*)y)[i] = (unsigned char)((long long)v & 3);
    else ((signed char*)y)[i] = (signed char)(long long)v;  // eight bits, with a sign or without
}

// The number that so many bits are, the highest of them worth less than nothing.
__device__ __forceinline__ long long with_sign(unsigned bits, int count) {
    return (long long)bits - ((bits >> (count - 1) & 1) << count);
}

extern "C" __global__ void cast(const void* __restrict__ x, void* __restrict__ y, const CastParams p) {
    const int from = p.from;
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        if (from == DTYPE_FLOAT32) store(y, i, (double)((const float*)x)[i], p);
        else if (from == DTYPE_FLOAT16) store(y, i, (double)half_to_float(((const half_bits*)x)[i]), p);
        else if (from == DTYPE_BFLOAT16) store(y, i, from_narrow(((const unsigned short*)x)[i], narrow_of(from)), p);
        else if (from == DTYPE_FLOAT64) store(y, i, ((const double*)x)[i], p);
        else if (from == DTYPE_FLOAT8_E8M0FNU) store(y, i, from_exponent(((const unsigned char*)x)[i]), p);
        else if (is_narrow(from)) store(y, i, from_narrow(((const unsigned char*)x)[i], narrow_of(from)), p);
        else if (from == DTYPE_INT32) store(y, i, (long long)((const int*)x)[i], p);
        else if (from == DTYPE_INT64) store(y, i, ((const long long*)x)[i], p);
        else if (from == DTYPE_UINT32) store(y, i, (long long)((const unsigned*)x)[i], p);
        else if (from == DTYPE_INT16) store(y, i, (long long)((const short*)x)[i], p);
        else if (from == DTYPE_UINT16) store(y, i, (long long)((const unsigned short*)x)[i], p);
        else if (from == DTYPE_INT8) store(y, i, (long long)((const signed char*)x)[i], p);
        else if (from == DTYPE_INT4) store(y, i, with_sign(((const unsigned char*)x)[i] & 15, 4), p);
        else if (from == DTYPE_INT2) store(y, i, with_sign(((const unsigned char*)x)[i] & 3, 2), p);
        else store(y, i, (long long)((const unsigned char*)x)[i], p);  // uint8, bool, and fewer bits without a sign
    }
}
