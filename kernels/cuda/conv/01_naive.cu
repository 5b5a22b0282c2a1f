/*
op = "conv"
rung = 1
name = "naive"
idea = "A block an image: its threads, 32 × 32 as the picture has rows and columns, walk the maps and their pixels, and every addition goes to the output in global memory."
launch = "conv_image_a_block"
[defines]
BLOCK_X = 32
BLOCK_Y = 32
*/
#include "common.cuh"

// x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, OH, OW).
extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y, int n, int c, int h, int w,
                                int m, int kh, int kw, int out_h, int out_w, int stride_h, int stride_w,
                                int pad_top, int pad_left, int dilation_h, int dilation_w, int group,
                                int activation) {
    const int channels = c / group;  // that one output reads
    const int image = blockIdx.x;
    for (int om = 0; om < m; ++om) {
        const float* in = x + ((index_t)image * c + om / (m / group) * channels) * h * w;
        const float* filter = weight + (index_t)om * channels * kh * kw;
        float* out = y + ((index_t)image * m + om) * out_h * out_w;
        for (int oy = threadIdx.y; oy < out_h; oy += blockDim.y) {
            for (int ox = threadIdx.x; ox < out_w; ox += blockDim.x) {
                // Volatile, or the compiler would keep the sum in a register of its own accord.
                volatile float* place = out + (index_t)oy * out_w + ox;
                *place = 0.0f;
                for (int ci = 0; ci < channels; ++ci) {
                    for (int r = 0; r < kh; ++r) {
                        const int iy = oy * stride_h - pad_top + r * dilation_h;
                        if (iy < 0 || iy >= h) continue;  // a row of padding adds nothing
                        for (int s = 0; s < kw; ++s) {
                            const int ix = ox * stride_w - pad_left + s * dilation_w;
                            if (ix < 0 || ix >= w) continue;
                            *place = *place + in[((index_t)ci * h + iy) * w + ix] *
                                              filter[((index_t)ci * kh + r) * kw + s];
                        }
                    }
                }
                *place = activate(bias ? *place + bias[om] : *place, activation);
            }
        }
    }
}
