// A convolution of small images of many channels at small batches, where few tiles would be left to a device and gathering
// patches takes longer than multiplying them. A block has STRIPS · 16 channels of y, a band of BAND rows of one image, and
// one slice of the channels of x with all taps of the window. It keeps in shared memory its weights, which are fetched
// while the kernel in front still runs, and the part of the image under its band once: every tap reads the same pixels,
// shifted, and no patch is laid out. The RANKS blocks of a cluster have the slices of the same sum: each tells the others
// its sums of their share of y, and adds up its own share, always in the same order.
//
// Channels of y are the rows of mma.sync, 16 a strip: weights lie packed as its lanes take them (packing.strips). Pixels
// are its columns, eight a tile, TILES a warp, numbered along the rows of the band. A pixel's channels lie side by side
// in chunks of 16 bytes, two a step of the sum, from pixel to pixel an odd number of chunks: so eight neighbouring
// pixels lie in different banks.
//
// With OPERANDS = 2 a number is the sum of two float16 (halves_split.cuh), scaled by the largest number of the block's
// own part of the image: of every step the big ones' two chunks lie first, then the small ones'.
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
constexpr int rounded_up(int a, int b) { return (a + b - 1) / b; }

constexpr int CHUNKS = rounded_up(C, EACH);  // of a pixel and group
constexpr int ALL_STEPS = rounded_up(CHUNKS, OF_STEP), STEPS = rounded_up(ALL_STEPS, RANKS);  // STEPS: of a slice, at most
constexpr int WIDE = OF_STEP * STEPS;        // chunks of a pixel and slice
constexpr int LEAD = WIDE * OPERANDS + 1;    // chunks from pixel to pixel
constexpr int TAPS = KH * KW, OF_TAP = OPERANDS * LANES;  // chunks of a strip's weights
constexpr int COLUMNS = STRIP * STRIPS, RUN = STEPS * TAPS * OF_TAP;

