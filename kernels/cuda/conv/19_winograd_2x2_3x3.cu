/*
op = "conv"
rung = 19
name = "winograd_2x2_3x3"
method = "winograd"
idea = "Winograd's F(2×2, 3×3): four outputs of a 3×3 window for 16 multiplications instead of 36, at the price of transforms that go through memory."
launch = "conv_winograd"
side = true
packs = true
overlaps = true
[defines]
TILE_M = 128
TILE_N = 128
THREAD_M = 8
THREAD_N = 8
TILE_K = 8
VECTOR_W = 4       # weights at once: 4 where every row of them begins on 16 bytes, else 1
SCRATCH_MIB = 256  # of transforms at a time; the images of a larger batch take turns
[needs]
kernel = 3
stride = 1
dilation = 1
*/
#include "overlap.cuh"
#include "spectral.cuh"

// Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A over tiles d of 4 × 4 elements that overlap by two; the sums over channels are 16
// matrix products, one a place in the tile. The weights come transformed: (16, group, M / group, C / group).
// A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2016 (arXiv:1509.09308).
#define PLACES 16
#define SPAN 2  // outputs of a tile each way

extern "C" __global__ void conv(const float* __restrict__ x, const float* __restrict__ weight,
                                const float* __restrict__ bias, float* __restrict__ y,
                                float* __restrict__ workspace, const ConvParams p) {
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const int tiles = tiles_of(p, SPAN, SPAN), tile = (int)first_element(), channel = blockIdx.y;
    if (tile >= tiles) return;
    const index_t lead = row_length(tiles);
    const Place at = place_of(tile, p, SPAN, SPAN);
    const float* in = x + ((index_t)at.image * p.c + channel) * p.h * p.w;
    float d[4][4], rows[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int iy = at.top + i - p.pad_top, ix = at.left + j - p.pad_left;
            d[i][j] = iy >= 0 && iy < p.h && ix >= 0 && ix < p.w ? in[(index_t)iy * p.w + ix] : 0.0f;
        }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        rows[0][j] = d[0][j] - d[2][j];
        rows[1][j] = d[1][j] + d[2][j];
        rows[2][j] = d[2][j] - d[1][j];
        rows[3][j] = d[1][j] - d[3][j];
    }
    let_next_begin();
    float* out = workspace + channel * lead + tile;
    const index_t next = p.c * lead;  // from one place of the transform to the next
#pragma unroll
    for (int i = 0; i < 4; ++i, out += 4 * next) {
        out[0] = rows[i][0] - rows[i][2];
        out[next] = rows[i][1] + rows[i][2];
        out[2 * next] = rows[i][2] - rows[i][1];
        out[3 * next] = rows[i][1] - rows[i][3];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    conv_products(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                  float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    multiply_places<PLACES>(weight, workspace, p, SPAN, SPAN);
}

extern "C" __global__ void conv_outputs(const float* __restrict__ x, const float* __restrict__ weight,
                                        const float* __restrict__ bias, float* __restrict__ y,
                                        float* __restrict__ workspace, const ConvParams p) {
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const int tiles = tiles_of(p, SPAN, SPAN), tile = (int)first_element(), om = blockIdx.y;
    if (tile >= tiles) return;
    const index_t lead = row_length(tiles);
    const Place at = place_of(tile, p, SPAN, SPAN);
    const float* sums = workspace + ((index_t)PLACES * p.c + om) * lead + tile;
    float columns[2][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        float s[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) s[i] = sums[(i * 4 + j) * (p.m * lead)];
        columns[0][j] = s[0] + s[1] + s[2];
        columns[1][j] = s[1] - s[2] - s[3];
    }
    let_next_begin();
    float* out = y + ((index_t)at.image * p.m + om) * p.out_h * p.out_w;
    const float shift = bias ? bias[om] : 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float* s = columns[i];
        const float v[2] = {s[0] + s[1] + s[2], s[1] - s[2] - s[3]};
#pragma unroll
        for (int j = 0; j < 2; ++j)
            if (at.top + i < p.out_h && at.left + j < p.out_w)
                out[(index_t)(at.top + i) * p.out_w + at.left + j] = activate(v[j] + shift, p.activation);
    }
}
