/*
op = "attention"
rung = 5
name = "keys_by_warp_fp16"
idea = "Warps of a block share 16 queries and divide the keys, of which they read into registers just what the tensor cores take of each lane; in the end they add up what they have."
launch = "attention_by_warp"
precision = ["fp16", "bf16"]
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
DEPTH = 64    # elements of a query and a key, filled up to sixteens; the launch sets these five
DEPTH_V = 64  # of a value, filled up to 32
WARPS = 4     # of a block
SHARES = 4    # of the keys, each a warp's: a power of two that divides WARPS
ALIGNED = 1     # whether rows begin at 16 bytes, so that four elements are read at once
READS = 0     # how q lies, packed with k and v in rows: by its place in `reads`
WRITES = 0    # and y
[needs]
compute_capability = "8.0"
*/
// Warps that have other queries of the same head find the keys in the first cache. Parts of the keys are joined as in
// Flash-Decoding (Dao et al. 2023).
#include "attention_lanes.cuh"
#include "overlap.cuh"

#define GROUPS (WARPS / SHARES)  // of queries in a block

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    let_next_begin();
    const int groups = (p.queries + GROUPS * ROWS - 1) / (GROUPS * ROWS);
    const int head = blockIdx.x / groups % p.heads;
    const index_t image = blockIdx.x / groups / p.heads;
    const int warp = threadIdx.x / 32, share = warp % SHARES, group = warp / SHARES;
    const int top = (blockIdx.x % groups * GROUPS + group) * ROWS;
    wait_for_previous();
    const Inputs of = inputs_of(written(q), written(k), written(v), mask ? written(mask) : mask, image, head, p);
    Sixteen own(top, of, p);
    for (int first = share * TILE; first < p.keys; first += SHARES * TILE) {
        // In the place of what is beyond them the last ones: they weigh nothing.
        auto key = [&](int j, int e) { return pairs(of.keys + min(first + j, p.keys - 1) * of.row_k, e, p.depth); };
        auto value = [&](int j, int e) {
            return columns(of.values + min(first + j, p.keys - 1) * of.row_v,
                           of.values + min(first + j + 1, p.keys - 1) * of.row_v, e, p.depth_v);
        };
        own.add(first, of.mask, p, key, value);
    }
    own.add_weights();
    const Heads of_y = heads_of(p, 3);

#if SHARES == 1
    own.write(y, of_y, image, head, p);
#else
    __shared__ float tops[WARPS][ROWS], totals[WARPS][ROWS];
    __shared__ __align__(16) float parts[WARPS][ROWS][DEPTH_V];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (own.pair == 0) tops[warp][own.line + 8 * h] = own.largest[h];
    }
    __syncthreads();  // the largest score of each warp is known
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = own.line + 8 * h;
        float most = minus_infinity();
#pragma unroll
        for (int s = 0; s < SHARES; ++s) most = larger(most, tops[group * SHARES + s][row]);
        const float kept = weight_of(own.largest[h], base_of(most));
        if (own.pair == 0) totals[warp][row] = own.weights[h] * kept;
#pragma unroll
        for (int n = 0; n < QUARTERS; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float4 four = own.four_of(h, n, i);
                *reinterpret_cast<float4*>(&parts[warp][row][own.element_of(n, i)]) =
                    make_float4(four.x * kept, four.y * kept, four.z * kept, four.w * kept);
            }
    }
    __syncthreads();  // what each warp has is there
    for (int i = share * 32 + threadIdx.x % 32; i < ROWS * DEPTH_V / 4; i += 32 * SHARES) {
        const int row = i / (DEPTH_V / 4), e = i % (DEPTH_V / 4) * 4;
        float total = 0.0f;
        float4 whole = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int s = 0; s < SHARES; ++s) {
            const float4 part = *reinterpret_cast<const float4*>(&parts[group * SHARES + s][row][e]);
            whole = make_float4(whole.x + part.x, whole.y + part.y, whole.z + part.z, whole.w + part.w);
            total += totals[group * SHARES + s][row];
        }
        write_four(y, of_y, image, head, top + row, e, whole, total, p);
    }
#endif
}
