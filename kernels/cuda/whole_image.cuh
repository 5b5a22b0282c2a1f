// A convolution whose image and weights lie in a block's shared memory, and the cells of a pool over it: CELL_H ×
// CELL_W outputs of the convolution that become one of y (1 × 1 where there is no pool).
//
// A thread computes DOWN cells, one below the other, in FOUR maps. Its column of cells and its neighbour's lie APART
// columns of the image apart; the columns that neighbours read at once lie side by side in shared memory, so that each
// comes from a bank of its own. Shapes are defines of kernels/launch/whole_image.py; OUT_H and OUT_W are those of y.
#pragma once
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"

#if SHARES > 1 && DOWN > 1
#error "sums that are shared have one cell a thread"
#endif

#define FOUR 4
#define CHANNELS (C / GROUP)
#define OUTPUTS (M / GROUP)
#define TAPS (CHANNELS * KH * KW)
#define PARTS ((OUTPUTS + MAPS - 1) / MAPS)  // blocks that share the maps of a group
#define STRIPS ((BAND + DOWN - 1) / DOWN * OUT_W)
#define WORK (STRIPS * (MAPS / FOUR))
#define OF_EACH ((CHANNELS + SHARES - 1) / SHARES)  // channels
#define TALL (DOWN * CELL_H)                        // outputs of the convolution a thread, one below the other
#define REACH ((TALL - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1)  // rows that they see
#define APART (CELL_W * STRIDE_W)
#define LANE ((COLUMNS + APART - 1) / APART)

typedef float sums_t[TALL][CELL_W][FOUR];

// Where a column of the image lies in its row in shared memory.
__device__ __forceinline__ constexpr int place(int column) { return column % APART * LANE + column / APART; }

