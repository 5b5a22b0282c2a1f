/*
op = "conv"
rung = 44
name = "slices"
side = true
idea = "For a small image of many channels: each block keeps a slice of the channels under a band of the image in shared memory, where every tap of the window reads it shifted, and the weights of few outputs beside it, fetched while the kernel in front still runs; its warps share the slice out, and the blocks of a cluster tell each other their sums."
launch = "conv_float_slices"
packs = true
overlaps = true
[defines]
MAPS = 32            # of a block: the most
RANKS = 8            # blocks of a cluster, each with a slice of the sum: the most
LEAST_WARPS = 4      # of a block
OF_THREAD = 8        # maps of a thread; this line and those below: the launch fits them
EACH = 11            # and pixels
SPREAD = 2           # sets of maps that the lanes of a warp have
TEAMS = 2            # of a block, each with every TEAMS-th channel of its slice
BAND = 13            # rows of y
PITCH = 19           # numbers from row to row of the image in shared memory
SLOTS = 11           # 32 / SPREAD pixels each, of the band
C = 256              # of a group
M = 384              # and of y
H = 13
W = 13
KH = 3
KW = 3
OUT_H = 13
OUT_W = 13
STRIDE_H = 1
STRIDE_W = 1
PAD_TOP = 1
PAD_LEFT = 1
DILATION_H = 1
DILATION_W = 1
KEPT_NBYTES = 98752
AFTER = 0            # the activation
[tune]
MAPS = [16, 32]
RANKS = [4, 8]
LEAST_WARPS = [4, 8]
[needs]
compute_capability = "9.0"
depthwise = false    # of a block's maps one would count
image_max = 131072   # small images
[prefers]
m_min = 16           # of a block
*/
// A block has MAPS channels of y, a band of BAND rows of one image, and one slice of the channels of x with
// all taps. A lane has OF_THREAD of the maps, EACH pixels and, with its team, every TEAMS-th channel of the
// slice. For a channel and tap it reads a weight a map, four at once, and its pixels, one by one: at
// AlexNet's third convolution 12 weights and 11 pixels for 132 multiplications. Where all lanes have the same
// maps (SPREAD 1) fewer numbers are read; where they have two sets of them (2) fewer lanes are left without a
// pixel. What the teams have is added up in the block, then each block of the cluster finishes a share of y,
// adding in the order of the slices.
//
// Lanes with neighbouring pixels would meet in a bank of shared memory where the next row begins, for rows of
// the image are longer than those of y. So a lane has pixels of one bank alone, and PITCH is such that few
// SLOTS do.
//
// On an H100 no layer of AlexNet took less with it than with others: engines time it where few multiplications
// leave most of the time to the launch and to memory (kernels/estimates/float_slices.py).
#include "async.cuh"
#include "cluster.cuh"
#include "common.cuh"
#include "overlap.cuh"
#include "sums.cuh"
#include "warp.cuh"

#if RANKS > 1
#define TEAM __cluster_dims__(RANKS, 1, 1)
#else
#define TEAM
#endif

constexpr int least_of(int a, int b) { return a < b ? a : b; }
constexpr int most_of(int a, int b) { return a > b ? a : b; }
constexpr int rounded_up(int a, int b) { return (a + b - 1) / b; }

