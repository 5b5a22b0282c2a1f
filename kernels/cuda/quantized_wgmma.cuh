// Products of eight-bit numbers over chunks (quantized_chunks.cuh) by warpgroups (wgmma.cuh): rows are the pixels of the
// whole batch, GROUP_ROWS a warpgroup, columns the channels of a group. Where tiles would be few, the blocks of a cluster
// share a tile's sum, and add up out of each other's shared memory.
#pragma once
#include "cluster.cuh"
#include "common.cuh"

#if W_TYPE == DTYPE_UINT8
#define W_KIND ".u8"
#else
#define W_KIND ".s8"
#endif
#if X_TYPE == DTYPE_UINT8
#define X_KIND ".u8"
#else
#define X_KIND ".s8"
#endif
#define WGMMA_KIND "k32.s32" X_KIND W_KIND
#define WGMMA_ORDER ""  // the steps of both operands lie side by side
#define WGMMA_SUM int
#define WGMMA_HELD "+r"
#define WGMMA_SIGNS ""

struct Kind {
    static constexpr int CHUNK = 16;
};

#include "wgmma.cuh"

#define THREADS (GROUP * (TILE_ROWS / GROUP_ROWS))
#define LOADS (TILE_ROWS * CHUNKS / THREADS)                      // chunks of patches that a thread copies of a slab
#define COPIES ((TILE_COLUMNS * CHUNKS + THREADS - 1) / THREADS)  // and, at most, of weights
#define SLAB (CHUNKS * (TILE_ROWS + TILE_COLUMNS))                // chunks of both
#define AHEAD (STAGES - 1 - ByteTile::LATE)                       // slabs that are copied ahead
#define WARP_ROWS 16                                              // pixels whose sums a warp has
#include "quantized_chunks.cuh"

#if PARTS > 1
using Out = int;
#define OUT_NBYTES 4
#define CLUSTER __cluster_dims__(1, 1, PARTS)
#else
using Out = Answer;
#define OUT_NBYTES (TO_BYTES ? 1 : 4)
#define CLUSTER
#endif
#define OUT_LEAD (TILE_COLUMNS + 16 / OUT_NBYTES)
static_assert(SLAB * STAGES * 16 >= TILE_ROWS * OUT_LEAD * OUT_NBYTES + TILE_COLUMNS * (int)sizeof(Column),
              "what is laid out at once must fit");

extern __shared__ __align__(1024) uint4 slabs[];

// The sums of a warpgroup and, where they are wanted, those of this lane's two rows of x: lanes of four share them.
struct ByteTile : GroupTile<TILE_COLUMNS> {
    const uint4* ones;  // of the first slab; null where no sums of rows are wanted
    int of_row[2] = {};

    __device__ __forceinline__ void add(const uint4* rows, const uint4* columns, int number) {
        GroupTile<TILE_COLUMNS>::add(rows, columns, number);
        if (!ones) return;
        const int lane = threadIdx.x % LANES, first = threadIdx.x % GROUP / LANES * WARP_ROWS + lane / 4;
#pragma unroll
        for (int chunk = lane % 4; chunk < CHUNKS; chunk += 4)
#pragma unroll
            for (int s = 0; s < 2; ++s)
                of_row[s] = add_up(rows[place_in_slab(first + 8 * s, chunk)], ones[number * CHUNKS + chunk], of_row[s]);
    }
    __device__ __forceinline__ void end() {
        GroupTile<TILE_COLUMNS>::end();
        if (!ones) return;
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            of_row[s] += __shfl_xor_sync(ALL_LANES, of_row[s], 1);
            of_row[s] += __shfl_xor_sync(ALL_LANES, of_row[s], 2);
        }
    }
};
static_assert(AHEAD > 0, "a slab is copied before it is multiplied");

