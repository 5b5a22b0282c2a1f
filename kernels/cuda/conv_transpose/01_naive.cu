/*
op = "conv_transpose"
rung = 1
name = "naive"
idea = "One thread an output: it gathers what the elements within reach add to it, so that no two threads write to one place."
launch = "one_thread_an_output"
*/
#include "common.cuh"
#include "sums.cuh"

// x is (N, C, H, W), weight (C, M / group, KH, KW), y (N, M, OH, OW). Tap (r, s) of the window adds element (iy, ix) to
// row iy · stride + r · dilation - pad: of each tap there is one such element, or none.
extern "C" __global__ void conv_transpose(const float* __restrict__ x, const float* __restrict__ weight,
                                          const float* __restrict__ bias, float* __restrict__ y,
                                          const ConvTransposeParams p) {
    const int channels = p.c / p.group, maps = p.m / p.group;  // of a group
    const index_t total = (index_t)p.n * p.m * p.out_h * p.out_w;
    const index_t plane = (index_t)p.h * p.w, filters = (index_t)maps * p.kh * p.kw;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int ox = i % p.out_w, oy = i / p.out_w % p.out_h;
        const index_t map = i / p.out_w / p.out_h;
        const int om = map % p.m, g = om / maps;
        const float* in = x + (map / p.m * p.c + g * channels) * plane;
        const float* of_map = weight + (index_t)g * channels * filters + (index_t)(om % maps) * p.kh * p.kw;
        LongSum sum;
        for (int r = 0; r < p.kh; ++r) {
            const int down = oy + p.pad_top - r * p.dilation_h, iy = down / p.stride_h;
            if (down < 0 || down % p.stride_h != 0 || iy >= p.h) continue;
            for (int s = 0; s < p.kw; ++s) {
                const int across = ox + p.pad_left - s * p.dilation_w, ix = across / p.stride_w;
                if (across < 0 || across % p.stride_w != 0 || ix >= p.w) continue;
                const float* at = in + (index_t)iy * p.w + ix;
                const float* tap = of_map + r * p.kw + s;
                for (int first = 0; first < channels; first += PIECE) {
                    const int last = min(channels, first + PIECE);
                    sum.next(last - first);
                    for (int ci = first; ci < last; ++ci) sum.part += at[ci * plane] * tap[ci * filters];
                }
            }
        }
        y[i] = bias ? sum.total() + bias[om] : sum.total();
    }
}
