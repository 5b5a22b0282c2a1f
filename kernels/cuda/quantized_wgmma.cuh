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
#define CLUSTER __cluster_dims__(1, 1, PARTS)
#else
#define CLUSTER
#endif
#define OUT_LEAD (TILE_COLUMNS + 4)
static_assert(SLAB * STAGES * 16 >= 4 * TILE_ROWS * OUT_LEAD + TILE_COLUMNS * (int)sizeof(Column),
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

    // Shared memory again: the sums, and behind them what each column is worked out with.
    int* laid_out = reinterpret_cast<int*>(slabs);
    Column* columns = reinterpret_cast<Column*>(laid_out + TILE_ROWS * OUT_LEAD);
    if (thread < TILE_COLUMNS) columns[thread] = mine;
    __syncthreads();
    int* out = laid_out + (thread / LANES * WARP_ROWS + lane / 4) * OUT_LEAD + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < TILE_COLUMNS / 8; ++j)
#pragma unroll
        for (int below = 0; below < 2; ++below) {
            int2 two = {tile.sum[j][2 * below], tile.sum[j][2 * below + 1]};
            if (work.of_rows) {
                const Column* its = columns + j * 8 + lane % 4 * 2;
                two.x -= its[0].own * tile.of_row[below], two.y -= its[1].own * tile.of_row[below];
            }
            *reinterpret_cast<int2*>(out + 8 * below * OUT_LEAD + j * 8) = two;
        }
    auto pixel_of = [&](int row) { return work.first_pixel + row; };
#if PARTS > 1
    // Each block writes its share of the rows, and adds up what all blocks have of them.
    constexpr int SHARE = (TILE_ROWS + PARTS - 1) / PARTS;
    const int begins = work.part * SHARE;
    auto added_up = [&](int row, int at) {
        int4 sum = {0, 0, 0, 0};
#pragma unroll
        for (int rank = 0; rank < PARTS; ++rank) {
            const float* place = reinterpret_cast<const float*>(laid_out + (begins + row) * OUT_LEAD + at);
            const float4 more = four_of_block(place, rank);  // whole numbers, by their bits
            sum.x += __float_as_int(more.x), sum.y += __float_as_int(more.y);
            sum.z += __float_as_int(more.z), sum.w += __float_as_int(more.w);
        }
        return sum;
    };
    wait_for_cluster();
    write_answers<SHARE>(work, p, columns, bias, scale, shift, y, added_up, [&](int row) {
        return begins + row < TILE_ROWS ? pixel_of(begins + row) : work.pixels;  // the last share may be smaller
    });
    wait_for_cluster();  // nobody leaves whose sums are still read
#else
    __syncthreads();
    write_answers<TILE_ROWS>(
        work, p, columns, bias, scale, shift, y,
        [&](int row, int at) { return *reinterpret_cast<const int4*>(laid_out + row * OUT_LEAD + at); }, pixel_of);
#endif
}
