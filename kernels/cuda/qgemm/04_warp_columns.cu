/*
op = "qgemm"
rung = 4
name = "warp_columns"
idea = "For a few rows the time is that of reading b once: a warp a column streams its weights, 16 numbers a lane at a time, and keeps a sum for every row."
launch = "qgemm_warp_a_column"
[defines]
BLOCK = 128
ROWS = 8   # of a and y; the launch sets it to m
WARPS = 1  # that share a column, all in one block
[needs]
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
m_max = 8
trans_b = true
batch = 1
*/
#include "quantized_columns.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK)
    qgemm(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
          const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, const QGemmParams p) {
    warp_columns<false>(a, b, a_zero, b_zero, bias, scale, shift, y, p.k, p);
}