// A block a tile of y, or its part of the sum.
template <class P>
__device__ __forceinline__ void multiply_wgmma(const void* x, const void* weight, const void* x_zero,
                                               const void* weight_zero, const int* bias, const double* scale,
                                               const double* shift, void* y, void* workspace, const P& p) {
    auto weights = [&](int stage) { return slabs + stage * SLAB; };
    auto patches = [&](int stage) { return slabs + stage * SLAB + CHUNKS * TILE_COLUMNS; };
    let_next_begin();
    const Source source(p);
    const Work work(source, p, weight, x_zero, weight_zero);
    Patches patch(source, p, work);
    const int thread = threadIdx.x, lane = thread % LANES, group = thread / GROUP;

    auto copy_weights = [&](int slab, int stage) {
        if (slab >= work.end) return;
        const uint4* packed = work.filters + (index_t)slab * work.wide * CHUNKS;
#pragma unroll
        for (int l = 0; l < COPIES; ++l)
            if (TILE_COLUMNS * CHUNKS % THREADS == 0 || thread + l * THREADS < TILE_COLUMNS * CHUNKS)
                copy_async_16(&weights(stage)[thread + l * THREADS], packed + thread + l * THREADS);
    };
#pragma unroll
    for (int ahead = 0; ahead < AHEAD; ++ahead) copy_weights(work.begin + ahead, ahead);
    const Column mine = thread < TILE_COLUMNS ? work.column(p, thread, weight_zero, bias, scale, shift) : Column{};
    wait_for_previous();
    x = written(x);
    workspace = written(workspace);
    const uint4* from = reinterpret_cast<const uint4*>(READS ? x : workspace);
    auto copy_patches = [&](int slab, int stage) {
        if (slab < work.end) patch.copy(source, p, from, patches(stage), work.zero);
        close_group();  // even when nothing is left, so that their number tells which have arrived
    };
#pragma unroll
    for (int ahead = 0; ahead < AHEAD; ++ahead) copy_patches(work.begin + ahead, ahead);

    ByteTile tile;
    tile.ones = work.of_rows ? work.ones + work.begin * CHUNKS : nullptr;
    multiply_slabs<STAGES>(
        tile, work.begin, work.end, [&](int stage) { return patches(stage) + group * GROUP_ROWS * CHUNKS; }, weights,
        [&](int slab, int stage) {
            copy_weights(slab, stage);
            copy_patches(slab, stage);
        });

    // Shared memory again: each warp's sums, so that neighbouring lanes write neighbouring elements; behind them what
    // each column is worked out with.
    Column* columns = reinterpret_cast<Column*>(reinterpret_cast<Out*>(slabs) + TILE_ROWS * OUT_LEAD);
    if (thread < TILE_COLUMNS) columns[thread] = mine;
    __syncthreads();
    Out* out = reinterpret_cast<Out*>(slabs) + thread / LANES * WARP_ROWS * OUT_LEAD;
    const int begins = work.first_pixel + thread / LANES * WARP_ROWS, first_channel = work.g * work.outputs;
    // The last group's channels are filled up with zeros; those of others are a whole number of chunks.
    const int every = chunks_of(p.m) * EACH;
    const int filled = (work.g == p.group - 1 ? every : first_channel + work.outputs) - first_channel;
#pragma unroll
    for (int j = 0; j < TILE_COLUMNS / 8; ++j) {
        Out held[4];
#pragma unroll
        for (int beside = 0; beside < 2; ++beside) {
            const int at = j * 8 + lane % 4 * 2 + beside, output = work.first_output + at;
            const Column c = columns[at];
            const bool real = output < work.outputs;
#pragma unroll
            for (int below = 0; below < 2; ++below) {
                const int sum = tile.sum[j][2 * below + beside] + c.less - c.own * tile.of_row[below];
#if PARTS > 1
                held[2 * below + beside] = real ? sum : 0;
#else
                held[2 * below + beside] =
                    real ? answered(p, sum, c, first_channel + output, bias, scale, shift) : (Out)0;
#endif
            }
        }
#pragma unroll
        for (int below = 0; below < 2; ++below) {
            Out* to = out + (lane / 4 + 8 * below) * OUT_LEAD + j * 8 + lane % 4 * 2;
            if (OUT_NBYTES == 1) {
                *reinterpret_cast<unsigned short*>(to) =
                    (unsigned short)((held[2 * below] & 255) | (held[2 * below + 1] & 255) << 8);
            } else {
                to[0] = held[2 * below], to[1] = held[2 * below + 1];
            }
        }
    }
#if PARTS > 1
    // Each block adds up its share of the rows, of which lanes take neighbouring ones, or neighbouring columns.
    constexpr int SHARE = (TILE_ROWS + PARTS - 1) / PARTS, FOURS = TILE_COLUMNS / 4;
    const float* all = reinterpret_cast<const float*>(slabs);
    wait_for_cluster();
    for (int e = thread; e < SHARE * FOURS; e += THREADS) {
        const int row = work.part * SHARE + (WRITES ? e / FOURS : e % SHARE);
        const int at = 4 * (WRITES ? e % FOURS : e / SHARE);
        const int pixel = work.first_pixel + row, output = work.first_output + at;
        if (row >= TILE_ROWS) continue;
        int sum[4] = {};
#pragma unroll
        for (int rank = 0; rank < PARTS; ++rank) {
            const float4 more = four_of_block(all + row * OUT_LEAD + at, rank);  // whole numbers, by their bits
            sum[0] += __float_as_int(more.x), sum[1] += __float_as_int(more.y);
            sum[2] += __float_as_int(more.z), sum[3] += __float_as_int(more.w);
        }
        if (pixel >= work.pixels || output >= filled) continue;
        Answer v[4];
#pragma unroll
        for (int q = 0; q < 4; ++q)
            v[q] = output + q < work.outputs ? answered(p, sum[q], columns[at + q], first_channel + output + q, bias,
                                                        scale, shift)
                                             : (Answer)0;
        if (WRITES) {
            *reinterpret_cast<unsigned*>(reinterpret_cast<char*>(y) + place_of(p, pixel, work.area, first_channel + output)) =
                (unsigned)(v[0] & 255) | (unsigned)(v[1] & 255) << 8 | (unsigned)(v[2] & 255) << 16 | (unsigned)(v[3] & 255) << 24;
        } else {
#pragma unroll
            for (int q = 0; q < 4; ++q)
                if (output + q < work.outputs)
                    reinterpret_cast<Answer*>(y)[place_of(p, pixel, work.area, first_channel + output + q)] = v[q];
        }
    }
    wait_for_cluster();  // nobody leaves whose sums are still read
#else
    __syncwarp();
    if (WRITES) {
        for (int e = lane; e < WARP_ROWS * (TILE_COLUMNS / EACH); e += LANES) {
            const int r = e / (TILE_COLUMNS / EACH), at = e % (TILE_COLUMNS / EACH) * EACH;
            const int pixel = begins + r, output = work.first_output + at;
            if (pixel < work.pixels && output < filled)
                *reinterpret_cast<uint4*>(reinterpret_cast<char*>(y) +
                                          place_of(p, pixel, work.area, first_channel + output)) =
                    *reinterpret_cast<const uint4*>(out + r * OUT_LEAD + at);
        }
    } else {
        // A lane has one pixel, and every second channel of the tile.
        static_assert(LANES == 2 * WARP_ROWS, "half a warp has the pixels of one channel");
        const int pixel = begins + lane % WARP_ROWS, half = lane / WARP_ROWS, left = work.outputs - work.first_output - half;
        if (pixel >= work.pixels) return;
        Out* to = reinterpret_cast<Out*>(y) + place_of(p, pixel, work.area, first_channel + work.first_output + half);
        const Out* mine_out = out + lane % WARP_ROWS * OUT_LEAD + half;
#pragma unroll 8
        for (int at = 0; at < TILE_COLUMNS; at += 2)
            if (at < left) to[(index_t)at * work.area] = mine_out[at];
    }
#endif
}
