/*
op = "normalize"
rung = 2
name = "read_once"
idea = "A row is read once, four elements at a time, and stays in the registers of its threads from the mean to the answer."
launch = "normalize_fitted"
overlaps = true
writes = ["nchw float32", "nhwc float16", "nhwc bfloat16", "nhwc tf32"]
[defines]
LANES = 32  # threads of a row, a power of two; the launch sets these five
ROWS = 4    # of a block
ACROSS = 0
VALUES = 8  # of a thread
ALIGNED = 1   # whether rows begin at 16 bytes, so that a thread has neighbours in fours
WRITES = 0  # how y lies: by its place in `writes`
*/
#define BF16 (WRITES == 2)  // the type of half.cuh
#include "common.cuh"
#include "half.cuh"
#include "overlap.cuh"
#include "row.cuh"

#define TOGETHER (ALIGNED ? 4 : 1)

// x is (count, length), scale and bias (channels,), or null; y is as x, or (count, 1).
extern "C" __global__ void __launch_bounds__(LANES * ROWS)
    normalize(const float* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias,
              float* __restrict__ y, const NormalizeParams p) {
    let_next_begin();
    const index_t row = (index_t)blockIdx.x * ROWS + row_of_block();
    const bool there = row < p.count;  // all threads of a block meet
    const int length = there ? p.length : 0;
    auto place = [&](int k) { return (k / TOGETHER * LANES + lane_of_row()) * TOGETHER; };  // of TOGETHER values from k on
    wait_for_previous();
    const float* from = written(x) + (there ? row * p.length : 0);

    float v[VALUES];
#pragma unroll
    for (int k = 0; k < VALUES; k += TOGETHER) {
        const int j = place(k);
        if constexpr (ALIGNED) {
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (j < length) four = *reinterpret_cast<const float4*>(from + j);
            v[k] = four.x, v[k + 1] = four.y, v[k + 2] = four.z, v[k + 3] = four.w;
        } else {
            v[k] = j < length ? from[j] : 0.0f;
        }
    }
    float mean = 0.0f;
    if (p.centred) {
        float sum = 0.0f;  // of at most 32 values (sums.cuh)
#pragma unroll
        for (int k = 0; k < VALUES; ++k) sum += v[k];
        mean = of_row(sum, Added()) / p.length;
    }
    float squares = 0.0f;  // about the mean: a difference of two sums would cancel
    float off = 0.0f;      // of a large mean, which is a rounded number and a rounded sum
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        v[k] = place(k / TOGETHER * TOGETHER) < length ? v[k] - mean : 0.0f;
        squares += v[k] * v[k];
        off += v[k];
    }
    const float beside = p.centred ? of_row(off, Added()) / p.length : 0.0f;
    const float variance = of_row(squares, Added()) / p.length - beside * beside;
    const float factor = 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + p.epsilon);  // NaN stays what it is
    if (!there) return;
    if (p.gives != NORMALIZE_ALL) {
        if (lane_of_row() == 0) y[row] = p.gives == NORMALIZE_MEAN ? mean + beside : factor;
        return;
    }
    const int first = row % p.groups * (p.length / p.inner);  // channel of the row
    const float *of_scale = scale ? written(scale) + first : scale, *of_bias = scale ? written(bias) + first : bias;
    float* to = y + row * p.length;
#pragma unroll
    for (int k = 0; k < VALUES; k += TOGETHER) {
        const int j = place(k);
        if (j >= length) continue;
        float a[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) a[i] = (v[k + i] - beside) * factor;
        if (scale) {
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                const int channel = p.inner == 1 ? j + i : (j + i) / p.inner;
                a[i] = a[i] * of_scale[channel] + of_bias[channel];
            }
        }
        if constexpr (WRITES == 1 || WRITES == 2)
            *reinterpret_cast<uint2*>(reinterpret_cast<half_bits*>(y) + row * p.length + j) =
                make_uint2(to_halves(a[0], a[1]), to_halves(a[2], a[3]));
        else if constexpr (WRITES == 3)
            *reinterpret_cast<uint4*>(to + j) = make_uint4(to_tf32(a[0]), to_tf32(a[1]), to_tf32(a[2]), to_tf32(a[3]));
        else if constexpr (ALIGNED)
            *reinterpret_cast<float4*>(to + j) = make_float4(a[0], a[1], a[2], a[3]);
        else
            to[j] = a[0];
    }
}
