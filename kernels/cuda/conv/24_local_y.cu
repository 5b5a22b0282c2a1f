/*
op = "conv"
rung = 24
name = "local_y"
method = "plain"  # term after term: n equal terms are off by up to n / 3 · 2⁻²⁴ of their sum
idea = "A thread keeps the sums of many maps at its pixel in an array of registers, so that every element of x is read once for all of them; blocks of 1,024 threads leave each thread 64 registers, fewer than it wants, and what is left over spills."
launch = "conv_image_a_block"
side = true
[defines]
BLOCK_X = 32
BLOCK_Y = 32
MAPS = 50  # sums a thread
[needs]
group = 1
*/
#include "common.cuh"

// x is (N, C, H, W), weight (M, C, KH, KW), y (N, M, OH, OW).
extern "C" __global__ void __launch_bounds__(BLOCK_X * BLOCK_Y)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    const int image = blockIdx.x, pixels = p.out_h * p.out_w, window = p.kh * p.kw;
    const float* in = x + (index_t)image * p.c * p.h * p.w;
    float* out = y + (index_t)image * p.m * pixels;
    for (int first = 0; first < p.m; first += MAPS) {
        for (int pixel = threadIdx.y * BLOCK_X + threadIdx.x; pixel < pixels; pixel += BLOCK_X * BLOCK_Y) {
            const int oy = pixel / p.out_w, ox = pixel % p.out_w;
            float local_y[MAPS] = {};
            for (int ci = 0; ci < p.c; ++ci) {
                for (int r = 0; r < p.kh; ++r) {
                    const int iy = oy * p.stride_h - p.pad_top + r * p.dilation_h;
                    if (iy < 0 || iy >= p.h) continue;  // a row of padding adds nothing
                    for (int s = 0; s < p.kw; ++s) {
                        const int ix = ox * p.stride_w - p.pad_left + s * p.dilation_w;
                        if (ix < 0 || ix >= p.w) continue;
                        const float value = in[((index_t)ci * p.h + iy) * p.w + ix];
                        const float* filter = weight + ((index_t)first * p.c + ci) * window + r * p.kw + s;
                        // Unrolled, or the array would be indexed at run time and lie in memory from the start.
#pragma unroll
                        for (int om = 0; om < MAPS; ++om)
                            if (first + om < p.m) local_y[om] += value * filter[(index_t)om * p.c * window];
                    }
                }
            }
#pragma unroll
            for (int om = 0; om < MAPS; ++om)
                if (first + om < p.m) {
                    const float sum = bias ? local_y[om] + bias[first + om] : local_y[om];
                    out[(index_t)(first + om) * pixels + pixel] = activate(sum, p.activation);
                }
        }
    }
}
