/*
op = "qconv"
rung = 3
name = "nhwc_bytes"
idea = "With the channels of a pixel side by side, 16 bytes are sixteen taps: they are copied to shared memory past the registers, slabs ahead, with nothing gathered or looked up on the way, and tensor cores multiply 16 × 32 numbers with 32 × 8 in one instruction of a warp."
launch = "qconv_nhwc_tensor"
packs = true
overlaps = true
reads = ["nchw float32", "nhwc bytes"]
writes = ["nchw float32", "nhwc bytes"]
[defines]
EACH = 16           # channels of a chunk
READS = 0           # how x lies: by its place in `reads`
WRITES = 0          # and y
TILE_ROWS = 128     # pixels of a block
TILE_COLUMNS = 128  # channels of a block
WARP_ROWS = 64      # of them a warp's
WARP_COLUMNS = 64
STAGES = 3          # slabs of both in shared memory at once
PARTS = 1           # of the taps; with one there is no second kernel
PADDED = 1          # whether there is any padding
FOLD = 1            # with READS = 0: so many rows and columns of pixels are laid out as channels of one
X_TYPE = 1          # of x, of the weights and of y: the launch sets them
W_TYPE = 1
TO = 1
[needs]
compute_capability = "8.0"
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
depthwise = false   # of a tile of maps one would count
*/
#define OPERANDS 1
#define AS_READ READS
#include "quantized_nhwc.cuh"

// Taps are numbered down and across the window, then by chunks of channels: the order in which the weights were packed.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    qconv(const void* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ x_zero,
          const void* __restrict__ weight_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QConvParams p) {
    multiply_nhwc(x, weight, x_zero, weight_zero, bias, scale, shift, y, workspace, p);
}

extern "C" __global__ void __launch_bounds__(256)
    qconv_lay_out(const void* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ x_zero,
                  const void* __restrict__ weight_zero, const int* __restrict__ bias, const double* __restrict__ scale,
                  const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QConvParams p) {
    lay_out_bytes(x, x_zero, workspace, p);
}

extern "C" __global__ void
    qconv_reduce(const void* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ x_zero,
                 const void* __restrict__ weight_zero, const int* __restrict__ bias, const double* __restrict__ scale,
                 const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QConvParams p) {
    add_parts(bias, scale, shift, y, workspace, p);
}
