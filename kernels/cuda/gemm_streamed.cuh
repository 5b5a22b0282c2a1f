// A product with a few rows on tensor cores, bound by reading b: each warp streams the weights of sixteen columns from
// global memory straight into the registers that mma.sync wants them in (mma.cuh), several slabs of the sum ahead, and
// nobody waits for anybody before the sum is complete. The warps of a block share the sum of the same columns.
// Included behind the rung's struct Kind.
//
// READS, WRITES: a and y are rows of whole chunks in the element type of the product (nhwc.cuh: images of one pixel),
// filled up with zeros. VECTOR: elements of another a at once, 4 where its rows begin on 16 bytes, else 1. It is compiled
// in: decided at run time it takes so many registers that a multiprocessor holds one block where there is work for two.
// SCALED: weights are float16, each column scaled by a power of two; behind them all lies what brings the products of each
// back. A lane's 16 bytes of a column are then as many steps of the sum as two of its chunks of a row. BITS = 24: a lane has
// 16 bytes more of every instruction's columns, of each weight the eight bits that follow float16's.
#pragma once
#include "common.cuh"
#include "gemm_chunk.cuh"
#include "overlap.cuh"

#ifndef SCALED
#define SCALED 0
#endif
#ifndef BITS
#define BITS 16
#endif
#define OF_COLUMNS (BITS == 24 ? 3 : 2)                // times 16 bytes of an instruction's columns, a lane
#define OF_ROW (SCALED ? 2 : 1)                        // chunks of a row that a lane has in a slab
#define STEPS (CHUNKS * OF_ROW * Kind::CHUNK)          // of the sum in a slab
#define GROUPS ((ALL_ROWS + MMA_ROWS - 1) / MMA_ROWS)  // of rows, an instruction each
#define TILES (TILE_COLUMNS / MMA_COLUMNS)             // of columns
#define SLAB_CHUNKS (TILES * OF_COLUMNS * LANES)       // of a slab of a block's columns
#define ROW_LEAD (TILE_COLUMNS + 4)
static_assert(TILE_COLUMNS % MMA_COLUMNS == 0, "a block has the columns of whole instructions");

// A lane's chunk of row r of a, from step k on: as it is in memory, and as it is multiplied, zeros where there is none.
// Something is read in any case, and no branch stands around that: what is under way is not waited for.
struct Chunk {
    static constexpr int FOURS = READS ? 1 : Kind::CHUNK / 4;
    uint4 held[FOURS];

    __device__ __forceinline__ void fetch(const float* a, int r, int k, const GemmParams& p) {
        const bool row = r < p.m;
        if (READS) {
            const int chunks = (p.k + Kind::CHUNK - 1) / Kind::CHUNK;
            held[0] = reinterpret_cast<const uint4*>(a)[row && k < p.k ? r * chunks + k / Kind::CHUNK : 0];
            return;
        }
        const float* from = a + (row ? (index_t)r * p.k : 0);
#pragma unroll
        for (int l = 0; l < FOURS; ++l) {
            const int first = k + 4 * l;
            if (VECTOR == 4) {
                held[l] = *reinterpret_cast<const uint4*>(from + (first < p.k ? first : 0));
            } else {
                auto one = [&](int e) { return __float_as_uint(from[first + e < p.k ? first + e : 0]); };
                held[l] = {one(0), one(1), one(2), one(3)};
            }
        }
    }

    __device__ __forceinline__ uint4 multiplied(int r, int k, const GemmParams& p) const {
        const int left = r < p.m ? p.k - k : 0;
        if (READS) return left > 0 ? held[0] : uint4{};
        float v[Kind::CHUNK];
#pragma unroll
        for (int l = 0; l < FOURS; ++l) {
            const unsigned four[4] = {held[l].x, held[l].y, held[l].z, held[l].w};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                v[4 * l + e] = 4 * l + e / VECTOR * VECTOR < left ? __uint_as_float(four[e]) : 0.0f;
        }
        return Kind::chunk(v);
    }
};

