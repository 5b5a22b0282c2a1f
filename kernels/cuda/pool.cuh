// What pools share whose shapes are compiled in, as defines of kernels/launch/windows.py.
#pragma once
#include "common.cuh"

#if WIDE
typedef index_t place_t;
#else
typedef unsigned place_t;
#endif

// What a window's value begins as, and what it becomes with one more.
__device__ __forceinline__ float start() { return KIND == POOL_MAX ? minus_infinity() : 0.0f; }
__device__ __forceinline__ float joined(float a, float b) { return KIND == POOL_MAX ? larger(a, b) : a + b; }
