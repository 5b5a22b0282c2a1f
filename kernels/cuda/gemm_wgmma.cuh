// The product by warpgroups that multiply in the background (wgmma.cuh): GROUP_ROWS rows of a warpgroup. Included behind
// the rung's struct Kind.
//
// READS, WRITES: a and y are rows of whole chunks in the element type of the product (nhwc.cuh: images of one pixel),
// filled up with zeros. Another a is first laid out so in scratch memory (gemm_lay_out); partial sums lie behind it.
// With OPERANDS = 2 a number is the sum of two float16 (halves_split.cuh): of every row the big ones lie first, and behind
// all rows, for each, what brings its products back. With SCALED it is one float16 that was scaled so.
#pragma once
#include "common.cuh"
#include "halves_split.cuh"
#include "wgmma.cuh"

#define THREADS (GROUP * (TILE_ROWS / GROUP_ROWS))
#define ROWS_AT_ONCE (THREADS / CHUNKS)             // whose chunks the threads of a block copy together
#define LOADS (TILE_ROWS / ROWS_AT_ONCE)            // chunks of a that a thread copies of a slab
#ifndef OPERANDS
#define OPERANDS 1  // of a number: two where it is the sum of two float16
#endif
#ifndef SCALED
#define SCALED (OPERANDS > 1)
#endif
#define COPIES ((TILE_COLUMNS * CHUNKS + THREADS - 1) / THREADS)  // and, at most, of b
#define SLAB (CHUNKS * (TILE_ROWS + TILE_COLUMNS))  // chunks of both
#define STEPS (CHUNKS / OPERANDS)                   // chunks of the sum in a slab, as often as it has operands
#define WARP_ROWS 16                                // whose sums a warp has
#define OUT_LEAD (TILE_COLUMNS + 4)
#define ROW_CHUNKS(p) ((p.k + Kind::CHUNK - 1) / Kind::CHUNK)
#define SCALES_AT(p) (4 * OPERANDS * (index_t)p.m * ROW_CHUNKS(p))
#define PARTS_AT(p) (READS ? 0 : SCALES_AT(p) + (SCALED ? (p.m + 3) / 4 * 4 : 0))
#if OPERANDS > 1
using Tile = SplitTile<TILE_COLUMNS, TOGETHER>;
#else
using Tile = GroupTile<TILE_COLUMNS>;
#endif
static_assert(TILE_ROWS % ROWS_AT_ONCE == 0, "every thread copies as many chunks of a");
static_assert(STAGES - 1 - Tile::LATE > 0, "a slab is copied before it is multiplied");
static_assert(SLAB * STAGES * 16 >= TILE_ROWS * OUT_LEAD * 4, "what is laid out at once must fit");

#include "gemm_out.cuh"

extern __shared__ __align__(1024) uint4 slabs[];

// a as rows of whole chunks.
extern "C" __global__ void __launch_bounds__(256)
    gemm_lay_out(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
                 float* __restrict__ y, float* __restrict__ workspace, const GemmParams p) {
    let_next_begin();
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
    const int chunks = ROW_CHUNKS(p);
#if SCALED
    // A block a row at a time, four numbers at once where every row begins on 16 bytes.
    const bool fours = p.k % 4 == 0;
    for (int r = blockIdx.x; r < p.m; r += gridDim.x) {
        const float* row = a + (index_t)r * p.k;
        float found = 0.0f;
        if (fours) {
#pragma unroll 8
            for (int k = 4 * threadIdx.x; k < p.k; k += 4 * blockDim.x) {
                const float4 v = *reinterpret_cast<const float4*>(row + k);
                found = fmaxf(found, fmaxf(fmaxf(finite_magnitude(v.x), finite_magnitude(v.y)),
                                           fmaxf(finite_magnitude(v.z), finite_magnitude(v.w))));
            }
        } else {
#pragma unroll 8
            for (int k = threadIdx.x; k < p.k; k += blockDim.x) found = fmaxf(found, finite_magnitude(row[k]));
        }
        found = largest_of_block(found);
        if (threadIdx.x == 0) workspace[SCALES_AT(p) + r] = scale_back(found);
        uint4* to = reinterpret_cast<uint4*>(workspace) + (index_t)r * OPERANDS * chunks;
        for (int chunk = threadIdx.x; chunk < chunks; chunk += blockDim.x) {
            const int k = chunk * Kind::CHUNK;
            float v[Kind::CHUNK] = {};
            if (fours) {
#pragma unroll
                for (int e = 0; e < Kind::CHUNK; e += 4) {
                    if (k + e >= p.k) continue;
                    const float4 four = *reinterpret_cast<const float4*>(row + k + e);
                    v[e] = four.x, v[e + 1] = four.y, v[e + 2] = four.z, v[e + 3] = four.w;
                }
            } else {
#pragma unroll
                for (int e = 0; e < Kind::CHUNK; ++e)
                    if (k + e < p.k) v[e] = row[k + e];
            }
            put_scaled(v, scale_by(found), to + chunk, chunks);
        }
        __syncthreads();
    }
#else
    for (index_t i = first_element(); i < (index_t)p.m * chunks; i += grid_stride()) {
        const index_t r = i / chunks;
        const int k = (int)(i - r * chunks) * Kind::CHUNK;
        float v[Kind::CHUNK];
#pragma unroll
        for (int e = 0; e < Kind::CHUNK; ++e) v[e] = k + e < p.k ? a[r * p.k + k + e] : 0.0f;
        reinterpret_cast<uint4*>(workspace)[i] = Kind::chunk(v);
    }
#endif
}