constexpr int ROWS_READ = (BAND - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1;
constexpr int COLUMNS_READ = (OUT_W - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int PIXELS_READ = ROWS_READ * COLUMNS_READ;
constexpr int ITEMS = PIXELS_READ * WIDE, EACH_ITEMS = rounded_up(ITEMS, THREADS);  // chunks to bring, and of a thread
constexpr int AT_ONCE = least_of(32 / EACH, EACH_ITEMS);  // that a thread fetches together out of NCHW

constexpr int PIXELS = BAND * OUT_W, AREA = OUT_H * OUT_W, OF_BAND = rounded_up(PIXELS, ACROSS);  // tiles
constexpr int FRAGMENTS = OF_BAND * STRIPS, SLOTS = rounded_up(FRAGMENTS, RANKS);
constexpr int LOADS = OPERANDS > 1 ? TILES : TILES / 2;  // four matrices each: of one tile, or of two
constexpr int ROWS_AT_ONCE = TAPS <= 25 ? KH : 1;        // of the window, whose instructions are written out
constexpr int STEPS_AT_ONCE = TAPS < 4 ? least_of(4, STEPS) : 1;

constexpr int IMAGE_AT = STRIPS * RUN, TOLD_AT = IMAGE_AT + PIXELS_READ * LEAD;
constexpr int SHIFT_AT = TOLD_AT + (RANKS > 1 ? RANKS * SLOTS * LANES : 0);
constexpr int NBYTES = 16 * SHIFT_AT + 4 * (OPERANDS * COLUMNS + (OPERANDS > 1 ? WARPS : 0));
static_assert(OPERANDS > 1 || TILES % 2 == 0, "two tiles are read at once");
static_assert(NBYTES == KEPT_NBYTES, "the launch counts what lies in shared memory alike");

extern __shared__ __align__(128) uint4 kept[];

// Where a chunk of a pixel's slice lies.
__device__ __forceinline__ int place_of(int chunk) {
    return OPERANDS > 1 ? chunk / OF_STEP * (OPERANDS * OF_STEP) + chunk % OF_STEP : chunk;
}

// Writes four finished sums of a fragment: channels lane / 4 and 8 more of a strip, from `first` of y's group on, of the
// tile's pixels 2 (lane % 4) and the next.
__device__ __forceinline__ void write_fragment(float4 sum, const float* shift, float* y, const ConvParams& p, int group,
                                               int first_output, int fragment, int first_pixel, int image) {
    const int lane = threadIdx.x % LANES, outputs = p.m / p.group;
    const int tile = fragment / STRIPS, own = fragment % STRIPS * STRIP + lane / 4, o = first_output + own;
    const int within = tile * ACROSS + lane % 4 * 2, pixel = first_pixel + within;
    auto answer = [&](float v, int e) {
        return o + e < outputs ? activate(v + shift[own + e], AFTER) : 0.0f;  // what fills a chunk up is zero
    };
    const float v[4] = {answer(sum.x, 0), answer(sum.y, 0), answer(sum.z, 8), answer(sum.w, 8)};
    auto real = [&](int i) { return within + i < PIXELS && pixel + i < AREA; };
    if (!WRITES) {
        float* to = y + ((index_t)image * p.m + group * outputs + o) * AREA + pixel;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (o + e / 2 * 8 < outputs && real(e % 2)) to[(index_t)(e / 2 * 8) * AREA + e % 2] = v[e];
        return;
    }
    // Lanes of neighbouring channels exchange: each then has both channels of one of the two pixels.
    const int odd = lane / 4 % 2, every = chunks_of(p.m) * EACH;
    const int filled = group == p.group - 1 ? every - group * outputs : outputs;
    const float low = __shfl_xor_sync(ALL_LANES, odd ? v[0] : v[1], 4), high = __shfl_xor_sync(ALL_LANES, odd ? v[2] : v[3], 4);
    const float pairs[2][2] = {{odd ? low : v[0], odd ? v[1] : low}, {odd ? high : v[2], odd ? v[3] : high}};
    const index_t place = ((index_t)image * AREA + pixel + odd) * every + group * outputs + o - odd;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        if (!real(odd) || o - odd + e * 8 >= filled) continue;
        if (EACH == 8)
            *reinterpret_cast<unsigned*>(reinterpret_cast<half_bits*>(y) + place + e * 8) =
                to_halves(pairs[e][0], pairs[e][1]);
        else
            *reinterpret_cast<uint2*>(y + place + e * 8) = make_uint2(to_tf32(pairs[e][0]), to_tf32(pairs[e][1]));
    }
}

// grid = (groups · blocks of channels · RANKS, bands, images).
extern "C" __global__ void TEAM __launch_bounds__(THREADS)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    let_next_begin();
    uint4* const strips = kept;
    uint4* const image_part = kept + IMAGE_AT;
    float4* const told = reinterpret_cast<float4*>(kept + TOLD_AT);
    float* const shift = reinterpret_cast<float*>(kept + SHIFT_AT);
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int rank = blockIdx.x % RANKS, outputs = p.m / p.group, across = (outputs + COLUMNS - 1) / COLUMNS;
    const int group = blockIdx.x / RANKS / across, first_strip = blockIdx.x / RANKS % across * STRIPS;
    const int first_output = first_strip * STRIP, image = blockIdx.z, first_row = blockIdx.y * BAND;
    // This block's slice of the steps, their number the same for all or one less.
    const int begin = ALL_STEPS * rank / RANKS, steps = ALL_STEPS * (rank + 1) / RANKS - begin;

#if RANKS > 1
    arrive_at_cluster();  // from when on the others may tell this block something
#endif
    // What no kernel in front writes.
    const uint4* filters = reinterpret_cast<const uint4*>(weight);
    const int all = across * STRIPS;  // strips of a group
    for (int e = thread; e < STRIPS * RUN; e += THREADS) {
        const int strip = e / RUN, within = e % RUN;
        if (within < steps * TAPS * OF_TAP)
            copy_async_16(strips + e, filters + ((index_t)(group * all + first_strip + strip) * ALL_STEPS + begin) *
                                                    (TAPS * OF_TAP) + within);
    }
    for (int e = thread; e < COLUMNS; e += THREADS) {
        const int o = first_output + e;
        shift[e] = bias && o < outputs ? bias[group * outputs + o] : 0.0f;
#if OPERANDS > 1
        // What brings a channel's products back lies behind all weights.
        const float* back = reinterpret_cast<const float*>(filters + (index_t)p.group * all * ALL_STEPS * (TAPS * OF_TAP));
        shift[COLUMNS + e] = back[group * all * STRIP + o];
#endif
    }
    // Where this lane's rows of matrices begin: pixels of two tiles by two chunks, or of one by four.
    int at[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; ++j) {
        const int tile = warp * TILES + (OPERANDS > 1 ? j : 2 * j + lane / 16);
        const int pixel = min(tile * ACROSS + lane % 8, PIXELS - 1);
        at[j] = (pixel / OUT_W * STRIDE_H * COLUMNS_READ + pixel % OUT_W * STRIDE_W) * LEAD +
                (OPERANDS > 1 ? lane / 8 : lane / 8 % 2);
    }
    wait_for_previous();
    x = written(x);

    // The part of the image under the band, of the slice's channels; zeros around the image and behind its channels.
    const int top = first_row * STRIDE_H - PAD_TOP;
    auto inside = [&](int pixel, int chunk) {
        const int iy = top + pixel / COLUMNS_READ, ix = pixel % COLUMNS_READ - PAD_LEFT;
        return (unsigned)iy < (unsigned)H && (unsigned)ix < (unsigned)W && begin * OF_STEP + chunk < CHUNKS;
    };
    float most = 0.0f;
    if (READS) {
        const uint4* from = reinterpret_cast<const uint4*>(x);
        const int every = chunks_of(p.c);
#pragma unroll 4
        for (int e = thread; e < ITEMS; e += THREADS) {
            const int pixel = e / WIDE, chunk = e % WIDE;
            const bool there = inside(pixel, chunk);
            const int place = (image * H + top + pixel / COLUMNS_READ) * W + pixel % COLUMNS_READ - PAD_LEFT;
            copy_async_16(image_part + pixel * LEAD + place_of(chunk),
                          from + (there ? place * every + group * CHUNKS + begin * OF_STEP + chunk : 0), there);
        }
    } else {
        // Neighbouring lanes fetch neighbouring pixels of a channel.
        const float* from = x + (index_t)(image * p.c + group * C) * (H * W);
        for (int first = thread; first < ITEMS; first += AT_ONCE * THREADS) {
            float v[AT_ONCE][EACH];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                const int item = first + i * THREADS, pixel = item % PIXELS_READ, chunk = item / PIXELS_READ;
                const bool there = item < ITEMS && inside(pixel, chunk);
                const int channel = (begin * OF_STEP + chunk) * EACH;
                const float* of = from + (channel * H + top + pixel / COLUMNS_READ) * W + pixel % COLUMNS_READ - PAD_LEFT;
#pragma unroll
                for (int e = 0; e < EACH; ++e) v[i][e] = there && channel + e < C ? of[e * (H * W)] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                const int item = first + i * THREADS, pixel = item % PIXELS_READ, chunk = item / PIXELS_READ;
                if (item >= ITEMS) continue;
                uint4* to = image_part + pixel * LEAD + place_of(chunk);
#if OPERANDS > 1
                // As they are, where its two operands will be.
                float4* raw = reinterpret_cast<float4*>(to);
                raw[0] = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
                raw[OF_STEP] = make_float4(v[i][4], v[i][5], v[i][6], v[i][7]);
#pragma unroll
                for (int e = 0; e < EACH; ++e) most = fmaxf(most, finite_magnitude(v[i][e]));
#else
                *to = to_chunk(v[i]);
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
#pragma unroll 2
    for (int item = thread; item < ITEMS; item += THREADS) {  // each what it brought itself
        uint4* to = image_part + item % PIXELS_READ * LEAD + place_of(item / PIXELS_READ);
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
    const bool busy = warp * TILES < OF_BAND;
#pragma unroll STEPS_AT_ONCE
    for (int step = 0; step < (busy ? steps : 0); ++step) {
        const uint4* a = strips + step * (TAPS * OF_TAP) + lane;
        const uint4* b = image_part + step * (OPERANDS * OF_STEP);
#pragma unroll ROWS_AT_ONCE
        for (int r = 0; r < KH; ++r) {
#if OPERANDS > 1
            // Tensor cores cut off what they add, where float32 rounds: they add up a row of the window alone.
#pragma unroll
            for (int k = 0; k < STRIPS; ++k)
#pragma unroll
                for (int j = 0; j < TILES; ++j)
#pragma unroll
                    for (int e = 0; e < 4; ++e) part[k][j][e] = 0.0f;
#endif
#pragma unroll
            for (int s = 0; s < KW; ++s) {
                unsigned pixels[LOADS][4];
#pragma unroll
                for (int j = 0; j < LOADS; ++j)
                    load_matrices(pixels[j], b + at[j] + (r * DILATION_H * COLUMNS_READ + s * DILATION_W) * LEAD);
#if OPERANDS > 1
                uint4 big[STRIPS], small[STRIPS];
#pragma unroll
                for (int k = 0; k < STRIPS; ++k) {
                    big[k] = a[k * RUN + (r * KW + s) * OF_TAP];
                    small[k] = a[k * RUN + (r * KW + s) * OF_TAP + LANES];
                }
                auto multiply = [&](const uint4 (&columns)[STRIPS], int operand) {
#pragma unroll
                    for (int k = 0; k < STRIPS; ++k)
#pragma unroll
                        for (int j = 0; j < TILES; ++j)
                            Kind::multiply(part[k][j], columns[k], pixels[j][2 * operand], pixels[j][2 * operand + 1]);
                };
                multiply(small, 0);
                multiply(big, 1);
                multiply(big, 0);
#else
#pragma unroll
                for (int k = 0; k < STRIPS; ++k) {
                    const uint4 columns = a[k * RUN + (r * KW + s) * OF_TAP];
#pragma unroll
                    for (int j = 0; j < TILES; ++j)
                        Kind::multiply(sum[k][j], columns, pixels[j / 2][j % 2 * 2], pixels[j / 2][j % 2 * 2 + 1]);
                }
#endif
            }
#if OPERANDS > 1
#pragma unroll
            for (int k = 0; k < STRIPS; ++k)
#pragma unroll
                for (int j = 0; j < TILES; ++j)
#pragma unroll
                    for (int e = 0; e < 4; ++e) sum[k][j][e] += part[k][j][e];
#endif
        }
    }

#if RANKS > 1
    cluster_arrived();
#endif
    const int first_pixel = first_row * OUT_W;
#pragma unroll
    for (int j = 0; j < TILES; ++j) {
        const int tile = warp * TILES + j;
        if (tile >= OF_BAND) break;
#pragma unroll
        for (int k = 0; k < STRIPS; ++k) {
            const int fragment = tile * STRIPS + k;
            float4 v = make_float4(sum[k][j][0], sum[k][j][1], sum[k][j][2], sum[k][j][3]);
#if OPERANDS > 1
            const float* back = shift + COLUMNS + k * STRIP + lane / 4;
            v.x = v.x * back[0] * image_back, v.y = v.y * back[0] * image_back;
            v.z = v.z * back[8] * image_back, v.w = v.w * back[8] * image_back;
#endif
#if RANKS > 1
            put_to_block(told + (rank * SLOTS + fragment / RANKS) * LANES + lane, fragment % RANKS, v);
#else
            write_fragment(v, shift, y, p, group, first_output, fragment, first_pixel, image);
#endif
        }
    }
#if RANKS > 1
    wait_for_cluster();  // all sums have been told, and nobody reads another's memory from here on
    for (int slot = warp; slot * RANKS + rank < FRAGMENTS; slot += WARPS) {
        float4 v = told[slot * LANES + lane];
#pragma unroll
        for (int of = 1; of < RANKS; ++of) {
            const float4 more = told[(of * SLOTS + slot) * LANES + lane];
            v.x += more.x, v.y += more.y, v.z += more.z, v.w += more.w;
        }
        write_fragment(v, shift, y, p, group, first_output, slot * RANKS + rank, first_pixel, image);
    }
#endif
}
