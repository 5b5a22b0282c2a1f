/*
op = "conv"
rung = 23
name = "tensor_fp16"
idea = "Inputs and weights are rounded to float16, so that an instruction does twice as many multiply-adds and the weights take half the memory; sums stay float32."
launch = "conv_tensor"
precision = ["fp16", "bf16"]
packs = true
overlaps = true
[defines]
TILE_ROWS = 128     # pixels of a block
TILE_COLUMNS = 128  # channels of a block
WARP_ROWS = 64      # of them a warp's
WARP_COLUMNS = 64
RUN = 1             # channels that follow each other in the order of the taps: what divides their number
PADDED = 1          # whether there is any padding
PLANE = 0           # pixels of a channel of x, to compile them in; 0: any number
PARTS = 1           # of the taps; with one there is no second kernel
STAGES = 3          # slabs of weights in shared memory at once
[needs]
compute_capability = "8.0"
depthwise = false  # of a tile of maps one would count
*/
#include "mma.cuh"

// What is computed in: how CHUNK values become the 16 bytes of a chunk, and how a lane's chunk of a row is multiplied
// by its two of the columns.
struct Kind {
    static constexpr int CHUNK = 8;
    static __device__ __forceinline__ uint4 chunk(const float (&v)[CHUNK]) {
        return {to_halves(v[0], v[1]), to_halves(v[2], v[3]), to_halves(v[4], v[5]), to_halves(v[6], v[7])};
    }
    static __device__ __forceinline__ void multiply(float (&sum)[4], uint4 first, uint4 second, uint4 row) {
        mma_half(sum, first, row.x, row.y);
        mma_half(sum, second, row.z, row.w);
    }
};

#include "conv_tensor.cuh"  // the kernels conv and conv_reduce, in this Kind
