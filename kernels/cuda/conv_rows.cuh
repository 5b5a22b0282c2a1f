// A convolution of few channels as a matrix product out of rows of the image itself. A block lives as long as the kernel, and
// keeps all weights of its channels in shared memory (wgmma.cuh says how they lie), and beside them the rows of the image
// under PIXELS pixels of y, the channels of a column side by side: so what a window's row multiplies is a run of
// neighbouring words, which lanes hand to the tensor cores out of registers (wgmma_fed.cuh). Patches are laid out
// nowhere: a value of x is fetched once for each block that needs it. Rows lie in a ring, row r at r % RING, counted from
// the first row of padding: the next pixels bring only the rows that are new to it.
//
// Steps of the sum come in quartets, four words of which each lane has one: of every row of the window the whole quartets,
// then of what these leave over the same word of four rows (packing.row_quartets). A turn is PIXELS pixels of an image.
//
// With OPERANDS = 2 a number is the sum of two float16 (halves_split.cuh): their rows lie in two rings.
// Included behind the rung's struct Kind.
#pragma once
#include "async.cuh"
#include "common.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"
#include "warp.cuh"
#include "wgmma_fed.cuh"

#ifndef OPERANDS
#define OPERANDS 1
#endif
#if OPERANDS > 1
#define SHARES_IN(workspace, p) (workspace)
#include "conv_largest.cuh"
#endif

#define THREADS (GROUP * GROUPS)
#define WARPS (THREADS / LANES)
#define FOURS 4            // words of a quartet
#define MOST_HELD 32       // values of the next turn's rows that a thread holds while it multiplies

constexpr int least_of(int a, int b) { return a < b ? a : b; }

constexpr int VALUES = EACH == 8 ? 2 : 1;  // of a word
// Channels of a column in shared memory: one more, of zeros, where pixels would begin within a word.
constexpr int DEEP = STRIDE_W * C % VALUES ? C + 1 : C;
constexpr int RUN = (KW * DEEP + VALUES - 1) / VALUES;  // words of a window's row
constexpr bool HALF_A_WORD = KW * DEEP % VALUES;        // whether the last of them is of the next column by half
constexpr int WHOLE = RUN / FOURS, REST = RUN % FOURS, TALL = (KH + FOURS - 1) / FOURS;
constexpr int QUARTETS = KH * WHOLE + REST * TALL;
constexpr int STEPS = (QUARTETS + 1) / 2;  // instructions of two quartets
constexpr int SLAB_STEPS = CHUNKS / STEPS_CHUNKS / OPERANDS;
constexpr int SLABS = (STEPS + SLAB_STEPS - 1) / SLAB_STEPS;
constexpr int BATCHES = (STEPS + BATCH - 1) / BATCH;

constexpr int PIXELS = GROUP_ROWS * GROUPS, AREA = OUT_H * OUT_W, TURNS = (AREA + PIXELS - 1) / PIXELS;
constexpr int SPANNED = PIXELS % OUT_W ? (PIXELS + OUT_W - 2) / OUT_W + 1 : PIXELS / OUT_W;  // rows of y, at most
constexpr int RING = (least_of(SPANNED, OUT_H) - 1) * STRIDE_H + KH;
constexpr int SPAN = (OUT_W - 1) * STRIDE_W + KW;  // columns under windows, padding among them
// Words from row to row: an odd number, so that four rows' are in different banks.
constexpr int LEAD = (SPAN * DEEP + VALUES - 1) / VALUES | 1;
constexpr int RING_WORDS = RING * LEAD;
constexpr int NBYTES = 16 * SLABS * TILE_COLUMNS * CHUNKS + 4 * OPERANDS * RING_WORDS + 4 * OPERANDS * TILE_COLUMNS;
#if OPERANDS > 1
static_assert(TOGETHER % BATCH == 0, "what is added up alone begins with a batch");
#endif
static_assert(NBYTES == KEPT_NBYTES, "the launch counts what lies in shared memory alike");