// Two blocks a multiprocessor, where there are about so many: 4,096 columns are 256 blocks of sixteen.
#if SCALED || ALL_ROWS > MMA_ROWS
#define BOUNDS __launch_bounds__(LANES * WARPS)
#else
#define BOUNDS __launch_bounds__(LANES * WARPS, Kind::CHUNK == 4 ? 2 : 0)
#endif
extern "C" __global__ void BOUNDS
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const GemmParams p) {
    __shared__ __align__(16) float shares[WARPS][GROUPS * MMA_ROWS][ROW_LEAD];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int slabs = (p.k + STEPS - 1) / STEPS;
    // b comes packed, by slab and column (a whole number of blocks' columns). Warp w has slabs w, w + WARPS and so on.
    const index_t apart = (index_t)gridDim.x * SLAB_CHUNKS;
    const uint4* packed = reinterpret_cast<const uint4*>(b) + (index_t)blockIdx.x * SLAB_CHUNKS + lane;
    uint4 weights[AHEAD][TILES][OF_COLUMNS];
    auto fetch = [&](int i, int slab) {
        const uint4* from = packed + (slab < slabs ? slab : 0) * apart;
#pragma unroll
        for (int t = 0; t < TILES; ++t)
#pragma unroll
            for (int part = 0; part < OF_COLUMNS; ++part)
                weights[i][t][part] = slab < slabs ? from[(OF_COLUMNS * t + part) * LANES] : uint4{};
    };
    let_next_begin();
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) fetch(i, warp + i * WARPS);
    wait_for_previous();
    a = written(a);
    Chunk chunks[AHEAD][GROUPS][OF_ROW];
    auto row_of = [&](int group) { return group * MMA_ROWS + lane / CHUNKS; };
    auto step_of = [&](int slab, int c) { return slab * STEPS + (lane % CHUNKS * OF_ROW + c) * Kind::CHUNK; };
    auto fetch_rows = [&](int i, int slab) {
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
#pragma unroll
            for (int c = 0; c < OF_ROW; ++c) chunks[i][group][c].fetch(a, row_of(group), step_of(slab, c), p);
    };
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) fetch_rows(i, warp + i * WARPS);

    float sum[TILES][GROUPS][4] = {};
    for (int first = warp; first < slabs; first += WARPS * AHEAD) {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int slab = first + i * WARPS;
            uint4 rows[GROUPS][OF_ROW];
#pragma unroll
            for (int group = 0; group < GROUPS; ++group)
#pragma unroll
                for (int c = 0; c < OF_ROW; ++c)
                    rows[group][c] = chunks[i][group][c].multiplied(row_of(group), step_of(slab, c), p);
#pragma unroll
            for (int t = 0; t < TILES; ++t) Kind::multiply(sum[t], weights[i][t], rows);
            fetch(i, slab + AHEAD * WARPS);
            fetch_rows(i, slab + AHEAD * WARPS);
        }
    }
#pragma unroll
    for (int t = 0; t < TILES; ++t)
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
#pragma unroll
            for (int s = 0; s < 4; ++s)
                shares[warp][group * MMA_ROWS + lane % 4 * 2 + s % 2][t * MMA_COLUMNS + lane / 4 + s / 2 * 8] =
                    sum[t][group][s];
    __syncthreads();
    // Each thread's own sums, in the same order every time.
    for (int e = threadIdx.x; e < p.m * TILE_COLUMNS; e += LANES * WARPS) {
        const int r = e / TILE_COLUMNS, c = e % TILE_COLUMNS, column = blockIdx.x * TILE_COLUMNS + c;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) total += shares[w][r][c];
#if SCALED
        total *= reinterpret_cast<const float*>(reinterpret_cast<const uint4*>(b) + slabs * apart)[column];
#endif
        if (WRITES) {
            shares[0][r][c] = total;
        } else if (column < p.n) {
            float v = p.alpha * total;
            if (bias) v += p.beta * bias[r * p.bias_stride_m + column * p.bias_stride_n];
            y[(index_t)r * p.n + column] = activate(v, p.activation);
        }
    }
    if (!WRITES) return;
    __syncthreads();
    constexpr int PIECES = TILE_COLUMNS / Kind::CHUNK;
    for (int e = threadIdx.x; e < p.m * PIECES; e += LANES * WARPS) {
        const int r = e / PIECES, c = e % PIECES * Kind::CHUNK, column = blockIdx.x * TILE_COLUMNS + c;
        if (column < p.n) write_chunk(&shares[0][r][c], bias, y, r, column, p);
    }
}
