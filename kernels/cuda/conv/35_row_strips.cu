/*
op = "conv"
rung = 35
name = "row_strips"
idea = "Rows of the image are kept in shared memory with the columns of each remainder by the stride together, so that what neighbouring outputs multiply lies side by side: a thread reads a few values, and multiplies them by every tap of the row out of registers, without working out a single address."
launch = "conv_row_strips"
side = true
packs = true
overlaps = true
[defines]
STAGES = 3    # rows of the window, of one channel, in shared memory at once
PAIRS = 7     # threads across: 8 outputs of a row each; this line and those below: the launch fits them to the image
BAND = 3      # rows of outputs a block
GROUPS = 12   # threads one above the other: 8 maps each
LEAD = 252    # elements from one row in shared memory to the next
KH = 11
KW = 11
STRIDE = 4    # from one output of a row to the next
AFTER = 0     # the activation
AT_ONCE = 1   # outputs of a row written at once: 4 where every row of y begins on 16 bytes
[needs]
compute_capability = "8.0"
dilation = 1
*/
#include "common.cuh"
#include "async.cuh"
#include "overlap.cuh"
#include "sums.cuh"

#define MAPS 8  // of a thread
#define THREADS (PAIRS * BAND * GROUPS)
#define TILE_MAPS (GROUPS * MAPS)
#define TAPS ((KW + STRIDE - 1) / STRIDE)     // of a row of the window that lie in one phase, at most
#define QUADS ((TAPS + 6) / 4)                // reads of four elements that four outputs take of a phase
#define PHASE (8 * PAIRS + 4 * (QUADS - 1))   // elements of a phase: the columns of one remainder by STRIDE
#define SPAN ((8 * PAIRS - 1) * STRIDE + KW)  // columns under the outputs of a block
#define COPIES ((BAND * SPAN + THREADS - 1) / THREADS)
#define STAGE (BAND * LEAD + KW * TILE_MAPS)  // elements of a stage: rows of the image, then the weights of their taps
#define BLOCKS (512 / ((THREADS + 31) / 32 * 32))  // at once: each thread has 128 registers

static_assert(LEAD >= STRIDE * PHASE && LEAD % 4 == 0, "the phases of a row must fit, and be read four elements at once");

extern __shared__ float4 dynamic[];

