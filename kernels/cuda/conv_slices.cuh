// A convolution of small images of many channels at small batches, where few tiles would be left to a device
// and gathering patches takes longer than multiplying them. A block has STRIPS · 16 channels of y, a band of
// BAND rows of one image, and one slice of the channels of x with all taps of the window. It keeps in shared
// memory its weights, which are fetched while the kernel in front still runs, and the part of the image under
// its band, once: every tap reads the same pixels, shifted, and no patch is laid out. The RANKS blocks of a
// cluster have the slices of the same sum: each tells the others its sums of their share of y, and adds up its
// own share, always in the same order.
//
// Channels of y are the rows of mma.sync, 16 a strip: weights lie packed as its lanes take them
// (packing.strips). Pixels are its columns, eight a tile, TILES a warp, numbered along the rows of the band. A
// pixel's channels lie side by side in chunks of 16 bytes, two a step of the sum, from pixel to pixel an odd
// number of chunks: so eight neighbouring pixels lie in different banks.
//
// With OPERANDS = 2 a number is the sum of two float16 (halves_split.cuh), scaled by the largest number of the
// block's own part of the image: of every step the big ones' two chunks lie first, then the small ones'.
// Included behind the rung's struct Kind.
#pragma once
#include "async.cuh"
#include "cluster.cuh"
#include "common.cuh"
#include "halves_split.cuh"
#include "matrices.cuh"
#include "mma_sync.cuh"
#include "nhwc.cuh"
#include "overlap.cuh"
#include "warp.cuh"

#ifndef OPERANDS
#define OPERANDS 1
#endif
#define THREADS (LANES * WARPS)
#define STRIP 16    // channels of y that an instruction multiplies
#define ACROSS 8    // and pixels
#define OF_STEP 2   // chunks of a step
#if RANKS > 1
#define TEAM __cluster_dims__(RANKS, 1, 1)
#else
#define TEAM
#endif

constexpr int least_of(int a, int b) { return a < b ? a : b; }
constexpr int divided_up(int a, int b) { return (a + b - 1) / b; }

constexpr int CHUNKS = divided_up(C, EACH);  // of a pixel and group
constexpr int ALL_STEPS = divided_up(CHUNKS, OF_STEP);
constexpr int STEPS = divided_up(ALL_STEPS, RANKS);  // of a slice, at most
constexpr int WIDE = OF_STEP * STEPS;        // chunks of a pixel and slice
constexpr int LEAD = WIDE * OPERANDS + 1;    // chunks from pixel to pixel
constexpr int TAPS = KH * KW, OF_TAP = OPERANDS * LANES;  // chunks of a strip's weights
constexpr int COLUMNS = STRIP * STRIPS, RUN = STEPS * TAPS * OF_TAP;

