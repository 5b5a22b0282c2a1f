/*
op = "lrn"
rung = 5
name = "nhwc_fp16"
idea = "With the channels of a pixel side by side in float16 a thread has eight of them in 16 bytes; what its sums need besides lies in the chunks beside it, which its neighbours read."
launch = "nhwc_chunks"
precision = ["fp16", "bf16"]
side = true
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
EACH = 8    # channels of a chunk
READS = 0   # how x lies: by its place in `reads`
WRITES = 0  # and y
SIZE = 5    # channels of the sum; this line and the next: the launch sets them
THREE_QUARTERS = 0  # whether that is the exponent
C = 16
[needs]
compute_capability = "8.0"
size_max = 9
*/
#include "nhwc_lrn_chunks.cuh"  // the kernel lrn
