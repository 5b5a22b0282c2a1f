/*
op = "conv"
rung = 11
priority = 40
name = "depthwise"
idea = "Where a map reads one channel alone there is no sum over channels to share: a block reads its part of a plane once (or several small planes, which lie side by side in memory), and a thread walks down a column with its window's weights in registers."
launch = "conv_depthwise"
overlaps = true
[defines]
PLANES = 1    # of x a block; this line and those below: the launch fits them to the shapes
TILE_H = 8    # outputs of a plane a block
TILE_W = 8
ROWS = 10     # of the padded plane that those outputs read
COLUMNS = 10
THREADS = 32
DOWN = 2      # outputs a thread, one below the other
KH = 3        # the window
KW = 3
C = 1         # all the shapes
H = 8
W = 8
M = 1
OUT_H = 8
OUT_W = 8
STRIDE_H = 1
STRIDE_W = 1
PAD_TOP = 1
PAD_LEFT = 1
DILATION_H = 1
DILATION_W = 1
GROUP = 1
[needs]
depthwise = true
kernel_max = 7
*/
#include "common.cuh"
#include "overlap.cuh"

#define MULTIPLE (M / C)  // maps of a channel
#define ACROSS ((OUT_W + TILE_W - 1) / TILE_W)
#define TILES ((OUT_H + TILE_H - 1) / TILE_H * ACROSS)
#define STRIPS ((TILE_H + DOWN - 1) / DOWN)
#define REACH ((DOWN - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1)  // rows that a thread's outputs read
#define LANE ((COLUMNS + STRIDE_W - 1) / STRIDE_W)

// Where a column of a plane lies in its row in shared memory: what neighbouring threads read at once, STRIDE_W columns
// apart, lies side by side and so in banks of its own.
__device__ __forceinline__ constexpr int place(int column) { return column % STRIDE_W * LANE + column / STRIDE_W; }

// x is (N, C, H, W), weight (M, 1, KH, KW), y (N, M, OH, OW): plane i of x becomes the planes from i · MULTIPLE of y.
extern "C" __global__ void __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    __shared__ float tile[PLANES][ROWS][STRIDE_W * LANE];

    const index_t planes = (index_t)p.n * C, first_plane = (index_t)(blockIdx.x / TILES) * PLANES;
    const int part = blockIdx.x % TILES, first_y = part / ACROSS * TILE_H, first_x = part % ACROSS * TILE_W;
    // The outputs of this thread: a column of a strip of one plane.
    const int plane = threadIdx.x / (STRIPS * TILE_W), strip = threadIdx.x / TILE_W % STRIPS;
    const int column = threadIdx.x % TILE_W, channel = (first_plane + plane) % C;
    const float* taps = weight + channel * (MULTIPLE * KH * KW);
    let_next_begin();
    wait_for_previous();  // the weights, too, may be what a kernel wrote
    x = written(x);

    float filter[KH][KW];
#pragma unroll
    for (int t = 0; t < KH * KW; ++t) filter[t / KW][t % KW] = taps[t];
    const float* in = x + first_plane * (H * W);
#pragma unroll 4
    for (int e = threadIdx.x; e < PLANES * ROWS * COLUMNS; e += THREADS) {
        const int of = e / (ROWS * COLUMNS), row = e / COLUMNS % ROWS, at = e % COLUMNS;
        const int iy = first_y * STRIDE_H - PAD_TOP + row, ix = first_x * STRIDE_W - PAD_LEFT + at;
        const bool inside = (unsigned)iy < (unsigned)H && (unsigned)ix < (unsigned)W && first_plane + of < planes;
        tile[of][row][place(at)] = inside ? in[(of * H + iy) * W + ix] : 0.0f;
    }
    __syncthreads();  // whole before anybody reads what others loaded
    const int first_row = first_y + strip * DOWN, ox = first_x + column;
    if (plane >= PLANES || first_plane + plane >= planes || ox >= OUT_W) return;

    for (int o = 0; o < MULTIPLE; ++o) {
        if (o > 0) {
#pragma unroll
            for (int t = 0; t < KH * KW; ++t) filter[t / KW][t % KW] = taps[o * (KH * KW) + t];
        }
        float sum[DOWN] = {};
#pragma unroll
        for (int s = 0; s < KW; ++s) {
            const float* corner = &tile[plane][strip * DOWN * STRIDE_H][place(s * DILATION_W)] + column;
            float v[REACH];
#pragma unroll
            for (int i = 0; i < REACH; ++i) v[i] = corner[i * (STRIDE_W * LANE)];
#pragma unroll
            for (int r = 0; r < KH; ++r)
#pragma unroll
                for (int i = 0; i < DOWN; ++i) sum[i] += filter[r][s] * v[i * STRIDE_H + r * DILATION_H];
        }
        const float shift = bias ? bias[channel * MULTIPLE + o] : 0.0f;
        float* out = y + ((first_plane + plane) * MULTIPLE + o) * (OUT_H * OUT_W) + ox;
#pragma unroll
        for (int i = 0; i < DOWN; ++i) {
            const int row = first_row + i;
            if (row < OUT_H) out[row * OUT_W] = activate(sum[i] + shift, p.activation);
        }
    }
}
