/*
op = "gemm"
rung = 14
name = "half_columns"
idea = "For a few rows the time is that of reading b, and in float16 it has half the bytes: a warp streams the weights of a few columns at once, so that what it reads of a serves all of them."
launch = "gemm_half_columns"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
[defines]
BLOCK = 256
COLUMNS = 4  # of a warp
ROWS = 1     # of a and y; the launch sets it to m
WARPS = 1    # that share the same columns, all in one block
[needs]
m_max = 8
trans_a = false
batch = 1
*/
#include "half_columns.cuh"  // the kernel gemm