// Calls finish(sum, image, map, row, column) for each thread's outputs, `map` and `row` being the first of them.
// weight is packed: (GROUP, PARTS, TAPS, MAPS), zero where a map is beyond the last.
template <class Finish>
__device__ __forceinline__ void whole_image(const float* __restrict__ x, const float* __restrict__ weight, int n,
                                            Finish finish) {
    __shared__ float pixels[CHANNELS][ROWS][APART * LANE];
    __shared__ float4 filters[TAPS][MAPS / FOUR];
#if SHARES > 1
    __shared__ float4 parts[SHARES][TALL * CELL_W][WORK];
#endif

    const int g = blockIdx.y / PARTS, first_map = blockIdx.y % PARTS * MAPS, first_row = blockIdx.z * BAND;
    const float4* packed = reinterpret_cast<const float4*>(weight) + blockIdx.y * (TAPS * MAPS / FOUR);
    float4* flat = &filters[0][0];
#pragma unroll 4
    for (int e = threadIdx.x; e < TAPS * MAPS / FOUR; e += THREADS) flat[e] = packed[e];
    let_next_begin();
    wait_for_previous();
    x = written(x);

    for (int image = blockIdx.x; image < n; image += gridDim.x) {
        const float* in = x + ((index_t)image * C + g * CHANNELS) * (H * W);
#pragma unroll 4
        for (int e = threadIdx.x; e < CHANNELS * ROWS * COLUMNS; e += THREADS) {
            const int ci = e / (ROWS * COLUMNS), row = e / COLUMNS % ROWS, column = e % COLUMNS;
            const int iy = first_row * CELL_H * STRIDE_H + row - PAD_TOP, ix = column - PAD_LEFT;
            const bool inside = (unsigned)iy < (unsigned)H && (unsigned)ix < (unsigned)W;
            pixels[ci][row][place(column)] = inside ? in[(ci * H + iy) * W + ix] : 0.0f;
        }
        __syncthreads();
        for (int e = threadIdx.x; e < WORK * SHARES; e += THREADS) {
            const int share = e / WORK, quad = e % WORK / STRIPS, strip = e % STRIPS;
            const int oy = strip / OUT_W * DOWN, ox = strip % OUT_W;
            sums_t sum = {};
            // A window is a piece of the sum, or several are; of a large one, some of its columns.
            constexpr int TERMS = 48, COLUMNS_OF_PIECE = TERMS / KH;
            constexpr int OF_PIECE = KH * KW < TERMS ? (TERMS + 2) / (KH * KW) : 1;  // channels, of few terms more or less
            constexpr bool LONG = OF_EACH > OF_PIECE, LARGE = KH * KW > TERMS;
            Wholes<TALL * CELL_W * FOUR, TERMS> wholes(n);
            int done = 0, pieces = 0;
#pragma unroll 1
            for (int ci = share * OF_EACH; ci < min(CHANNELS, (share + 1) * OF_EACH); ++ci) {
#pragma unroll
                for (int s = 0; s < KW; ++s) {
#pragma unroll
                    for (int j = 0; j < CELL_W; ++j) {
                        const float* corner =
                            &pixels[ci][oy * CELL_H * STRIDE_H][place(j * STRIDE_W + s * DILATION_W)] + ox;
                        float v[REACH];
#pragma unroll
                        for (int i = 0; i < REACH; ++i) v[i] = corner[i * (APART * LANE)];
#pragma unroll
                        for (int r = 0; r < KH; ++r) {
                            const float4 u = filters[(ci * KH + r) * KW + s][quad];
#pragma unroll
                            for (int i = 0; i < TALL; ++i) {
                                const float p = v[i * STRIDE_H + r * DILATION_H];
                                sum[i][j][0] += u.x * p;
                                sum[i][j][1] += u.y * p;
                                sum[i][j][2] += u.z * p;
                                sum[i][j][3] += u.w * p;
                            }
                        }
                    }
                    if (LARGE && (s + 1) % COLUMNS_OF_PIECE == 0 && s + 1 < KW) wholes.take(&sum[0][0][0], pieces++);
                }
                if (LONG && ++done % OF_PIECE == 0) wholes.take(&sum[0][0][0], pieces++);
            }
            if (LONG || LARGE) wholes.give(&sum[0][0][0], pieces);
#if SHARES > 1
#pragma unroll
            for (int i = 0; i < TALL * CELL_W; ++i) {
                const float* of_four = sum[i / CELL_W][i % CELL_W];
                parts[share][i][e % WORK] = make_float4(of_four[0], of_four[1], of_four[2], of_four[3]);
            }
        }
        __syncthreads();
        for (int e = threadIdx.x; e < WORK; e += THREADS) {
            const int quad = e / STRIPS, strip = e % STRIPS;
            const int oy = strip / OUT_W, ox = strip % OUT_W;
            sums_t sum = {};
#pragma unroll
            for (int share = 0; share < SHARES; ++share) {  // in the same order each time
#pragma unroll
                for (int i = 0; i < TALL * CELL_W; ++i) {
                    const float4 part = parts[share][i][e];
                    sum[i / CELL_W][i % CELL_W][0] += part.x;
                    sum[i / CELL_W][i % CELL_W][1] += part.y;
                    sum[i / CELL_W][i % CELL_W][2] += part.z;
                    sum[i / CELL_W][i % CELL_W][3] += part.w;
                }
            }
#endif
#pragma unroll
            for (int o = 0; o < FOUR; ++o) {
                const int map = first_map + quad * FOUR + o;
                if (map >= OUTPUTS) break;
#pragma unroll
                for (int d = 0; d < DOWN; ++d) {
                    const int row = first_row + oy + d;
                    if (oy + d < BAND && row < OUT_H) {
                        float cell[CELL_H][CELL_W];
#pragma unroll
                        for (int i = 0; i < CELL_H * CELL_W; ++i)
                            cell[i / CELL_W][i % CELL_W] = sum[d * CELL_H + i / CELL_W][i % CELL_W][o];
                        finish(cell, image, g * OUTPUTS + map, row, ox);
                    }
                }
            }
        }
        __syncthreads();  // before the next image takes the place of this one
    }
}
