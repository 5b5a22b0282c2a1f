/*
op = "attention"
rung = 3
name = "tensor_fp16"
idea = "Both products on the tensor cores in float16, 64 queries a block, 16 a warp: the weights go from one product to the next in registers."
launch = "attention_tensor"
precision = ["fp16", "bf16"]
[defines]
DEPTH = 64    # elements of a query and a key, filled up to sixteens; the launch sets these three
DEPTH_V = 64  # of a value, filled up to eights
KEYS = 64     # in shared memory at a time
[needs]
compute_capability = "8.0"
*/
#define HALF 1
#include "attention_tensor.cuh"