// Rows are fetched a channel of one at a time, a strip, by a warp, neighbouring lanes neighbouring columns.
constexpr int COLUMNS_READ = least_of(W, SPAN - PAD_LEFT);
constexpr int PER_LANE = (COLUMNS_READ + LANES - 1) / LANES;
constexpr int NEW_STRIPS = (PIXELS + OUT_W - 1) / OUT_W * STRIDE_H * C;  // of a turn that follows one of its image
constexpr int HELD = least_of((NEW_STRIPS + WARPS - 1) / WARPS, MOST_HELD / PER_LANE);  // of a warp

extern __shared__ __align__(1024) uint4 slabs[];

// The strips that a turn brings: rows from `row` on, of an image.
struct Strips {
    int image, row, count;
    __device__ __forceinline__ static int end_row(int place) {  // behind the last row under its pixels
        return (least_of((place + 1) * PIXELS, AREA) - 1) / OUT_W * STRIDE_H + KH;
    }
    // anew: nothing of what the turn before brought is of use.
    __device__ __forceinline__ Strips(int turn, bool anew) {
        image = turn / TURNS;
        const int place = turn % TURNS, first = place * PIXELS / OUT_W * STRIDE_H;
        row = anew || place == 0 ? first : max(first, end_row(place - 1));
        count = (end_row(place) - row) * C;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const ConvParams p) {
    let_next_begin();
    unsigned* const ring = reinterpret_cast<unsigned*>(slabs + SLABS * TILE_COLUMNS * CHUNKS);
    float* const shift = reinterpret_cast<float*>(ring + OPERANDS * RING_WORDS);
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int first_output = blockIdx.y * TILE_COLUMNS, wide = gridDim.y * TILE_COLUMNS;
    const int outputs = min(TILE_COLUMNS, p.m - first_output);

    // What no kernel in front writes: the weights, the columns of padding.
    const uint4* filters = reinterpret_cast<const uint4*>(weight);
    for (int e = thread; e < SLABS * TILE_COLUMNS * CHUNKS; e += THREADS) {
        const int slab = e / (TILE_COLUMNS * CHUNKS), within = e % (TILE_COLUMNS * CHUNKS);
        copy_async_16(slabs + e, filters + ((index_t)slab * wide + first_output) * CHUNKS + within);
    }
    close_group();
    for (int e = thread; e < OPERANDS * RING_WORDS; e += THREADS) ring[e] = 0;
    for (int o = thread; o < TILE_COLUMNS; o += THREADS) {
        shift[o] = bias && o < outputs ? bias[first_output + o] : 0.0f;
#if OPERANDS > 1
        shift[TILE_COLUMNS + o] = reinterpret_cast<const float*>(filters + (index_t)SLABS * wide * CHUNKS)[first_output + o];
#endif
    }
    wait_for_all_but<0>();
    show_to_background();
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    __syncthreads();

    auto fetch = [&](const Strips& strips, int strip, float (&v)[PER_LANE]) {
        const int channel = strip % C, iy = strips.row + strip / C - PAD_TOP;
        const bool inside = strip < strips.count && (unsigned)iy < (unsigned)H;
        const float* from = x + ((index_t)(strips.image * C + channel) * H + (inside ? iy : 0)) * W + lane;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i)
            v[i] = inside && lane + i * LANES < COLUMNS_READ ? from[i * LANES] : 0.0f;
    };
    auto put = [&](const Strips& strips, int strip, const float (&v)[PER_LANE], float scale) {
        if (strip >= strips.count) return;
        unsigned* row = ring + (strips.row + strip / C) % RING * LEAD;
        const int first = (PAD_LEFT + lane) * DEEP + strip % C;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            if (lane + i * LANES >= COLUMNS_READ) break;
            const int at = first + i * LANES * DEEP;
#if OPERANDS > 1
            const float value = v[i] * scale;
            const half_bits big = (half_bits)to_halves(value, 0.0f);
            reinterpret_cast<half_bits*>(row)[at] = big;
            reinterpret_cast<half_bits*>(row + RING_WORDS)[at] = (half_bits)to_halves(value - half_to_float(big), 0.0f);
#else
            reinterpret_cast<Kind::Cell*>(row)[at] = Kind::cell(v[i]);
#endif
        }
    };
    auto scale_of = [&](int image) {
#if OPERANDS > 1
        return scale_by(largest(workspace, image));
#else
        return 1.0f;
#endif
    };
    auto bring = [&](const Strips& strips, int strip, float scale) {
        for (; strip < strips.count; strip += WARPS) {
            float v[PER_LANE];
            fetch(strips, strip, v);
            put(strips, strip, v, scale);
        }
    };

    // This block's turns.
    const int all = p.n * TURNS;
    const int begin = (int)((index_t)all * blockIdx.x / gridDim.x), end = (int)((index_t)all * (blockIdx.x + 1) / gridDim.x);
    if (begin < end) {
        const Strips strips(begin, true);
        bring(strips, warp, scale_of(strips.image));
    }
    __syncthreads();

    const int word = lane % FOURS, own_pixel = warp * (GROUP_ROWS / (GROUP / LANES)) + lane / FOURS;
    for (int turn = begin; turn < end; ++turn) {
        const bool last = turn + 1 == end;
        const Strips strips(last ? turn : turn + 1, false);
        const float scale = scale_of(strips.image);
        float held[HELD > 0 ? HELD : 1][PER_LANE];
#pragma unroll
        for (int k = 0; k < HELD; ++k)
            if (!last) fetch(strips, warp + k * WARPS, held[k]);

        // Where this lane's two pixels have their windows: in words, of quartets along a row and of those down the rows.
        const int image = turn / TURNS, first_pixel = turn % TURNS * PIXELS + own_pixel;
        int along[2], down[2];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const int pixel = min(first_pixel + 8 * s, AREA - 1);
            const int corner = pixel / OUT_W * STRIDE_H % RING * LEAD + pixel % OUT_W * (STRIDE_W * DEEP) / VALUES;
            along[s] = corner + word;
            down[s] = corner + word * LEAD;
        }
        auto around = [&](int at) { return at >= RING_WORDS ? at - RING_WORDS : at; };
        // This lane's word of a quartet, of one of its pixels.
        auto fed_by = [&](int quartet, int s, int operand) -> unsigned {
            const unsigned* from = ring + operand * RING_WORDS;
            if (quartet >= QUARTETS) return 0;
            if (quartet < KH * WHOLE) {
                const int row = quartet / (WHOLE ? WHOLE : 1), part = quartet % (WHOLE ? WHOLE : 1);
                const unsigned v = from[around(along[s] + row * LEAD) + part * FOURS];
                return HALF_A_WORD && REST == 0 && part == WHOLE - 1 && word == FOURS - 1 ? v & 0xffffu : v;
            }
            const int which = (quartet - KH * WHOLE) / TALL, rows = (quartet - KH * WHOLE) % TALL * FOURS;
            if (rows + word >= KH) return 0;
            const unsigned v = from[around(down[s] + rows * LEAD) + WHOLE * FOURS + which];
            return HALF_A_WORD && which == REST - 1 ? v & 0xffffu : v;
        };

        unsigned fed[2][BATCH][OPERANDS][4];
        auto feed = [&](int batch) {
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
#pragma unroll
                for (int operand = 0; operand < OPERANDS; ++operand)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        if (batch * BATCH + i < STEPS)
                            fed[batch % 2][i][operand][e] = fed_by(2 * (batch * BATCH + i) + e / 2, e % 2, operand);
        };
        auto columns = [&](int step, int operand) {
            return slabs + step / SLAB_STEPS * (TILE_COLUMNS * CHUNKS) +
                   (operand * SLAB_STEPS + step % SLAB_STEPS) * STEPS_CHUNKS;
        };
        float sum[TILE_COLUMNS / 8][4];
