/*
op = "qgemm"
rung = 7
name = "early_columns"
idea = "The same, with weights that are constants: they are on their way to the cache while the kernel in front still runs."
launch = "qgemm_early_columns"
packs = true
overlaps = true
[defines]
BLOCK = 128
ROWS = 8   # of a and y; the launch sets it to m
WARPS = 1  # that share a column, all in one block
[needs]
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
m_max = 8
batch = 1
*/
#include "quantized_columns.cuh"

// b comes packed: each column a row of whole chunks of 16 numbers.
extern "C" __global__ void __launch_bounds__(BLOCK)
    qgemm(const void* __restrict__ a, const void* __restrict__ b, const void* __restrict__ a_zero,
          const void* __restrict__ b_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, const QGemmParams p) {
    let_next_begin();
    warp_columns<true>(a, b, a_zero, b_zero, bias, scale, shift, y, (p.k + 15) / 16 * 16, p);
}
