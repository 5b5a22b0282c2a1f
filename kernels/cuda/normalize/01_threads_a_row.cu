/*
op = "normalize"
rung = 1
name = "threads_a_row"
idea = "As many threads a row as leave each a few values: they find the mean together, then the variance about it, and then write; a long row takes a whole block."
launch = "normalize_rows"
[defines]
LANES = 32  # threads of a row, a power of two; the launch sets these three
ROWS = 4    # of a block
ACROSS = 0
*/
#include "common.cuh"
#include "row.cuh"
#include "sums.cuh"

// x is (count, length), scale and bias (channels,), or null; y is as x, or (count, 1).
extern "C" __global__ void __launch_bounds__(LANES * ROWS, 2048 / (LANES * ROWS))
    normalize(const float* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias,
              float* __restrict__ y, const NormalizeParams p) {
    const index_t row = (index_t)blockIdx.x * ROWS + row_of_block();
    const bool there = row < p.count;  // all threads of a block meet
    const float* from = x + (there ? row * p.length : 0);
    const int length = there ? p.length : 0;

    float mean = 0.0f;
    if (p.centred) {
        LongSum sum;
        for (int j = lane_of_row(); j < length; j += LANES) sum.add(from[j]);
        mean = of_row(sum.total(), Added()) / p.length;
    }
    LongSum squares;  // about the mean: a difference of two sums would cancel
    LongSum off;      // of a large mean, which is a rounded number and a rounded sum
    for (int j = lane_of_row(); j < length; j += LANES) {
        const float v = from[j] - mean;
        squares.add(v * v);
        off.add(v);
    }
    const float beside = p.centred ? of_row(off.total(), Added()) / p.length : 0.0f;
    const float variance = of_row(squares.total(), Added()) / p.length - beside * beside;
    const float factor = 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + p.epsilon);  // NaN stays what it is

    if (p.gives != NORMALIZE_ALL) {
        if (there && lane_of_row() == 0) y[row] = p.gives == NORMALIZE_MEAN ? mean + beside : factor;
        return;
    }
    const int first = row % p.groups * (p.length / p.inner);  // channel of the row
    for (int j = lane_of_row(); j < length; j += LANES) {
        float v = (from[j] - mean - beside) * factor;
        if (scale) {
            const int channel = first + (p.inner == 1 ? j : j / p.inner);
            v = v * scale[channel] + bias[channel];
        }
        y[row * p.length + j] = v;
    }
}