// weight is packed, (group, part of the maps, channel, row and column of the window, TILE_MAPS). A step of the sum is a
// channel's row of the window.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    wait_for_previous();
    x = written(x);
    float* const stages = (float*)dynamic;
    const int channels = p.c / p.group, outputs = p.m / p.group, steps = channels * KH;
    const int parts = (outputs + TILE_MAPS - 1) / TILE_MAPS;
    const int g = blockIdx.y / parts, first_map = blockIdx.y % parts * TILE_MAPS;
    const int down = (p.out_h + BAND - 1) / BAND, across = (p.out_w + 8 * PAIRS - 1) / (8 * PAIRS);
    const int image = blockIdx.x / (down * across);
    const int first_row = blockIdx.x / across % down * BAND, first_column = blockIdx.x % across * (8 * PAIRS);

    // Lanes side by side are pairs across, then rows of the band.
    const int thread = threadIdx.x, pair = thread % PAIRS, row = thread / PAIRS % BAND, maps = thread / (PAIRS * BAND);

    // The copies of this thread, the same ones in every step: an element from `from` of a channel's first row of the
    // window to `to` of a stage. One above or below the image lies where no row is, as does one left or right of it.
    int to[COPIES], from[COPIES], at_row[COPIES];
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
        const int e = thread + i * THREADS, r = e / SPAN, column = e % SPAN;
        const int in_row = (first_row + r) * p.stride_h - p.pad_top, in_column = first_column * STRIDE + column - p.pad_left;
        to[i] = r * LEAD + column % STRIDE * PHASE + column / STRIDE;
        from[i] = in_row * p.w + in_column;
        at_row[i] = (unsigned)in_column < (unsigned)p.w ? in_row : -0x40000000;
    }
    const float* plane = x + ((index_t)image * p.c + g * channels) * p.h * p.w;
    const float* taps = weight + (index_t)(g * parts + blockIdx.y % parts) * steps * (KW * TILE_MAPS);
    int window_row = 0;
    auto fetch = [&](int step, int slot) {
        if (step < steps) {
            float* rows = stages + slot * STAGE;
#pragma unroll
            for (int i = 0; i < COPIES; ++i) {
                if (BAND * SPAN % THREADS != 0 && thread + i * THREADS >= BAND * SPAN) break;
                const bool inside = (unsigned)(at_row[i] + window_row) < (unsigned)p.h;
                copy_async(rows + to[i], inside ? plane + from[i] + window_row * p.w : x, inside);
            }
            for (int e = thread; e < KW * TILE_MAPS / 4; e += THREADS)
                copy_async_16(rows + BAND * LEAD + 4 * e, taps + 4 * e);
            taps += KW * TILE_MAPS;
            if (++window_row == KH) window_row = 0, plane += (index_t)p.h * p.w;
        }
        close_group();  // even where nothing is left, so that their number tells which have arrived
    };

    float sum[MAPS][8] = {};
    Wholes<MAPS * 8> wholes(p.c);
    constexpr int OF_PIECE = KW < wholes.TERMS ? wholes.TERMS / KW : 1;  // steps
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) fetch(ahead, ahead);
    for (int step = 0, slot = 0; step < steps; ++step, slot = slot + 1 == STAGES ? 0 : slot + 1) {
        // Of each thread's copies this step's have arrived; after the barrier everybody's, and the stage of the step
        // before has been multiplied by all, so that its place is free.
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        fetch(step + STAGES - 1, slot == 0 ? STAGES - 1 : slot - 1);
        const float* values = stages + slot * STAGE + row * LEAD + 4 * pair;
        const float* factors = stages + slot * STAGE + BAND * LEAD + maps * MAPS;
#pragma unroll
        for (int phase = 0; phase < (STRIDE < KW ? STRIDE : KW); ++phase) {
            float v[2][4 * QUADS];
#pragma unroll
            for (int q = 0; q < 2; ++q)
#pragma unroll
                for (int i = 0; i < QUADS; ++i) {
                    const float4 four = *(const float4*)(values + phase * PHASE + q * 4 * PAIRS + 4 * i);
                    v[q][4 * i] = four.x, v[q][4 * i + 1] = four.y, v[q][4 * i + 2] = four.z, v[q][4 * i + 3] = four.w;
                }
#pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
                const int s = phase + tap * STRIDE;
                if (s >= KW) break;
                const float4 low = *(const float4*)(factors + s * TILE_MAPS);
                const float4 high = *(const float4*)(factors + s * TILE_MAPS + 4);
                const float w[MAPS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int m = 0; m < MAPS; ++m)
#pragma unroll
                    for (int i = 0; i < 8; ++i) sum[m][i] += w[m] * v[i / 4][tap + i % 4];
            }
        }
        if ((step + 1) % OF_PIECE == 0) wholes.take(&sum[0][0], step / OF_PIECE);
    }
    wholes.give(&sum[0][0], steps / OF_PIECE);
    let_next_begin();

    const int oy = first_row + row;
    if (oy >= p.out_h) return;
#pragma unroll
    for (int m = 0; m < MAPS; ++m) {
        const int om = first_map + maps * MAPS + m;
        if (om >= outputs) return;
        const float shift = bias ? bias[g * outputs + om] : 0.0f;
        float* out = y + (((index_t)image * p.m + g * outputs + om) * p.out_h + oy) * p.out_w;
#pragma unroll
        for (int i = 0; i < 8; i += AT_ONCE) {
            const int ox = first_column + 4 * (pair + i / 4 * PAIRS) + i % 4;
            if (ox >= p.out_w) continue;
            if (AT_ONCE == 4)
                *(float4*)(out + ox) =
                    make_float4(activate(sum[m][i] + shift, AFTER), activate(sum[m][(i + 1) % 8] + shift, AFTER),
                                activate(sum[m][(i + 2) % 8] + shift, AFTER), activate(sum[m][(i + 3) % 8] + shift, AFTER));
            else
                out[ox] = activate(sum[m][i] + shift, AFTER);
        }
    }
}
