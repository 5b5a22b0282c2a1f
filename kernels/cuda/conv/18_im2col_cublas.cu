/*
op = "conv"
rung = 18
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
                                float* __restrict__ workspace, const ConvParams p) {
    write_patches(x, workspace, p);
}

// The library's sums, behind the patches, are (maps M) × (pixels N · OH · OW); a thread a pixel of some maps.
extern "C" __global__ void conv_finish(const float* __restrict__ x, const float* __restrict__ weight,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, const ConvParams p) {
    const int area = p.out_h * p.out_w, pixels = p.n * area;
    const index_t pixel = first_element(), lead = row_length(pixels);
    if (pixel >= pixels) return;
    const float* sums = workspace + (index_t)p.c * p.kh * p.kw * lead + pixel;
    float* out = y + pixel / area * p.m * area + pixel % area;
    for (int om = blockIdx.y; om < p.m; om += gridDim.y) {
        const float sum = sums[om * lead];
        out[(index_t)om * area] = activate(bias ? sum + bias[om] : sum, p.activation);
    }
}
