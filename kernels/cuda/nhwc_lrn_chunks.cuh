// The normalisation alone: a thread a chunk of a pixel. Neighbouring threads have the neighbouring chunks of x or, where
// that is NCHW float32, its neighbouring pixels.
#pragma once
#include "nhwc_lrn.cuh"
#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(256)
    lrn(const float* __restrict__ x, float* __restrict__ y, const LrnParams p) {
    let_next_begin();
    const int area = (int)p.inner, pixels = p.n * area;
    const int i = (int)first_element();
    if (i >= pixels * ALL_CHUNKS) return;
    wait_for_previous();
    x = written(x);
    const int place = READS ? i / ALL_CHUNKS : i % pixels, chunk = READS ? i % ALL_CHUNKS : i / pixels;
    const int image = place / area, pixel = place % area;
    float v[3 * EACH], w[EACH];
    read_chunks(v, x, image, pixel, area, chunk);
#pragma unroll
    for (int e = 0; e < EACH; ++e)
        w[e] = chunk * EACH + e < C ? normalised(v, e, p.scale, p.bias, p.beta) : 0.0f;
    if (WRITES) {
        reinterpret_cast<uint4*>(y)[(index_t)place * ALL_CHUNKS + chunk] = to_chunk(w);
        return;
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int channel = chunk * EACH + e;
        if (channel < C) y[((index_t)image * C + channel) * area + pixel] = w[e];
    }
}