constexpr int ROWS_READ = (BAND - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1;
constexpr int COLUMNS_READ = (OUT_W - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int PIXELS_READ = ROWS_READ * COLUMNS_READ;
// Chunks of a row, and of them a thread's.
constexpr int OF_ROW = COLUMNS_READ * WIDE, PIECES = divided_up(OF_ROW, THREADS);
constexpr int ROWS_TOGETHER = PIECES > 1 ? 1 : least_of(THREADS / OF_ROW, ROWS_READ);
constexpr int TURNS = divided_up(ROWS_READ, ROWS_TOGETHER);
constexpr int TARGET_TURN = ROWS_TOGETHER * COLUMNS_READ * LEAD;  // chunks from what a thread brings to its next
constexpr int AT_ONCE = least_of(64 / EACH, TURNS);  // chunks that a thread fetches together out of NCHW
constexpr int COPIES = divided_up(STRIPS * RUN, THREADS);  // of weights, of a thread
constexpr int UNROLLED_COPIES = least_of(COPIES, 16), UNROLLED_TURNS = least_of(TURNS, 16);

constexpr int PIXELS = BAND * OUT_W, AREA = OUT_H * OUT_W, OF_BAND = divided_up(PIXELS, ACROSS);  // tiles
constexpr int BUSY = divided_up(OF_BAND, TILES);  // warps that multiply; the rest help to fetch and to finish
// Of a warp, 16 channels by 8 pixels each; block r of the cluster finishes every RANKS-th of each warp's from r.
constexpr int FRAGMENTS = TILES * STRIPS, EACH_TOLD = divided_up(FRAGMENTS, RANKS);
constexpr int TOLD = BUSY * EACH_TOLD, EACH_FINISHED = divided_up(TOLD, WARPS);  // by a block, and a warp
// Blocks to leave registers for: a block of the next kernel, too, which fetches its weights meanwhile.
constexpr int RESIDENT = WARPS <= 8 && OPERANDS * FRAGMENTS <= 12 ? 2 : 1;
constexpr int LOADS = OPERANDS > 1 ? TILES : TILES / 2;  // four matrices each: of one tile, or of two
constexpr int ROWS_AT_ONCE = TAPS <= 25 ? KH : 1;        // of the window, whose instructions are written out
constexpr int STEPS_AT_ONCE = TAPS < 4 ? least_of(4, STEPS) : 1;

constexpr int IMAGE_AT = STRIPS * RUN, TOLD_AT = IMAGE_AT + PIXELS_READ * LEAD;
constexpr int SHIFT_AT = TOLD_AT + (RANKS > 1 ? RANKS * TOLD * LANES : 0);
constexpr int NBYTES = 16 * SHIFT_AT + 4 * (OPERANDS * COLUMNS + (OPERANDS > 1 ? WARPS : 0));
static_assert(BUSY <= WARPS, "every tile has a warp");
static_assert(OPERANDS > 1 || TILES % 2 == 0, "two tiles are read at once");
static_assert(NBYTES == KEPT_NBYTES, "the launch counts what lies in shared memory alike");

extern __shared__ __align__(128) uint4 kept[];

// Where a chunk of a pixel's slice lies.
__device__ __forceinline__ int place_of(int chunk) {
    return OPERANDS > 1 ? chunk / OF_STEP * (OPERANDS * OF_STEP) + chunk % OF_STEP : chunk;
}

// What a block has of y: from which channel of a group on, and from which pixel of an image on.
struct Place {
    int group, first_output, image, first_pixel;
};

// Writes four finished sums of a fragment of a warp's: channels lane / 4 and 8 more of a strip, of the tile's
// pixels 2 (lane % 4) and the next.
__device__ __forceinline__ void write_fragment(float4 sum, const float* shift, float* y, const ConvParams& p,
                                               const Place& of, int warp, int fragment) {
    const int lane = threadIdx.x % LANES, outputs = p.m / p.group;
    const int own = fragment % STRIPS * STRIP + lane / 4, o = of.first_output + own;
    const int within = (warp * TILES + fragment / STRIPS) * ACROSS + lane % 4 * 2;
    const int pixel = of.first_pixel + within;
    auto answer = [&](float v, int e) {
        return o + e < outputs ? activate(v + shift[own + e], AFTER) : 0.0f;  // what fills a chunk up is zero
    };
    const float v[4] = {answer(sum.x, 0), answer(sum.y, 0), answer(sum.z, 8), answer(sum.w, 8)};
    auto real = [&](int i) { return within + i < PIXELS && pixel + i < AREA; };
    if (!WRITES) {
        float* to = y + ((index_t)of.image * p.m + of.group * outputs + o) * AREA + pixel;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (o + e / 2 * 8 < outputs && real(e % 2)) to[(index_t)(e / 2 * 8) * AREA + e % 2] = v[e];
        return;
    }
    // Lanes of neighbouring channels exchange: each then has both channels of one of the two pixels.
    const int odd = lane / 4 % 2, every = chunks_of(p.m) * EACH;
    const int filled = of.group == p.group - 1 ? every - of.group * outputs : outputs;
    const float low = __shfl_xor_sync(ALL_LANES, odd ? v[0] : v[1], 4);
    const float high = __shfl_xor_sync(ALL_LANES, odd ? v[2] : v[3], 4);
    const float pairs[2][2] = {{odd ? low : v[0], odd ? v[1] : low}, {odd ? high : v[2], odd ? v[3] : high}};
    const index_t place = ((index_t)of.image * AREA + pixel + odd) * every + of.group * outputs + o - odd;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        if (!real(odd) || o - odd + e * 8 >= filled) continue;
        if (EACH == 8)
            *reinterpret_cast<unsigned*>(reinterpret_cast<half_bits*>(y) + place + e * 8) =
                to_halves(pairs[e][0], pairs[e][1]);
        else
            *reinterpret_cast<uint2*>(y + place + e * 8) =
                make_uint2(to_tf32(pairs[e][0]), to_tf32(pairs[e][1]));
    }
}

// grid = (groups · blocks of channels · RANKS, bands, images).
extern "C" __global__ void TEAM __launch_bounds__(THREADS, RESIDENT)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    let_next_begin();
    uint4* const strips = kept;
    float4* const told = reinterpret_cast<float4*>(kept + TOLD_AT);
    float* const shift = reinterpret_cast<float*>(kept + SHIFT_AT);
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int rank = blockIdx.x % RANKS, outputs = p.m / p.group, across = (outputs + COLUMNS - 1) / COLUMNS;
    const int group = blockIdx.x / RANKS / across, first_strip = blockIdx.x / RANKS % across * STRIPS;
    const int first_output = first_strip * STRIP, image = blockIdx.z, first_row = blockIdx.y * BAND;
    const Place of = {group, first_output, image, first_row * OUT_W};
    // This block's slice of the steps, their number the same for all or one less.
    const int begin = ALL_STEPS * rank / RANKS, steps = ALL_STEPS * (rank + 1) / RANKS - begin;

#if RANKS > 1
    arrive_at_cluster();  // from when on the others may tell this block something
#endif
    // What no kernel in front writes.
    const uint4* filters = reinterpret_cast<const uint4*>(weight);
    const int all = across * STRIPS;  // strips of a group
#pragma unroll UNROLLED_COPIES
    for (int i = 0; i < COPIES; ++i) {
        const int e = thread + i * THREADS, strip = e / RUN, within = e % RUN;
        if (e < STRIPS * RUN && within < steps * TAPS * OF_TAP)
            copy_async_16(strips + e,
                          filters + within + ((index_t)(group * all + first_strip + strip) * ALL_STEPS + begin) *
                                                 (TAPS * OF_TAP));
    }
    // Where this lane's rows of matrices begin: pixels of two tiles by two chunks, or of one by four.
    int at[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; ++j) {
        const int tile = warp * TILES + (OPERANDS > 1 ? j : 2 * j + lane / 16);
        const int pixel = min(tile * ACROSS + lane % 8, PIXELS - 1);
        at[j] = worked_out((pixel / OUT_W * STRIDE_H * COLUMNS_READ + pixel % OUT_W * STRIDE_W) * LEAD +
                           (OPERANDS > 1 ? lane / 8 : lane / 8 % 2));
    }
    // The part of the image under the band, of the slice's channels, chunk by chunk; zeros around the image and
    // behind its channels. A thread brings the same chunk of a row, of every ROWS_TOGETHER-th row: out of NHWC
    // neighbours bring neighbouring chunks, out of NCHW neighbouring pixels.
    const int top = first_row * STRIDE_H - PAD_TOP, every = READS ? chunks_of(p.c) : 1;
    const int plane = READS ? image * H * W : (image * p.c + group * C) * (H * W);
    const int first_chunk = begin * OF_STEP + (READS ? group * CHUNKS : 0);
    auto place_in_row = [&](int piece) { return PIECES > 1 ? piece * THREADS + thread : thread % OF_ROW; };
    auto column_of = [&](int piece) {
        return READS ? place_in_row(piece) / WIDE : place_in_row(piece) % COLUMNS_READ;
    };
    auto chunk_of = [&](int piece) {
        return READS ? place_in_row(piece) % WIDE : place_in_row(piece) / COLUMNS_READ;
    };
    const int own_row = PIECES > 1 ? 0 : thread / OF_ROW;
    // Where what this thread brings of its first row begins in x, and where it is to lie.
    auto source = [&](int piece) {
        const int rest = (first_chunk + chunk_of(piece)) * (READS ? 1 : EACH * H * W);
        return (plane + (top + own_row) * W + column_of(piece) - PAD_LEFT) * every + rest;
    };
    auto target = [&](int piece) {
        return IMAGE_AT + (own_row * COLUMNS_READ + column_of(piece)) * LEAD + place_of(chunk_of(piece));
    };
    const int own_source = worked_out(source(0)), own_target = worked_out(target(0));
    auto brings = [&](int piece, int turn) {
        return own_row + turn * ROWS_TOGETHER < ROWS_READ && own_row < ROWS_TOGETHER &&
               place_in_row(piece) < OF_ROW;
    };
    auto inside = [&](int piece, int turn) {
        return (unsigned)(column_of(piece) - PAD_LEFT) < (unsigned)W &&
               (unsigned)(top + own_row + turn * ROWS_TOGETHER) < (unsigned)H &&
               begin * OF_STEP + chunk_of(piece) < CHUNKS;
    };
#pragma unroll 1
    for (int e = thread; e < COLUMNS; e += THREADS) {
        const int o = first_output + e;
        shift[e] = bias && o < outputs ? bias[group * outputs + o] : 0.0f;
#if OPERANDS > 1
        // What brings a channel's products back lies behind all weights.
        const uint4* behind = filters + (index_t)p.group * all * ALL_STEPS * (TAPS * OF_TAP);
        shift[COLUMNS + e] = reinterpret_cast<const float*>(behind)[group * all * STRIP + o];
#endif
    }
    wait_for_previous();
    x = written(x);

    float most = 0.0f;
#pragma unroll 1
    for (int piece = 0; piece < PIECES; ++piece) {
        const int from = PIECES > 1 ? source(piece) : own_source;
        const int to = PIECES > 1 ? target(piece) : own_target;
        if (READS) {
            const uint4* chunks = reinterpret_cast<const uint4*>(x);
#pragma unroll UNROLLED_TURNS
            for (int i = 0; i < TURNS; ++i) {
                const bool there = inside(piece, i);
                const int place = there ? from + i * (ROWS_TOGETHER * W) * every : 0;
                if (brings(piece, i)) copy_async_16(kept + to + i * TARGET_TURN, chunks + place, there);
            }
            continue;
        }
        const int left = C % EACH == 0 ? EACH : C - (begin * OF_STEP + chunk_of(piece)) * EACH;
#pragma unroll UNROLLED_TURNS
        for (int first = 0; first < TURNS; first += AT_ONCE) {
            float v[AT_ONCE][EACH];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                const bool there = brings(piece, first + i) && inside(piece, first + i);
#pragma unroll
                for (int e = 0; e < EACH; ++e)
                    v[i][e] =
                        there && e < left ? x[from + (first + i) * (ROWS_TOGETHER * W) + e * (H * W)] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                if (!brings(piece, first + i)) continue;
                uint4* const at_last = kept + to + (first + i) * TARGET_TURN;
#if OPERANDS > 1
                // As they are, where its two operands will be.
                float4* raw = reinterpret_cast<float4*>(at_last);
                raw[0] = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
                raw[OF_STEP] = make_float4(v[i][4], v[i][5], v[i][6], v[i][7]);
#pragma unroll
                for (int e = 0; e < EACH; ++e) most = fmaxf(most, finite_magnitude(v[i][e]));
#else
                *at_last = to_chunk(v[i]);
#endif
            }
        }
    }
