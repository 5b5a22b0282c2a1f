/*
op = "transpose"
rung = 2
name = "tiles"
idea = "A block turns 32×32 elements in shared memory, so that x is read along its rows and y written along its own; a column of padding spares bank conflicts."
launch = "transpose_tiles"
[defines]
TURNED = 4  # the axis of y, of six, that is x's last; 5: the rows of both run alike, or are too short to turn
WIDE = 0    # more elements than 32 bits count
*/
#include "common.cuh"

#define TILE 32
#define LINES (256 / TILE)  // of a tile that a block of 256 threads moves at once

#if WIDE
typedef index_t place_t;
#else
typedef unsigned place_t;
#endif

// Sizes of y and the strides of x along them, outermost first, filled up with ones in front.
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y, const TransposeParams p) {
#if TURNED == 5
    for (index_t i = first_element(); i < p.size; i += grid_stride()) {
        place_t rest = (place_t)i;
        index_t from = 0;
#pragma unroll
        for (int axis = 5; axis >= 0; --axis) {
            const place_t size = (place_t)p.dims[axis];
            if (size == 1) continue;
            from += rest % size * p.strides[axis];
            rest /= size;
        }
        y[i] = x[from];
    }
#else
    __shared__ float tile[TILE][TILE + 1];
    const int across = threadIdx.x % TILE, down = threadIdx.x / TILE;
    const place_t length = (place_t)p.dims[5], depth = (place_t)p.dims[TURNED];  // along y's rows, and along x's
    const unsigned tiles_long = (length + TILE - 1) / TILE, tiles_deep = (depth + TILE - 1) / TILE;
    unsigned rest = blockIdx.x;
    const place_t first = rest % tiles_long * TILE;
    rest /= tiles_long;
    const place_t begin = rest % tiles_deep * TILE;
    rest /= tiles_deep;
    // Where the tile stands on the other axes, in x and in y; `step` is y's stride along each.
    index_t from = 0, to = 0, step = p.dims[5], turned = 0;
#pragma unroll
    for (int axis = 4; axis >= 0; --axis) {
        if (axis == TURNED) {
            turned = step;
        } else {
            const unsigned place = rest % (unsigned)p.dims[axis];
            rest /= (unsigned)p.dims[axis];
            from += place * p.strides[axis];
            to += place * step;
        }
        step *= p.dims[axis];
    }
    for (int line = down; line < TILE; line += LINES) {
        const place_t i = first + line, k = begin + across;
        if (i < length && k < depth) tile[line][across] = x[from + i * p.strides[5] + k];
    }
    __syncthreads();
    for (int line = down; line < TILE; line += LINES) {
        const place_t i = first + across, k = begin + line;
        if (i < length && k < depth) y[to + k * turned + i] = tile[across][line];
    }
#endif
}