constexpr int QUADS = MAPS / 4, QUADS_OF_THREAD = OF_THREAD / 4;  // maps lie and travel in fours
constexpr int STRIPS = rounded_up(M, MAPS);                       // of a group
constexpr int BESIDE = LANES / SPREAD;                            // lanes with pixels of their own
constexpr int ACROSS = SLOTS / EACH, DOWN = MAPS / OF_THREAD / SPREAD;  // warps of a team
constexpr int WARPS = ACROSS * DOWN * TEAMS, THREADS = LANES * WARPS;
constexpr int TAPS = KH * KW, CHANNELS = rounded_up(C, RANKS);    // of a slice, at most
constexpr int ROWS_READ = (BAND - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1;
constexpr int COLUMNS_READ = (OUT_W - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int PLANE = ROWS_READ * PITCH;                          // numbers of a channel
constexpr int PIXELS = BAND * OUT_W, AREA = OUT_H * OUT_W;
// Lines of four maps by 32 lanes: sums of a block, and how many of them it finishes for all.
constexpr int SUMS = QUADS / SPREAD * SLOTS, TOLD = rounded_up(SUMS, RANKS);

// In shared memory, in pieces of 16 bytes. Where weights and image were, sums of the teams lie in the end.
constexpr int IMAGE_AT = CHANNELS * TAPS * QUADS, IMAGE = rounded_up(CHANNELS * PLANE, 4);
constexpr int TOLD_AT = most_of(IMAGE_AT + IMAGE, TEAMS > 1 ? TEAMS * SUMS * LANES : 0);
constexpr int PIXELS_AT = TOLD_AT + (RANKS > 1 ? RANKS * TOLD * LANES : 0);
constexpr int NBYTES = 16 * PIXELS_AT + 4 * (SLOTS * BESIDE + MAPS);
static_assert(SLOTS % EACH == 0 && MAPS % (SPREAD * OF_THREAD) == 0 && OF_THREAD % 4 == 0, "even shares");
static_assert(PITCH >= COLUMNS_READ, "rows lie behind each other");
static_assert(NBYTES == KEPT_NBYTES, "the launch counts what lies in shared memory alike");

// Columns of the image that anybody reads; threads that fetch a channel together, and such parties of a
// block.
constexpr int COLUMNS_THERE = least_of(W, COLUMNS_READ - PAD_LEFT), ACROSS_THERE = most_of(COLUMNS_THERE, 1);
constexpr int PLACES = ROWS_READ * ACROSS_THERE, PARTIES = most_of(THREADS / PLACES, 1);
constexpr int TOGETHER = 8;  // copies of a thread that follow each other

constexpr int UNROLLED = 1200;  // multiplications whose instructions are written out
constexpr int TERMS = 48;  // of a piece of a sum
constexpr int ROWS_AT_ONCE = TAPS <= TERMS && TAPS * OF_THREAD * EACH <= UNROLLED ? KH : 1;  // of the window
constexpr int CHANNELS_AT_ONCE = TAPS < 4 ? 4 : 1;

extern __shared__ __align__(128) uint4 kept[];

// Where the first tap of a lane's pixels lies in a channel, slot by slot; -1 behind its last.
__device__ __forceinline__ void fill(int* table, int lane) {
    int slot = 0;
    if (STRIDE_H > 1 || STRIDE_W > 1) {  // one behind the other
        for (int pixel = lane; pixel < PIXELS; pixel += BESIDE, ++slot)
            table[slot * BESIDE + lane] = pixel / OUT_W * (STRIDE_H * PITCH) + pixel % OUT_W * STRIDE_W;
    } else {
        int column = lane % PITCH;
#pragma unroll 4
        for (int place = lane; place < (BAND - 1) * PITCH + OUT_W; place += BESIDE) {
            if (column < OUT_W) table[slot++ * BESIDE + lane] = place;
            column += BESIDE % PITCH;
            if (column >= PITCH) column -= PITCH;
        }
    }
    for (; slot < SLOTS; ++slot) table[slot * BESIDE + lane] = -1;
}

// grid = (groups · blocks of maps · RANKS, bands, images).
extern "C" __global__ void TEAM __launch_bounds__(THREADS, 1)
    conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ y, const ConvParams p) {
    let_next_begin();
    float* const weights = reinterpret_cast<float*>(kept);
    float* const pixels = reinterpret_cast<float*>(kept + IMAGE_AT);
    float4* const parts = reinterpret_cast<float4*>(kept);
    float4* const told = reinterpret_cast<float4*>(kept + TOLD_AT);
    int* const table = reinterpret_cast<int*>(kept + PIXELS_AT);
    float* const shift = reinterpret_cast<float*>(table + SLOTS * BESIDE);
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int across = warp % ACROSS, down = warp / ACROSS % DOWN, team = warp / (ACROSS * DOWN);
    const int rank = blockIdx.x % RANKS, strip = blockIdx.x / RANKS;
    const int group = strip / STRIPS, first_output = strip % STRIPS * MAPS;
    const int image = blockIdx.z, first_row = blockIdx.y * BAND;
    // This block's slice of the channels, their number the same for all or one less.
    const int begin = C * rank / RANKS, count = C * (rank + 1) / RANKS - begin;

#if RANKS > 1
    arrive_at_cluster();  // from when on the others may tell this block something
#endif
    // What no kernel in front writes.
    const uint4* filters = reinterpret_cast<const uint4*>(weight) +
                           ((index_t)strip * C + begin) * (TAPS * QUADS) + thread;
#pragma unroll 8
    for (int e = thread; e < count * (TAPS * QUADS); e += THREADS, filters += THREADS)
        copy_async_16(kept + e, filters);
    if (thread < BESIDE) fill(table, thread);
    // Zeros, which stay around the image.
#pragma unroll 4
    for (int e = thread; e < IMAGE; e += THREADS) kept[IMAGE_AT + e] = make_uint4(0, 0, 0, 0);
#pragma unroll 1
    for (int e = thread; e < MAPS; e += THREADS)
        shift[e] = bias && first_output + e < M ? bias[group * M + first_output + e] : 0.0f;
    __syncthreads();  // the table is whole, and where the image will be nobody writes any more
    const float* under[EACH];  // this lane's pixels, under the first tap, in its team's next channel
#pragma unroll
    for (int j = 0; j < EACH; ++j)
        under[j] = pixels + team * PLANE + max(table[(across * EACH + j) * BESIDE + lane % BESIDE], 0);
    const int top = first_row * STRIDE_H - PAD_TOP, party = PARTIES > 1 ? thread / PLACES : 0;
    wait_for_previous();
    x = written(x);

    // The image in two halves, so that the first is multiplied while the second is on its way. A thread
    // brings the same place of many channels.
    const int half = count / 2 / TEAMS * TEAMS;
    auto fetch = [&](int from, int to) {
        for (int e = PARTIES > 1 ? thread % PLACES : thread; e < PLACES && party < PARTIES; e += THREADS) {
            const int row = e / ACROSS_THERE, column = e % ACROSS_THERE;
            if ((unsigned)(top + row) >= (unsigned)H || COLUMNS_THERE < 1) continue;
            const float* source = x + (image * p.c + group * C + begin) * (H * W) + (top + row) * W + column;
            float* target = pixels + row * PITCH + column + PAD_LEFT;
            target += (from + party) * PLANE, source += (from + party) * (H * W);
            int left = (to - from - party + PARTIES - 1) / PARTIES;
#pragma unroll 1
            for (; left >= TOGETHER; left -= TOGETHER) {
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i)
                    copy_async(target + i * (PARTIES * PLANE), source + i * (PARTIES * H * W), true);
                target += TOGETHER * PARTIES * PLANE, source += TOGETHER * PARTIES * (H * W);
            }
#pragma unroll 1
            for (; left > 0; --left, target += PARTIES * PLANE, source += PARTIES * H * W)
                copy_async(target, source, true);
        }
        close_group();
    };
    fetch(0, half);
    fetch(half, count);

    const float* own = weights + team * TAPS * MAPS + (down * SPREAD + lane / BESIDE) * OF_THREAD;
    float sum[OF_THREAD][EACH] = {};
    // A piece of a sum is of some channels, or of some rows of a large window.
    constexpr bool LARGE = TAPS > TERMS;
    constexpr int STEPS = rounded_up(CHANNELS, TEAMS) * (LARGE ? KH : 1);
    constexpr int OF_PIECE = most_of(TERMS / (LARGE ? KW : TAPS), 1);  // steps
    constexpr bool LONG = STEPS > OF_PIECE;
    Wholes<OF_THREAD * EACH, TERMS> wholes(p.c);
    int done = 0;
    auto step = [&] {
        if (LONG && ++done % OF_PIECE == 0) wholes.take(&sum[0][0], done / OF_PIECE - 1);
    };
#pragma unroll 1
    for (int part = 0; part < 2; ++part) {
        if (part == 0)
            wait_for_all_but<1>();
        else
            wait_for_all_but<0>();
        __syncthreads();  // and so have the other threads' copies arrived
        const int end = part == 0 ? half : count;
#pragma unroll CHANNELS_AT_ONCE
        for (int c = (part == 0 ? 0 : half) + team; c < end; c += TEAMS) {
#pragma unroll 1
            for (int rows = 0; rows < KH; rows += ROWS_AT_ONCE) {
#pragma unroll
                for (int t = 0; t < ROWS_AT_ONCE * KW; ++t) {
                    float4 w[QUADS_OF_THREAD];
                    float v[EACH];
#pragma unroll
                    for (int q = 0; q < QUADS_OF_THREAD; ++q)
                        w[q] = *reinterpret_cast<const float4*>(own + t * MAPS + q * 4);
#pragma unroll
                    for (int j = 0; j < EACH; ++j)
                        v[j] = under[j][t / KW * (DILATION_H * PITCH) + t % KW * DILATION_W];
#pragma unroll
                    for (int q = 0; q < QUADS_OF_THREAD; ++q)
#pragma unroll
                        for (int j = 0; j < EACH; ++j) {
                            sum[q * 4][j] += w[q].x * v[j];
                            sum[q * 4 + 1][j] += w[q].y * v[j];
                            sum[q * 4 + 2][j] += w[q].z * v[j];
                            sum[q * 4 + 3][j] += w[q].w * v[j];
                        }
                }
                own += ROWS_AT_ONCE * KW * MAPS;
#pragma unroll
                for (int j = 0; j < EACH; ++j) under[j] += ROWS_AT_ONCE * DILATION_H * PITCH;
                if (LARGE) step();
            }
            own += (TEAMS - 1) * TAPS * MAPS;
#pragma unroll
            for (int j = 0; j < EACH; ++j) under[j] += TEAMS * PLANE - KH * DILATION_H * PITCH;
            if (!LARGE) step();
        }
    }
    if (LONG) wholes.give(&sum[0][0], done / OF_PIECE);

    // `count` fours of the same line, one behind the other.
    auto added = [&](const float4* of, int count, int apart) {
        float4 v = of[lane];
#pragma unroll
        for (int i = 1; i < count; ++i) {
            const float4 more = of[i * apart + lane];
            v.x += more.x, v.y += more.y, v.z += more.z, v.w += more.w;
        }
        return v;
    };
    auto finish = [&](int line, float4 v) {
        const int place = table[line % SLOTS * BESIDE + lane % BESIDE], fours = line / SLOTS;
        const int set = fours / QUADS_OF_THREAD * SPREAD + lane / BESIDE;
        const int own = (set * QUADS_OF_THREAD + fours % QUADS_OF_THREAD) * 4;
        const int row = place / (STRIDE_H * PITCH), column = place % (STRIDE_H * PITCH) / STRIDE_W;
        const int pixel = (first_row + row) * OUT_W + column;
        if (place < 0 || pixel >= AREA) return;
        const float four[4] = {v.x, v.y, v.z, v.w};
        float* to = y + (index_t)(image * p.m + group * M + first_output + own) * AREA + pixel;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (first_output + own + i < M) to[(index_t)i * AREA] = activate(four[i] + shift[own + i], AFTER);
    };
    // What this block has of a line, to the one that finishes it.
    auto tell = [&](int line, float4 v) {
#if RANKS > 1
        put_to_block(told + (rank * TOLD + line / RANKS) * LANES + lane, line % RANKS, v);
#else
        finish(line, v);
#endif
    };
#if RANKS > 1
    cluster_arrived();
#endif
    if (TEAMS > 1) __syncthreads();  // nobody needs weights and image any more
#pragma unroll
    for (int q = 0; q < QUADS_OF_THREAD; ++q)
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const int line = (down * QUADS_OF_THREAD + q) * SLOTS + across * EACH + j;
            const float* s = &sum[q * 4][j];
            const float4 v = make_float4(s[0], s[EACH], s[2 * EACH], s[3 * EACH]);
            if (TEAMS > 1)
                parts[(team * SUMS + line) * LANES + lane] = v;
            else
                tell(line, v);
        }
    if (TEAMS > 1) {
        __syncthreads();  // all teams have told
        for (int line = warp; line < SUMS; line += WARPS)
            tell(line, added(parts + line * LANES, TEAMS, SUMS * LANES));
    }
#if RANKS > 1
    wait_for_cluster();  // all sums have been told, and nobody writes another's memory from here on
    for (int own = warp; own < TOLD && own * RANKS + rank < SUMS; own += WARPS)
        finish(own * RANKS + rank, added(told + own * LANES, RANKS, TOLD * LANES));
#endif
}
