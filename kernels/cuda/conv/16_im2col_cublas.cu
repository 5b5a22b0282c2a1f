/*
op = "conv"
rung = 16
name = "im2col_cublas"
idea = "The yardstick: the patches are written out as in im2col_gemm and multiplied by NVIDIA's own library, and a kernel behind it does bias and activation."
launch = "conv_im2col_cublas"
yardstick = true
[defines]
SCRATCH_MIB = 256  # of patches and sums at a time; the images of a larger batch take turns
*/
#include "patches.cuh"

extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y,
                                float* __restrict__ workspace, int n, int c, int h, int w, int m, int kh, int kw,
                                int out_h, int out_w, int stride_h, int stride_w, int pad_top, int pad_left,
                                int dilation_h, int dilation_w, int group, int activation) {
    write_patches(x, workspace, n, c, h, w, kh, kw, out_h, out_w, stride_h, stride_w, pad_top, pad_left, dilation_h,
                  dilation_w);
}

// The library's sums, behind the patches, are (maps M) × (pixels N · OH · OW); a thread a pixel of some maps.
extern "C" __global__ void conv_finish(const float* __restrict__ x, const float* __restrict__ weight,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, int n, int c, int h, int w, int m, int kh,
                                       int kw, int out_h, int out_w, int stride_h, int stride_w, int pad_top,
                                       int pad_left, int dilation_h, int dilation_w, int group, int activation) {
    const int area = out_h * out_w, pixels = n * area;
    const index_t pixel = first_element(), lead = row_length(pixels);
    if (pixel >= pixels) return;
    const float* sums = workspace + (index_t)c * kh * kw * lead + pixel;
    float* out = y + pixel / area * m * area + pixel % area;
    for (int om = blockIdx.y; om < m; om += gridDim.y) {
        const float sum = sums[om * lead];
        out[(index_t)om * area] = activate(bias ? sum + bias[om] : sum, activation);
    }
}
