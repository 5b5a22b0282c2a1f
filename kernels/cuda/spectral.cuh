// What convolutions share that multiply transforms of tiles of the image, Winograd's or Fourier's: where a tile of
// span_h × span_w outputs lies, and the products at each place of a transform.
#pragma once
#include "common.cuh"
#include "product.cuh"

// Where a tile lies: its image, and the first of its outputs.
struct Place {
    int image, top, left;
};

__device__ __forceinline__ Place place_of(int tile, const ConvParams& p, int span_h, int span_w) {
    const int across = (p.out_w + span_w - 1) / span_w, down = (p.out_h + span_h - 1) / span_h;
    return {tile / (across * down), tile / across % down * span_h, tile % across * span_w};
}

__device__ __forceinline__ int tiles_of(const ConvParams& p, int span_h, int span_w) {
    return p.n * ((p.out_h + span_h - 1) / span_h) * ((p.out_w + span_w - 1) / span_w);
}

// The sums over the channels of a group (blockIdx.z % group), a matrix product at each of PLACES (blockIdx.z / group):
// `factors` are the weights' transforms, (place, M, C / group). In scratch memory the transforms of the image,
// (place, C, tile), lie in front of these sums, (place, M, tile).
template <int PLACES>
__device__ __forceinline__ void multiply_places(const float* __restrict__ factors, float* __restrict__ workspace,
                                                const ConvParams& p, int span_h, int span_w) {
    __shared__ Factors tile;
    const int outputs = p.m / p.group, channels = p.c / p.group;
    const int tiles = tiles_of(p, span_h, span_w);
    const index_t lead = row_length(tiles);
    const int place = blockIdx.z / p.group, g = blockIdx.z % p.group;
    const int first_output = blockIdx.y * TILE_M, first_tile = blockIdx.x * TILE_N;
    const float* left = factors + ((index_t)place * p.m + g * outputs + first_output) * channels;
    const float* right = workspace + ((index_t)place * p.c + g * channels) * lead + first_tile;
    float* sums =
        workspace + ((index_t)PLACES * p.c + (index_t)place * p.m + g * outputs + first_output) * lead + first_tile;
    multiply<VECTOR_W>(tile, left, channels, right, lead, outputs - first_output, tiles - first_tile, channels,
                       [&](int row, int column, float sum) { sums[row * lead + column] = sum; });
}
