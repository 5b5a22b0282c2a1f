// How sums of a product on tensor cores become y: rows of float32 or, with WRITES, of whole chunks in the element type of
// the product (Kind::chunk), with bias and activation; or as they are where they are one of several PARTS, which
// gemm_reduce adds. These lie in the scratch memory, from PARTS_AT(p) on.
#pragma once
#include "common.cuh"
#include "gemm_chunk.cuh"
#include "overlap.cuh"
#include "warp.cuh"

// A warp's ROWS × COLUMNS sums, which lie in rows of LEAD values in shared memory.
template <int ROWS, int COLUMNS, int LEAD>
__device__ __forceinline__ void write_rows(const float* out, int first_row, int first_column, int part,
                                           const float* bias, float* y, float* workspace, const GemmParams& p) {
    const int lane = threadIdx.x % LANES;
    if (WRITES && PARTS == 1) {
        for (int e = lane; e < ROWS * COLUMNS / Kind::CHUNK; e += LANES) {
            const int down = e / (COLUMNS / Kind::CHUNK), right = e % (COLUMNS / Kind::CHUNK) * Kind::CHUNK;
            const int r = first_row + down, c = first_column + right;
            if (r < p.m && c < p.n) write_chunk(out + down * LEAD + right, bias, y, r, c, p);
        }
        return;
    }
    // Four at a time where rows of y begin at 16 bytes and the bias is one number a column, as it nearly always is.
    const bool fours = PARTS == 1 && p.n % 4 == 0 && (!bias || (p.bias_stride_m == 0 && p.bias_stride_n == 1));
    if (fours && LEAD % 4 == 0) {
#pragma unroll 1
        for (int e = lane; e < ROWS * COLUMNS / 4; e += LANES) {
            const int down = e / (COLUMNS / 4), right = e % (COLUMNS / 4) * 4;
            const int r = first_row + down, c = first_column + right;
            if (r >= p.m || c >= p.n) continue;
            float4 v = *reinterpret_cast<const float4*>(out + down * LEAD + right);
            const float4 shift = bias ? *reinterpret_cast<const float4*>(bias + c) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            v.x = activate(p.alpha * v.x + p.beta * shift.x, p.activation);
            v.y = activate(p.alpha * v.y + p.beta * shift.y, p.activation);
            v.z = activate(p.alpha * v.z + p.beta * shift.z, p.activation);
            v.w = activate(p.alpha * v.w + p.beta * shift.w, p.activation);
            *reinterpret_cast<float4*>(y + (index_t)r * p.n + c) = v;
        }
        return;
    }
#pragma unroll 1
    for (int e = lane; e < ROWS * COLUMNS; e += LANES) {
        const int r = first_row + e / COLUMNS, c = first_column + e % COLUMNS;
        if (r >= p.m || c >= p.n) continue;
        const index_t place = (index_t)r * p.n + c;
        float v = out[e / COLUMNS * LEAD + e % COLUMNS];
        if (PARTS > 1) {
            workspace[PARTS_AT(p) + (index_t)part * p.m * p.n + place] = v;
            continue;
        }
        v *= p.alpha;
        if (bias) v += p.beta * bias[r * p.bias_stride_m + c * p.bias_stride_n];
        y[place] = activate(v, p.activation);
    }
}

// Adds the parts, always in the same order.
extern "C" __global__ void gemm_reduce(const float* __restrict__ a, const float* __restrict__ b,
                                       const float* __restrict__ bias, float* __restrict__ y,
                                       float* __restrict__ workspace, const GemmParams p) {
    let_next_begin();
    wait_for_previous();
    a = written(a);
    workspace = written(workspace);
    const index_t total = (index_t)p.m * p.n;
    const float* parts = workspace + PARTS_AT(p);
    if (WRITES) {
        const int chunks = (p.n + Kind::CHUNK - 1) / Kind::CHUNK;
        for (index_t i = first_element(); i < (index_t)p.m * chunks; i += grid_stride()) {
            const int r = i / chunks, c = i % chunks * Kind::CHUNK;
            float sums[Kind::CHUNK] = {};
            for (int part = 0; part < PARTS; ++part)
#pragma unroll
                for (int e = 0; e < Kind::CHUNK; ++e)
                    if (c + e < p.n) sums[e] += parts[part * total + (index_t)r * p.n + c + e];
            write_chunk(sums, bias, y, r, c, p);
        }
        return;
    }
    for (index_t i = first_element(); i < total; i += grid_stride()) {
        float sum = 0.0f;
#pragma unroll 16
        for (int part = 0; part < PARTS; ++part) sum += parts[part * total + i];
        float v = p.alpha * sum;
        if (bias) v += p.beta * bias[i / p.n * p.bias_stride_m + i % p.n * p.bias_stride_n];
        y[i] = activate(v, p.activation);
    }
}
