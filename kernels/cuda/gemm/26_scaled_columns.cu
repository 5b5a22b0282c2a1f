/*
op = "gemm"
rung = 26
name = "scaled_columns"
idea = "TF32 keeps no more bits than float16, only a wider range: weights scaled by a power of two for each column are as precise in float16, at half the bytes; a stays as it is, and sums are float32."
launch = "gemm_half_columns"
precision = "tf32"
also = ["fp16", "bf16"]
packs = true
side = true
overlaps = true
[defines]
SCALED = 1
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
