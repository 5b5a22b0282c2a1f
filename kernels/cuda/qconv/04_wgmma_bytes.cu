/*
op = "qconv"
rung = 4
name = "wgmma_bytes"
idea = "Four warps multiply together, in the background, and read both factors from shared memory themselves, 32 numbers of a sum in one instruction; the blocks of a cluster share a sum where there are few."
launch = "qconv_nhwc_wgmma"
packs = true
overlaps = true
reads = ["nchw float32", "nhwc bytes"]
writes = ["nchw float32", "nhwc bytes"]
[defines]
EACH = 16           # channels of a chunk
READS = 0           # how x lies: by its place in `reads`
WRITES = 0          # and y
TILE_ROWS = 128     # pixels of a block, 64 of them a warpgroup's
TILE_COLUMNS = 128  # channels of a block: 64, 96, 128 or 192
STAGES = 3          # slabs of both in shared memory at once
BLOCKS_AT_ONCE = 2  # to leave registers for
PARTS = 1           # of the taps, a block of a cluster each
PADDED = 1          # whether there is any padding
FOLD = 1            # with READS = 0: so many rows and columns of pixels are laid out as channels of one
X_TYPE = 1          # of x, of the weights and of y: the launch sets them
W_TYPE = 1
TO = 1
[needs]
architecture = "9.0"
dtype = ["uint8", "int8"]
to = ["int32", "float32", "uint8", "int8"]
depthwise = false   # of a tile of maps one would count
[prefers]
outputs_min = 524288  # so that multiprocessors of a large device have something to do
*/
#define OPERANDS 1
#define AS_READ READS
#include "quantized_wgmma.cuh"

// Taps are numbered down and across the window, then by chunks of channels: the order in which the weights were packed.
extern "C" __global__ void CLUSTER __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    qconv(const void* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ x_zero,
          const void* __restrict__ weight_zero, const int* __restrict__ bias, const double* __restrict__ scale,
          const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QConvParams p) {
    multiply_wgmma(x, weight, x_zero, weight_zero, bias, scale, shift, y, workspace, p);
}

extern "C" __global__ void __launch_bounds__(256)
    qconv_lay_out(const void* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ x_zero,
                  const void* __restrict__ weight_zero, const int* __restrict__ bias, const double* __restrict__ scale,
                  const double* __restrict__ shift, void* __restrict__ y, void* __restrict__ workspace, const QConvParams p) {
    lay_out_bytes(x, x_zero, workspace, p);
}
