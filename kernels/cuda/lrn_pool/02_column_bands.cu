/*
op = "lrn_pool"
rung = 2
name = "column_bands"
idea = "A thread walks down one column of OUTS rows of windows with RUN channels in registers: an element is normalised once for all its windows in this band, and reduced down them straight away; only the columns' results meet, in shared memory, along the rows."
launch = "lrn_pool_bands"
overlaps = true
[defines]
RUN = 16   # channels a thread; this and the next are as large as leave enough threads
OUTS = 2   # rows of outputs a thread
UNITS = 1  # bands of a block; this line and those below: the launch sets them
TILE = 4   # outputs of a row in a band
SIZE = 5
THREE_QUARTERS = 0  # whether that is the exponent
KIND = 0
C = 16
H = 8
W = 8
OUT_H = 4
OUT_W = 4
KH = 2
KW = 2
STRIDE_H = 2
STRIDE_W = 2
PAD_TOP = 0
PAD_LEFT = 0
PAD_BOTTOM = 0
PAD_RIGHT = 0
COUNT_PAD = 0
[needs]
dilation = 1
kernel_max = 8
size_max = 9
*/
#include "lrn.cuh"
#include "overlap.cuh"
#include "pool.cuh"

#define BEFORE ((SIZE - 1) / 2)
#define SPAN ((TILE - 1) * STRIDE_W + KW)   // columns of the image under a band
#define ROWS ((OUTS - 1) * STRIDE_H + KH)   // and rows
#define RUNS ((C + RUN - 1) / RUN)
#define TILES ((OUT_W + TILE - 1) / TILE)
#define BANDS ((OUT_H + OUTS - 1) / OUTS)
#define PLANE (H * W)

__device__ __forceinline__ constexpr bool holds(int o, int row) {
    return row >= o * STRIDE_H && row < o * STRIDE_H + KH;
}

// How many of `taps` places from `first` on count in an average, along an axis of `size` with `after` behind it.
__device__ __forceinline__ int counted(int first, int taps, int size, int after) {
    const int last = first + taps;
    return COUNT_PAD ? min(last, size + after) - first : min(last, size) - max(first, 0);
}

// Where a unit of work stands. Runs of channels of one band lie side by side: what two of them read comes from
// the cache the second time.
struct Unit {
    int channel, column, row;  // first of them, of the outputs
    unsigned image;
    __device__ __forceinline__ Unit(unsigned number) {
        channel = number % RUNS * RUN;
        column = number / RUNS % TILES * TILE;
        row = number / (RUNS * TILES) % BANDS * OUTS;
        image = number / (RUNS * TILES * BANDS);
    }
};

extern "C" __global__ void lrn_pool(const float* __restrict__ x, float* __restrict__ y, const LrnPoolParams p) {
    let_next_begin();
    wait_for_previous();
    x = written(x);
    __shared__ float columns[UNITS][OUTS][RUN][SPAN];
    const unsigned units = (unsigned)p.n * (RUNS * TILES * BANDS), first = blockIdx.x * UNITS;
    for (int place = threadIdx.x; place < UNITS * SPAN; place += blockDim.x) {
        const int mine = place / SPAN, column = place % SPAN;
        if (first + mine >= units) break;
        const Unit unit(first + mine);
        const int ix = unit.column * STRIDE_W - PAD_LEFT + column, top = unit.row * STRIDE_H - PAD_TOP;
        const float* in = x + ((index_t)unit.image * C + unit.channel) * PLANE + ix;
        float found[OUTS][RUN];
#pragma unroll
        for (int o = 0; o < OUTS; ++o) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) found[o][i] = start();
        }
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            const int iy = top + row;
            if (ix < 0 || ix >= W || iy < 0 || iy >= H) continue;
            float v[RUN + SIZE - 1];
#pragma unroll
            for (int i = 0; i < RUN + SIZE - 1; ++i) {
                const int channel = unit.channel + i - BEFORE;
                v[i] = channel >= 0 && channel < C ? in[(i - BEFORE) * PLANE + iy * W] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < RUN; ++i) {
                float sum = 0.0f;
#pragma unroll
                for (int k = 0; k < SIZE; ++k) sum += v[i + k] * v[i + k];
                const float normal = v[i + BEFORE] * inverse_power(p.bias + p.scale * sum, p.beta);
#pragma unroll
                for (int o = 0; o < OUTS; ++o) {
                    if (holds(o, row)) found[o][i] = joined(found[o][i], normal);
                }
            }
        }
#pragma unroll
        for (int o = 0; o < OUTS; ++o) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) columns[mine][o][i][column] = found[o][i];
        }
    }
    __syncthreads();
    for (int place = threadIdx.x; place < UNITS * OUTS * RUN * TILE; place += blockDim.x) {
        const int across = place % TILE, i = place / TILE % RUN, o = place / (TILE * RUN) % OUTS;
        const int mine = place / (TILE * RUN * OUTS);
        if (first + mine >= units) break;
        const Unit unit(first + mine);
        const int ox = unit.column + across, oy = unit.row + o, channel = unit.channel + i;
        if (ox >= OUT_W || oy >= OUT_H || channel >= C) continue;
        float v = start();
#pragma unroll
        for (int s = 0; s < KW; ++s) v = joined(v, columns[mine][o][i][across * STRIDE_W + s]);
        if (KIND != POOL_MAX) {
            v /= counted(ox * STRIDE_W - PAD_LEFT, KW, W, PAD_RIGHT) *
                 counted(oy * STRIDE_H - PAD_TOP, KH, H, PAD_BOTTOM);
        }
        y[(((index_t)unit.image * C + channel) * OUT_H + oy) * OUT_W + ox] = v;
    }
}
