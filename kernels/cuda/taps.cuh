// Where the taps of a convolution lie that is computed as a matrix product, channels × pixels, out of tiles.cuh's tiles.
#pragma once
#include "common.cuh"
#include "tiles.cuh"

#define PATCH_LOADS (TILE_N * TILE_K / THREADS)  // elements of the patches that a thread fetches of a tile
#define TABLE (16 * TILE_K)                      // taps located at once
static_assert(THREADS % TILE_N == 0 && TILE_N * TILE_K % THREADS == 0, "a thread must keep to one pixel");

// Elements from the first channel of the group, and rows and columns from the window's corner: 16 bytes, read at once.
struct __align__(16) Tap {
    int offset, down, right;
};

// A tap beyond the last lies far above the image, where every read is a zero.
__device__ __forceinline__ Tap locate(int tap, int taps, const ConvParams& p) {
    const int ci = tap / (p.kh * p.kw), r = tap / p.kw % p.kh, s = tap % p.kw;
    Tap t;
    t.offset = tap < taps ? (ci * p.h + r * p.dilation_h) * p.w + s * p.dilation_w : 0;
    t.down = tap < taps ? r * p.dilation_h : -0x40000000;
    t.right = s * p.dilation_w;
    return t;
}