#if OPERANDS > 1
    float* const of_warps = shift + OPERANDS * COLUMNS;
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, d));
    if (lane == 0) of_warps[warp] = most;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; ++w) most = fmaxf(most, of_warps[w]);
    const float scale = scale_by(most), image_back = scale_back(most);
#pragma unroll 1
    for (int piece = 0; piece < PIECES; ++piece)
#pragma unroll UNROLLED_TURNS
        for (int i = 0; i < TURNS; ++i) {
            if (!brings(piece, i)) continue;
            // What it brought itself.
            uint4* to = kept + (PIECES > 1 ? target(piece) : own_target) + i * TARGET_TURN;
            const float4* raw = reinterpret_cast<const float4*>(to);
            const float4 first = raw[0], second = raw[OF_STEP];
            const float v[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
            split_chunk(v, scale, to[0], to[OF_STEP]);
        }
#endif
    close_group();
    wait_for_all_but<0>();
    __syncthreads();

    float sum[STRIPS][TILES][4] = {};
#if OPERANDS > 1
    float part[STRIPS][TILES][4];
#endif
    // Of a tap and step: chunks of this lane's pixels, and of its channels. The compiler reads the next ahead.
    unsigned pixels[LOADS][4];
    uint4 columns[STRIPS][OPERANDS];
    auto feed = [&](const uint4* own, int step, int r, int s) {
        const int first = IMAGE_AT + step * (OPERANDS * OF_STEP) +
                          (r * DILATION_H * COLUMNS_READ + s * DILATION_W) * LEAD;
#pragma unroll
        for (int k = 0; k < STRIPS; ++k)
#pragma unroll
            for (int i = 0; i < OPERANDS; ++i)
                columns[k][i] = own[k * RUN + (r * KW + s) * OF_TAP + i * LANES];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) load_matrices(pixels[j], kept, first + at[j]);
    };
    // One operand of channels by one of pixels.
    auto multiply = [&](float (&onto)[STRIPS][TILES][4], int of_columns, int of_pixels) {
#pragma unroll
        for (int k = 0; k < STRIPS; ++k)
#pragma unroll
            for (int j = 0; j < TILES; ++j) {
                const unsigned(&loaded)[4] = pixels[OPERANDS > 1 ? j : j / 2];
                const int word = OPERANDS > 1 ? 2 * of_pixels : j % 2 * 2;
                Kind::multiply(onto[k][j], columns[k][of_columns], loaded[word], loaded[word + 1]);
            }
    };
    const bool busy = warp < BUSY;
