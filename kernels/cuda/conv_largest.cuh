// The stage conv_largest: the largest number of every image, which halves_split.cuh scales it by, a block for each of its
// SHARES. Included behind SHARES_IN(workspace, p), where in the scratch memory they lie, on 16 bytes.
#pragma once
#include "common.cuh"
#include "halves_split.cuh"
#include "overlap.cuh"

#ifndef READS
#define READS 0  // 1 where images lie in chunks of four channels, filled up with zeros (conv_chunks.cuh)
#endif
#define SHARES 16  // of an image whose largest number is looked for, a block each

__device__ __forceinline__ float largest(const float* shares, int image) {
    const float4* of = reinterpret_cast<const float4*>(shares) + image * (SHARES / 4);
    float found = 0.0f;
#pragma unroll
    for (int i = 0; i < SHARES / 4; ++i) found = fmaxf(found, fmaxf(fmaxf(of[i].x, of[i].y), fmaxf(of[i].z, of[i].w)));
    return found;
}

extern "C" __global__ void __launch_bounds__(512)
    conv_largest(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    let_next_begin();
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const int each = (READS ? (p.c + 3) / 4 * 4 : p.c) * p.h * p.w;
    const int image = blockIdx.x / SHARES, share = blockIdx.x % SHARES;
    const float* from = x + (index_t)image * each;
    // Four at a time where they begin on 16 bytes; before them and behind lie up to three.
    const int head = min(each, (int)(-(reinterpret_cast<size_t>(from) / 4) & 3)), fours = (each - head) / 4;
    const float4* body = reinterpret_cast<const float4*>(from + head);
    float found = 0.0f;
#pragma unroll 4
    for (int i = share * blockDim.x + threadIdx.x; i < fours; i += SHARES * blockDim.x) {
        const float4 v = body[i];
        found = fmaxf(found, fmaxf(fmaxf(finite_magnitude(v.x), finite_magnitude(v.y)),
                                   fmaxf(finite_magnitude(v.z), finite_magnitude(v.w))));
    }
    if (share == 0 && threadIdx.x < each - 4 * fours)
        found = fmaxf(found, finite_magnitude(from[threadIdx.x < head ? threadIdx.x : 4 * fours + threadIdx.x]));
    found = largest_of_block(found);
    if (threadIdx.x == 0) SHARES_IN(workspace, p)[image * SHARES + share] = found;
}
