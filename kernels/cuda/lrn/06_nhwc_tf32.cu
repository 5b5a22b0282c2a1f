/*
op = "lrn"
rung = 6
name = "nhwc_tf32"
idea = "The same in float32 rounded to TF32: 16 bytes are four channels."
launch = "nhwc_chunks"
precision = "tf32"
side = true
overlaps = true
reads = ["nchw float32", "nhwc tf32"]
writes = ["nchw float32", "nhwc tf32"]
[defines]
EACH = 4    # channels of a chunk
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