#pragma unroll STEPS_AT_ONCE
    for (int step = 0; step < (busy ? steps : 0); ++step) {
        const uint4* own = strips + step * (TAPS * OF_TAP) + lane;
#pragma unroll 1
        for (int rows = 0; rows < KH; rows += ROWS_AT_ONCE) {
#pragma unroll
            for (int t = 0; t < ROWS_AT_ONCE * KW; ++t) {
                feed(own, step, rows + t / KW, t % KW);
#if OPERANDS > 1
                // Tensor cores cut off what they add, where float32 rounds: they add up a row of taps alone.
                if (t % KW == 0) {
#pragma unroll
                    for (int k = 0; k < STRIPS; ++k)
#pragma unroll
                        for (int j = 0; j < TILES; ++j)
#pragma unroll
                            for (int e = 0; e < 4; ++e) part[k][j][e] = 0.0f;
                }
                multiply(part, 1, 0);
                multiply(part, 0, 1);
                multiply(part, 0, 0);
                if (t % KW == KW - 1) {
#pragma unroll
                    for (int k = 0; k < STRIPS; ++k)
#pragma unroll
                        for (int j = 0; j < TILES; ++j)
#pragma unroll
                            for (int e = 0; e < 4; ++e) sum[k][j][e] += part[k][j][e];
                }
#else
                multiply(sum, 0, 0);
#endif
            }
        }
    }

