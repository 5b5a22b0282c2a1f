/*
op = "concat"
rung = 2
name = "chunks"
idea = "A block a run of one input, which it finds once: neighbours read and write neighbours, up to 16 bytes each at a time."
launch = "concat_chunks"
[defines]
BLOCK = 256  # threads
EACH = 4     # units that a thread copies
UNIT = 4     # bytes at a time, and
WIDE = 0     # whether 32 bits do not count them: the launch sets both
[needs]
dtype = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]
*/
#include "common.cuh"

#if UNIT == 16
typedef uint4 unit;
#elif UNIT == 8
typedef unsigned long long unit;
#elif UNIT == 4
typedef unsigned unit;
#elif UNIT == 2
typedef unsigned short unit;
#else
typedef unsigned char unit;
#endif

#if WIDE
typedef index_t place_t;
#else
typedef unsigned place_t;
#endif

// Inputs that are not there have null pointers and rows of no elements.
extern "C" __global__ void concat(
    const unit* x0, const unit* x1, const unit* x2, const unit* x3, const unit* x4, const unit* x5,
    const unit* x6, const unit* x7, const unit* x8, const unit* x9, const unit* x10, const unit* x11,
    const unit* x12, const unit* x13, const unit* x14, const unit* x15, const unit* x16, const unit* x17,
    const unit* x18, const unit* x19, const unit* x20, const unit* x21, const unit* x22, const unit* x23,
    const unit* x24, const unit* x25, const unit* x26, const unit* x27, const unit* x28, const unit* x29,
    const unit* x30, const unit* x31,
    unit* __restrict__ y, const ConcatParams p) {
    const unit* const inputs[] = {x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15,
                                    x16, x17, x18, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30, x31};
    const unit* x = x0;
    index_t block = blockIdx.x, width = 0, before = 0;  // counted within x; units of a row of x, and in front of it in y's
#pragma unroll
    for (int part = 0; part < 32; ++part) {
        width = p.widths[part] * p.itemsize / UNIT;
        const index_t blocks = (p.outer * width + BLOCK * EACH - 1) / (BLOCK * EACH);
        if (block < blocks) {
            x = inputs[part];
            break;
        }
        block -= blocks;
        before += width;
    }
    const place_t total = p.outer * width, in_row = width;
    const index_t row = p.row * p.itemsize / UNIT;
#pragma unroll
    for (int each = 0; each < EACH; ++each) {
        const place_t i = (place_t)(block * EACH + each) * BLOCK + threadIdx.x;
        if (i < total) y[i / in_row * row + before + i % in_row] = x[i];
    }
}
