// A product with a few rows on tensor cores, bound by reading b: each warp streams the weights of sixteen columns from
// global memory straight into the registers that mma.sync wants them in (mma.cuh), several slabs of the sum ahead, and
// nobody waits for anybody before the sum is complete. The warps of a block share the sum of the same columns.
// Included behind the rung's struct Kind.
//
// READS, WRITES: a and y are rows of whole chunks in the element type of the product (nhwc.cuh: images of one pixel),
// filled up with zeros.
#pragma once
#include "common.cuh"
#include "gemm_chunk.cuh"
#include "overlap.cuh"

#define GROUPS ((ALL_ROWS + MMA_ROWS - 1) / MMA_ROWS)  // of rows, an instruction each
#define SLAB_CHUNKS (TILE_COLUMNS * CHUNKS)        // of a slab of a block's columns
#define ROW_LEAD (TILE_COLUMNS + 4)
static_assert(TILE_COLUMNS == MMA_COLUMNS, "a block has the columns of one instruction");

// A lane's chunk of row r of a, from step k on; zeros where there is none.
__device__ __forceinline__ uint4 chunk_of_row(const float* a, int r, int k, const GemmParams& p) {
    if (r >= p.m || k >= p.k) return uint4{};
    if (READS) return reinterpret_cast<const uint4*>(a)[(r * ((p.k + Kind::CHUNK - 1) / Kind::CHUNK)) + k / Kind::CHUNK];
    const float* from = a + (index_t)r * p.k + k;
    float v[Kind::CHUNK];
    if (p.k % Kind::CHUNK == 0) {  // every row of a then begins on 16 bytes, as the tensor does
#pragma unroll
        for (int e = 0; e < Kind::CHUNK; e += 4) {
            const float4 four = *reinterpret_cast<const float4*>(from + e);
            v[e] = four.x, v[e + 1] = four.y, v[e + 2] = four.z, v[e + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int e = 0; e < Kind::CHUNK; ++e) v[e] = k + e < p.k ? from[e] : 0.0f;
    }
    return Kind::chunk(v);
}

extern "C" __global__ void __launch_bounds__(LANES * WARPS)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ y, const GemmParams p) {
    __shared__ __align__(16) float shares[WARPS][GROUPS * MMA_ROWS][ROW_LEAD];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int slabs = (p.k + DEPTH - 1) / DEPTH;
    // b comes packed, by slab and column (a whole number of blocks' columns). Warp w has slabs w, w + WARPS and so on.
    const index_t apart = (index_t)gridDim.x * SLAB_CHUNKS;
    const uint4* packed = reinterpret_cast<const uint4*>(b) + (index_t)blockIdx.x * SLAB_CHUNKS + lane;
    uint4 weights[AHEAD][2];
    auto fetch = [&](int i, int slab) {
        const uint4* from = packed + (slab < slabs ? slab : 0) * apart;
        weights[i][0] = slab < slabs ? from[0] : uint4{};
        weights[i][1] = slab < slabs ? from[LANES] : uint4{};
    };
    let_next_begin();
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) fetch(i, warp + i * WARPS);
    wait_for_previous();
    a = written(a);

    float sum[GROUPS][4] = {};
    for (int first = warp; first < slabs; first += WARPS * AHEAD) {
        uint4 rows[AHEAD][GROUPS];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i)
#pragma unroll
            for (int group = 0; group < GROUPS; ++group)
                rows[i][group] = chunk_of_row(a, group * MMA_ROWS + lane / CHUNKS,
                                              (first + i * WARPS) * DEPTH + lane % CHUNKS * Kind::CHUNK, p);
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
#pragma unroll
            for (int group = 0; group < GROUPS; ++group)
                Kind::multiply(sum[group], weights[i][0], weights[i][1], rows[i][group]);
            fetch(i, first + (AHEAD + i) * WARPS);
        }
    }
#pragma unroll
    for (int group = 0; group < GROUPS; ++group)
#pragma unroll
        for (int s = 0; s < 4; ++s)
            shares[warp][group * MMA_ROWS + lane % 4 * 2 + s % 2][lane / 4 + s / 2 * 8] = sum[group][s];
    __syncthreads();
    // Each thread's own sums, in the same order every time.
    for (int e = threadIdx.x; e < p.m * TILE_COLUMNS; e += LANES * WARPS) {
        const int r = e / TILE_COLUMNS, c = e % TILE_COLUMNS, column = blockIdx.x * TILE_COLUMNS + c;
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) total += shares[w][r][c];
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
