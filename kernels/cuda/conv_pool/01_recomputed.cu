/*
op = "conv_pool"
rung = 1
name = "recomputed"
idea = "One thread an output: it computes every output of the convolution in its window for itself, so that nothing is written in between."
launch = "one_thread_an_output"
*/
#include "common.cuh"
#include "sums.cuh"

// x is (N, C, H, W), weight (M, C / group, KH, KW), y (N, M, POOL_OUT_H, POOL_OUT_W); the pool reads (OH, OW).
extern "C" __global__ void conv_pool(const float* __restrict__ x, const float* __restrict__ weight,
                                     const float* __restrict__ bias, float* __restrict__ y,
                                     const ConvPoolParams p) {
    const int channels = p.c / p.group;  // that one output reads
    const index_t total = (index_t)p.n * p.m * p.pool_out_h * p.pool_out_w;
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        const int px = i % p.pool_out_w;
        const int py = i / p.pool_out_w % p.pool_out_h;
        const index_t plane = i / ((index_t)p.pool_out_w * p.pool_out_h);
        const int om = plane % p.m;
        const float* in = x + (plane / p.m * p.c + om / (p.m / p.group) * channels) * p.h * p.w;
        const float* filter = weight + (index_t)om * channels * p.kh * p.kw;
        float best = minus_infinity();
        LongSum of_window;
        int counted = 0;
        for (int a = 0; a < p.pool_kh; ++a) {
            const int oy = py * p.pool_stride_h - p.pool_pad_top + a * p.pool_dilation_h;
            if (oy >= p.out_h + p.pool_pad_bottom) break;  // beyond the padded image, where ceil_mode reaches
            for (int b = 0; b < p.pool_kw; ++b) {
                const int ox = px * p.pool_stride_w - p.pool_pad_left + b * p.pool_dilation_w;
                if (ox >= p.out_w + p.pool_pad_right) break;
                const bool inside = oy >= 0 && oy < p.out_h && ox >= 0 && ox < p.out_w;
                counted += inside || p.count_include_pad;
                if (!inside) continue;
                LongSum sum;
                for (int ci = 0; ci < channels; ++ci) {
                    for (int r = 0; r < p.kh; ++r) {
                        const int iy = oy * p.stride_h - p.pad_top + r * p.dilation_h;
                        if (iy < 0 || iy >= p.h) continue;  // a row of padding adds nothing
                        for (int some = 0; some < p.kw; some += PIECE) {
                            const int end = min(p.kw, some + PIECE);
                            sum.next(end - some);
                            for (int s = some; s < end; ++s) {
                                const int ix = ox * p.stride_w - p.pad_left + s * p.dilation_w;
                                if (ix < 0 || ix >= p.w) continue;
                                sum.part += in[((index_t)ci * p.h + iy) * p.w + ix] *
                                            filter[((index_t)ci * p.kh + r) * p.kw + s];
                            }
                        }
                    }
                }
                const float v = activate(bias ? sum.total() + bias[om] : sum.total(), p.activation);
                of_window.add(v);
                best = larger(best, v);
            }
        }
        y[i] = activate(p.pool_kind == POOL_MAX ? best : of_window.total() / counted, p.pool_activation);
    }
}
