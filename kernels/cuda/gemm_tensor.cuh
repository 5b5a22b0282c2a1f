// The product on tensor cores: the kernels of the rungs on the launch shape gemm_tensor, which differ in what they
// compute in alone. Included behind the rung's struct Kind, which says that (mma.cuh).
//
// READS, WRITES: a and y are rows of whole chunks in the element type of the product (nhwc.cuh: images of one pixel),
// filled up with zeros. Such an a is copied past the registers, as b is, STAGES - 1 slabs ahead.
#pragma once
#include "common.cuh"
#include "mma.cuh"

#ifndef READS  // in rungs that know a and y as float32 alone
#define READS 0
#define WRITES 0
#endif
#define PARTS_AT(p) 0
#include "gemm_out.cuh"
#define LEFT_STAGES (READS ? STAGES : 2)
#define OUT_ROWS 8
#define OUT_LEAD (WARP_COLUMNS + 4)
static_assert((TILE_ROWS / WARP_ROWS) * WARPS_ACROSS * OUT_ROWS * OUT_LEAD <= STAGES * TILE_COLUMNS * 4 * CHUNKS,
              "8 rows of every warp must fit where the slabs of b were");

// A block a tile of y, or of its part of the sum.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, float* __restrict__ workspace, const __grid_constant__ GemmParams given) {
    const GemmParams p = given;  // costs fewer registers than a parameter that is no constant of the grid
    __shared__ uint4 right[STAGES][TILE_COLUMNS * CHUNKS];
    __shared__ uint4 left[LEFT_STAGES][TILE_ROWS * CHUNKS];

    // This block's part of the slabs, their number the same for all parts or one less.
    const int slabs = (p.k + DEPTH - 1) / DEPTH;
    const int begin = (int)((index_t)slabs * blockIdx.y / PARTS);
    const int end = (int)((index_t)slabs * (blockIdx.y + 1) / PARTS);
    const int across = (p.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int first_row = blockIdx.x / across * TILE_ROWS;
    const int first_column = blockIdx.x % across * TILE_COLUMNS;
    const int thread = threadIdx.x, warp = thread / LANES, lane = thread % LANES;
    const int warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    // b comes packed: by slab and column (a whole number of tiles of them).
    const int wide = across * TILE_COLUMNS;
    const uint4* columns = reinterpret_cast<const uint4*>(b) + (index_t)first_column * CHUNKS;

    float held[LOADS][Kind::CHUNK];
    WarpTile<Kind, WARP_ROWS, WARP_COLUMNS> tile;

    auto copy_columns = [&](int slab) {
        if (slab < end) {
            const uint4* from = columns + (index_t)slab * wide * CHUNKS;
#pragma unroll
            for (int l = 0; l < COPIES; ++l) {
                const int e = thread + l * THREADS;
                if (TILE_COLUMNS * CHUNKS % THREADS != 0 && e >= TILE_COLUMNS * CHUNKS) break;
                copy_async_16(&right[(slab - begin) % STAGES][e], from + e);
            }
        }
    };
#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_columns(begin + ahead);
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
    // Starts the copies of a slab of a, of READS; a group is closed even when nothing is left, so that their number tells
    // which have arrived.
    auto copy_rows = [&](int slab) {
        if (READS && slab < end) {
            const int chunks = (p.k + Kind::CHUNK - 1) / Kind::CHUNK;  // of a row
#pragma unroll
            for (int l = 0; l < LOADS; ++l) {
                const int e = thread + l * THREADS, row = e / CHUNKS, chunk = e % CHUNKS;
                if (TILE_ROWS * CHUNKS % THREADS != 0 && e >= TILE_ROWS * CHUNKS) break;
                const bool inside = first_row + row < p.m && slab * CHUNKS + chunk < chunks;
                const index_t place = inside ? (index_t)(first_row + row) * chunks + slab * CHUNKS + chunk : 0;
                copy_async_16(&left[(slab - begin) % LEFT_STAGES][place_in_slab(row, chunk)],
                              reinterpret_cast<const uint4*>(a) + place, inside);
            }
        }
        close_group();
    };
    auto fetch = [&](int slab) {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int e = thread + l * THREADS;
            const int row = first_row + e / CHUNKS, k0 = slab * DEPTH + e % CHUNKS * Kind::CHUNK;
            const float* from = a + (index_t)row * p.k + k0;
            const bool within = row < p.m && (TILE_ROWS * CHUNKS % THREADS == 0 || e < TILE_ROWS * CHUNKS);
#pragma unroll
            for (int v = 0; v < Kind::CHUNK; v += VECTOR) {
                if (VECTOR == 4) {
                    const float4 four = within && k0 + v < p.k ? *reinterpret_cast<const float4*>(from + v) : float4{};
                    held[l][v] = four.x;
                    held[l][v + 1] = four.y;
                    held[l][v + 2] = four.z;
                    held[l][v + 3] = four.w;
                } else {
                    held[l][v] = within && k0 + v < p.k ? from[v] : 0.0f;
                }
            }
        }
    };
    auto keep = [&](int slab) {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int e = thread + l * THREADS;
            if (TILE_ROWS * CHUNKS % THREADS != 0 && e >= TILE_ROWS * CHUNKS) break;
            left[(slab - begin) % 2][place_in_slab(e / CHUNKS, e % CHUNKS)] = Kind::chunk(held[l]);
        }
    };

#pragma unroll
    for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy_rows(begin + ahead);
    if (!READS) {
        fetch(begin);
        keep(begin);
    }
    for (int slab = begin; slab < end; ++slab) {
        // Of each thread's copies this slab's have arrived; after the barrier everybody's, and the slab before has been
        // multiplied by all, so that its place is free.
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        copy_columns(slab + STAGES - 1);
        copy_rows(slab + STAGES - 1);
        const bool more = !READS && slab + 1 < end;
        if (more) fetch(slab + 1);
        tile.add(left[(slab - begin) % LEFT_STAGES], right[(slab - begin) % STAGES], warp_row, warp_column);
        if (more) keep(slab + 1);
    }
    __syncthreads();
    let_next_begin();

    // Out through shared memory, 8 rows at a time: neighbouring lanes then write neighbouring elements.
    float* out = reinterpret_cast<float*>(right) + warp * OUT_ROWS * OUT_LEAD;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / OUT_ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / MMA_COLUMNS; ++j)
#pragma unroll
            for (int s = 0; s < 4; ++s)
                out[(lane % 4 * 2 + s % 2) * OUT_LEAD + j * MMA_COLUMNS + lane / 4 + s / 2 * 8] = tile.sum[j][i][s];
        __syncwarp();
        write_rows<OUT_ROWS, WARP_COLUMNS, OUT_LEAD>(out, first_row + warp_row + i * OUT_ROWS,
                                                     first_column + warp_column, blockIdx.y, bias, y, workspace, p);
        __syncwarp();
    }
}
