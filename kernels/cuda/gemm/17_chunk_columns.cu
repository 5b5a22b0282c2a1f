/*
op = "gemm"
rung = 17
name = "chunk_columns"
idea = "For a few rows, too, a may lie in float16 and y be written so: between two products nothing is converted."
launch = "gemm_half_columns"
precision = ["fp16", "bf16"]
packs = true
side = true
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
BLOCK = 256
COLUMNS = 4  # of a warp
ROWS = 1     # of a and y; the launch sets it to m
WARPS = 1    # that share the same columns, all in one block
READS = 0    # how a lies: by its place in `reads`
WRITES = 0   # and y
[needs]
m_max = 8
trans_a = false
batch = 1
*/
#include "half_columns.cuh"  // the kernel gemm