#if OPERANDS > 1
        float part[TILE_COLUMNS / 8][4];
#pragma unroll
        for (int j = 0; j < TILE_COLUMNS / 8; ++j)
#pragma unroll
            for (int s = 0; s < 4; ++s) sum[j][s] = 0.0f;
        auto add_part = [&] {
            products_but<0>();
            settle(part);
#pragma unroll
            for (int j = 0; j < TILE_COLUMNS / 8; ++j)
#pragma unroll
                for (int s = 0; s < 4; ++s) sum[j][s] += part[j][s];
        };
#endif
        feed(0);
#pragma unroll
        for (int batch = 0; batch < BATCHES; ++batch) {
            const int first = batch * BATCH;
#if OPERANDS > 1
            // Tensor cores cut off what they add, where float32 rounds: they add up so many steps alone.
            const bool anew = first % TOGETHER == 0;
            if (anew && batch > 0) add_part();
            begin_products();
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
                if (first + i < STEPS) {
                    Fed<TILE_COLUMNS>::multiply(part, fed[batch % 2][i][1], columns(first + i, 0), !anew || i > 0);
                    Fed<TILE_COLUMNS>::multiply(part, fed[batch % 2][i][0], columns(first + i, 1), true);
                }
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
                if (first + i < STEPS)
                    Fed<TILE_COLUMNS>::multiply(part, fed[batch % 2][i][0], columns(first + i, 0), true);
#else
            begin_products();
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
                if (first + i < STEPS)
                    Fed<TILE_COLUMNS>::multiply(sum, fed[batch % 2][i][0], columns(first + i, 0), first + i > 0);
#endif
            close_products();
            if (batch + 1 < BATCHES) {
                products_but<1>();  // which read the words that are written next
                feed(batch + 1);
            }
        }