#if RANKS > 1
    cluster_arrived();
#endif
#pragma unroll
    for (int j = 0; j < TILES; ++j)
#pragma unroll
        for (int k = 0; k < STRIPS; ++k) {
            float4 v = make_float4(sum[k][j][0], sum[k][j][1], sum[k][j][2], sum[k][j][3]);
#if OPERANDS > 1
            const float* back = shift + COLUMNS + k * STRIP + lane / 4;
            v.x = v.x * back[0] * image_back, v.y = v.y * back[0] * image_back;
            v.z = v.z * back[8] * image_back, v.w = v.w * back[8] * image_back;
#endif
            const int fragment = j * STRIPS + k;
#if RANKS > 1
            float4* to = told + (rank * TOLD + warp * EACH_TOLD + fragment / RANKS) * LANES + lane;
            if (busy) put_to_block(to, fragment % RANKS, v);
#else
            if (busy) write_fragment(v, shift, y, p, of, warp, fragment);
#endif
        }
#if RANKS > 1
    wait_for_cluster();  // all sums have been told: nobody touches another's memory from here on
    float4 finished[EACH_FINISHED];
#pragma unroll
    for (int i = 0; i < EACH_FINISHED; ++i) {
        const float4* parts = told + min(warp + i * WARPS, TOLD - 1) * LANES + lane;
        float4 v = parts[0];
#pragma unroll
        for (int r = 1; r < RANKS; ++r) {
            const float4 more = parts[r * (TOLD * LANES)];
            v.x += more.x, v.y += more.y, v.z += more.z, v.w += more.w;
        }
        finished[i] = v;
    }
#pragma unroll
    for (int i = 0; i < EACH_FINISHED; ++i) {
        const int slot = warp + i * WARPS, fragment = slot % EACH_TOLD * RANKS + rank;
        if (slot < TOLD && fragment < FRAGMENTS)
            write_fragment(finished[i], shift, y, p, of, slot / EACH_TOLD, fragment);
    }
#endif
}
