/*
op = "gemm"
rung = 29
name = "columns_24_bits"
idea = "Answers in float32 need few of a weight's last bits: as a float16, scaled by a power of two for each column, and the eight bits that follow, it is right to 19 bits and takes a quarter less to read; all the rest is float32."
launch = "gemm_half_columns"
precision = "fp32-tc"
method = "split"
packs = true
side = true
overlaps = true
[defines]
SCALED = 1
BITS = 24
BLOCK = 256
COLUMNS = 2  # of a warp
ROWS = 1     # of a and y; the launch sets it to m
WARPS = 1    # that share the same columns, all in one block
[needs]
m_max = 8
outputs_min = 256  # of fewer a sum that cancels may be worse than float32 answers are to be
trans_a = false
batch = 1
*/
#include "half_columns.cuh"  // the kernel gemm