#if OPERANDS > 1
        add_part();
        const float image_back = scale_back(largest(workspace, image));
#else
        products_but<0>();
        settle(sum);
#endif

        // A lane has two pixels, and of every eight channels two.
        const int every = chunks_of(p.m) * EACH, filled = every - first_output;
        auto answer = [&](int j, int s) {
            const int o = j * 8 + word * 2 + s % 2;
#if OPERANDS > 1
            const float v = sum[j][s] * shift[TILE_COLUMNS + o] * image_back + shift[o];
#else
            const float v = sum[j][s] + shift[o];
#endif
            return activate(v, AFTER);
        };
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pixel = first_pixel + 8 * half;
            const bool real = pixel < AREA;
            if (WRITES == 0) {
                float* to = y + ((index_t)image * p.m + first_output + word * 2) * AREA + pixel;
#pragma unroll
                for (int j = 0; j < TILE_COLUMNS / 8; ++j)
#pragma unroll
                    for (int s = 0; s < 2; ++s)
                        if (real && j * 8 + word * 2 + s < outputs) to[(index_t)(j * 8 + s) * AREA] = answer(j, 2 * half + s);
                continue;
            }
            const index_t place = ((index_t)image * AREA + pixel) * every + first_output;
            // Channels that fill a chunk up are zeros.
            auto shown = [&](int j, int s) { return j * 8 + word * 2 + s < outputs ? answer(j, 2 * half + s) : 0.0f; };
            if (EACH == 8) {
                // Two lanes exchange words: each then has four channels of one eight, and four lanes a whole sector.
#pragma unroll
                for (int j = 0; j < TILE_COLUMNS / 8; j += 2) {
                    const unsigned low = to_halves(shown(j, 0), shown(j, 1));
                    const unsigned high = to_halves(shown(j + 1, 0), shown(j + 1, 1));
                    const unsigned other = __shfl_xor_sync(ALL_LANES, word % 2 ? low : high, 1);
                    const int o = (j + word % 2) * 8 + word / 2 * 4;
                    if (real && o < filled)
                        *reinterpret_cast<uint2*>(reinterpret_cast<half_bits*>(y) + place + o) =
                            word % 2 ? make_uint2(other, high) : make_uint2(low, other);
                }
            } else {
#pragma unroll
                for (int j = 0; j < TILE_COLUMNS / 8; ++j) {
                    const int o = j * 8 + word * 2;
                    if (real && o < filled)
                        *reinterpret_cast<uint2*>(y + place + o) = make_uint2(to_tf32(shown(j, 0)), to_tf32(shown(j, 1)));
                }
            }
        }

        __syncthreads();
        if (!last) {
#pragma unroll
            for (int k = 0; k < HELD; ++k) put(strips, warp + k * WARPS, held[k], scale);
            bring(strips, warp + HELD * WARPS, scale);
        }
        __syncthreads();
    }
}
