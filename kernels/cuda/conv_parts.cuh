// How parts of the sums of a convolution over chunks (conv_chunks.cuh) become y. They lie as y does, in float32.
#pragma once
#include "common.cuh"
#include "conv_chunks.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"

// Adds the parts, always in the same order.
extern "C" __global__ void conv_reduce(const float* __restrict__ x, const float* __restrict__ weight,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, const ConvParams p) {
    let_next_begin();
    wait_for_previous();
    const int area = p.out_h * p.out_w;
    const index_t total = (index_t)p.n * p.m * area;
    const float* parts = Source(p).parts(workspace, p.n);
    auto added = [&](index_t i, int channel) {
        float sum = 0.0f;
#pragma unroll 16
        for (int part = 0; part < PARTS; ++part) sum += parts[part * total + i];
        return activate(bias ? sum + bias[channel] : sum, AFTER);
    };
    if (!WRITES) {
        for (index_t i = first_element(); i < total; i += grid_stride()) y[i] = added(i, i / area % p.m);
        return;
    }
    // Four channels of a pixel a thread: partial sums lie as y does.
    const int every = chunks_of(p.m) * EACH;
    const index_t filled = (index_t)p.n * area * every;
    for (index_t i = 4 * first_element(); i < filled; i += 4 * grid_stride()) {
        float v[4] = {};
#pragma unroll 8
        for (int part = 0; part < PARTS; ++part) {
            const float4 more = *reinterpret_cast<const float4*>(parts + part * filled + i);
            v[0] += more.x, v[1] += more.y, v[2] += more.z, v[3] += more.w;
        }
        const int channel = i % every;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const bool real = channel + e < p.m;
            v[e] = real ? activate(bias ? v[e] + bias[channel + e] : v[e], AFTER) : 0.0f;
        }
        if (EACH == 8)
            reinterpret_cast<uint2*>(y)[i / 4] = make_uint2(to_halves(v[0], v[1]), to_halves(v[2], v[3]));
        else
            reinterpret_cast<uint4*>(y)[i / 4] = to_chunk(v);
    }
}
