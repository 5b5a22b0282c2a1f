/*
op = "conv3d"
rung = 1
name = "naive"
idea = "One thread an output: it walks its box of the volume, the sum, a piece of it at a time, in a register."
launch = "one_thread_an_output"
*/
#include "common.cuh"
#include "sums.cuh"

// x is (N, C, D, H, W), weight (M, C / group, KD, KH, KW), y (N, M, OD, OH, OW); 0, 1, 2 are depth, height, width.
extern "C" __global__ void conv3d(const float* __restrict__ x, const float* __restrict__ weight,
                                  const float* __restrict__ bias, float* __restrict__ y, const Conv3dParams p) {
    const int channels = p.c / p.group;
    const index_t total = (index_t)p.n * p.m * p.out[0] * p.out[1] * p.out[2];
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int left = i % p.out[2] * p.stride[2] - p.pad[2];
        const int top = i / p.out[2] % p.out[1] * p.stride[1] - p.pad[1];
        const int front = i / p.out[2] / p.out[1] % p.out[0] * p.stride[0] - p.pad[0];
        const index_t map = i / p.out[2] / p.out[1] / p.out[0];
        const int om = map % p.m;
        const index_t first = map / p.m * p.c + om / (p.m / p.group) * channels;  // the first channel that it reads
        const float* tap = weight + (index_t)om * channels * p.kernel[0] * p.kernel[1] * p.kernel[2];
        LongSum sum;
        for (int ci = 0; ci < channels; ++ci) {
            for (int q = 0; q < p.kernel[0]; ++q) {
                const int iz = front + q * p.dilation[0];
                for (int r = 0; r < p.kernel[1]; ++r) {
                    const int iy = top + r * p.dilation[1];
                    const float* row = x + (((first + ci) * p.size[0] + iz) * p.size[1] + iy) * p.size[2];
                    const bool within = iz >= 0 && iz < p.size[0] && iy >= 0 && iy < p.size[1];
                    for (int some = 0; some < p.kernel[2]; some += PIECE) {
                        const int end = min(p.kernel[2], some + PIECE);
                        sum.next(end - some);
                        for (int s = some; s < end; ++s, ++tap) {
                            const int ix = left + s * p.dilation[2];
                            if (within && ix >= 0 && ix < p.size[2]) sum.part += row[ix] * *tap;
                        }
                    }
                }
            }
        }
        y[i] = bias ? sum.total() + bias[om] : sum.total();
    }
}