// A block a tile of y, or of its part of the sum.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const GemmParams p) {
    auto columns = [&](int stage) { return slabs + stage * SLAB; };
    auto rows = [&](int stage) { return slabs + stage * SLAB + CHUNKS * TILE_COLUMNS; };

    // This block's part of the slabs, their number the same for all parts or one less.
    const int chunks = ROW_CHUNKS(p), count = (chunks + STEPS - 1) / STEPS, part = blockIdx.y;
    const int begin = (int)((index_t)count * part / PARTS), end = (int)((index_t)count * (part + 1) / PARTS);
    const int across = (p.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int first_row = blockIdx.x / across * TILE_ROWS, first_column = blockIdx.x % across * TILE_COLUMNS;
    const int thread = threadIdx.x, warp = thread / LANES, mine = thread % CHUNKS, own_row = thread / CHUNKS;
    // b comes packed: by slab and column (a whole number of tiles of them), each slab as it is to lie. Behind them all, of
    // those that are scaled, what brings each column's products back.
    const int wide = across * TILE_COLUMNS;
    const uint4* packed = reinterpret_cast<const uint4*>(b) + (index_t)first_column * CHUNKS + thread;

    // Start the copies of a slab.
    auto copy_columns = [&](int slab, int stage) {
        if (slab < end) {
#pragma unroll
            for (int l = 0; l < COPIES; ++l)
                if (TILE_COLUMNS * CHUNKS % THREADS == 0 || thread + l * THREADS < TILE_COLUMNS * CHUNKS)
                    copy_async_16(&columns(stage)[thread + l * THREADS], packed + (index_t)slab * wide * CHUNKS + l * THREADS);
        }
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1 - Tile::LATE; ++ahead) copy_columns(begin + ahead, ahead);
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
    const uint4* from = reinterpret_cast<const uint4*>(READS ? a : workspace);
    auto copy_rows = [&](int slab, int stage) {
        if (slab < end) {
            const int chunk = slab * STEPS + mine % STEPS;
#pragma unroll
            for (int l = 0; l < LOADS; ++l) {
                const int row = own_row + l * ROWS_AT_ONCE;
                const bool inside = first_row + row < p.m && chunk < chunks;
                copy_async_16(
                    &rows(stage)[place_in_slab(row, mine)],
                    from + (inside ? ((index_t)(first_row + row) * OPERANDS + mine / STEPS) * chunks + chunk : 0), inside);
            }
        }
        close_group();  // even when nothing is left, so that their number tells which have arrived
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1 - Tile::LATE; ++ahead) copy_rows(begin + ahead, ahead);
    Tile tile;
    multiply_slabs<STAGES>(
        tile, begin, end, [&](int stage) { return rows(stage) + thread / GROUP * GROUP_ROWS * CHUNKS; }, columns,
        [&](int slab, int stage) {
            copy_columns(slab, stage);
            copy_rows(slab, stage);
        });
    let_next_begin();

#if SCALED
    const float* back = reinterpret_cast<const float*>(reinterpret_cast<const uint4*>(b) +
                                                       (index_t)count * wide * CHUNKS);
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        const int r = first_row + warp * WARP_ROWS + thread % LANES / 4 + s / 2 * 8;
        const float row_back = r < p.m ? workspace[SCALES_AT(p) + r] : 0.0f;
#pragma unroll
        for (int j = 0; j < TILE_COLUMNS / 8; ++j)
            tile.sum[j][s] *= back[first_column + j * 8 + thread % 4 * 2 + s % 2] * row_back;
    }
#endif
    // Out through shared memory: neighbouring lanes then write neighbouring elements.
    float* out = reinterpret_cast<float*>(slabs) + warp * WARP_ROWS * OUT_LEAD;
    lay_out_sums<OUT_LEAD, TILE_COLUMNS>(tile.sum, out);
    __syncwarp();
    write_rows<WARP_ROWS, TILE_COLUMNS, OUT_LEAD>(out, first_row + warp * WARP_ROWS, first_column, part, bias, y, workspace,
                                                  p);
}
