/*
op = "attention"
rung = 6
name = "keys_by_warp"
idea = "Warps of a block share 16 queries and divide the keys: each has 32 of them in shared memory of its own, waits for no other warp until the end, and then they add up what they have."
launch = "attention_by_warp_in_shared"
overlaps = true
[defines]
DEPTH = 64    # elements of a query and a key, filled up to sixteens; the launch sets these five
DEPTH_V = 64  # of a value, filled up to 32
WARPS = 4     # of a block
SHARES = 4    # of the keys, each a warp's: a power of two that divides WARPS
ALIGNED = 1   # whether rows begin at 16 bytes, so that four elements are read at once
[prefers]
require = ["batch * heads * queries * depth_v < 1000000"]
*/
// A lane has 4 queries and 4 keys of the scores, and the same 4 queries and DEPTH_V / 8 elements of the sums; lanes are woven
// as in tiles.cuh. The softmax
// is kept up as in FlashAttention-2 (Dao 2023), and parts of the keys are joined as in Flash-Decoding (Dao et al. 2023).
// SLICE terms of a score and TILE of a sum are added up by themselves, and so are the pieces of TOGETHER tiles (sums.cuh).
#include "common.cuh"
#include "attention.cuh"
#include "attention_by_warp.cuh"
#include "overlap.cuh"
#include "sums.cuh"

#define ROWS 16      // queries of a warp
#define TILE 32      // keys of a warp at a time
#define OWN 4        // queries and keys of a lane
#define SLICE 32     // elements of queries and keys
#define TOGETHER 16  // tiles
#define ALL 0xffffffffu
#define QUARTERS (DEPTH_V / 32)
#define GROUPS (WARPS / SHARES)            // of queries in a block
#define LINE (DEPTH + 4)                   // eight lines, four elements of each, then lie in different banks
#define WIDEST (LINE > DEPTH_V ? LINE : DEPTH_V)
#define LINE_W (ROWS + 4)                  // weights of a key
#define ROOM (TILE * (WIDEST + LINE_W))    // floats of a warp

// Rows of TILE keys or values, or of fewer queries, of which there are `count`, into lines of shared memory; zeros beyond.
template <int WIDTH, int LINES, int STEP>
__device__ __forceinline__ void fetch(float* to, int line, const float* from, index_t row, int count, int elements, int first) {
#pragma unroll 8
    for (int i = first; i < LINES * WIDTH / 4; i += STEP) {
        const int r = i / (WIDTH / 4), e = i % (WIDTH / 4) * 4;
        *reinterpret_cast<float4*>(to + r * line + e) = four(from + r * row, r < count, e, elements);
    }
}

extern __shared__ float4 dynamic[];

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    __shared__ float tops[WARPS][ROWS], totals[WARPS][ROWS];
    let_next_begin();
    float* memory = reinterpret_cast<float*>(dynamic);
    const Heads of_q = heads_of(p, 0), of_k = heads_of(p, 1), of_v = heads_of(p, 2), of_y = heads_of(p, 3);
    const int groups = (p.queries + GROUPS * ROWS - 1) / (GROUPS * ROWS);
    const int head = blockIdx.x / groups % p.heads;
    const index_t image = blockIdx.x / groups / p.heads;
    const int shared = head / (p.heads / p.kv_heads);
    const int warp = threadIdx.x / 32, share = warp % SHARES, group = warp / SHARES;
    const int lane = threadIdx.x % 32, row = lane / 16 * 2 + lane / 2 % 2, column = lane / 4 % 4 * 2 + lane % 2;
    const int top = (blockIdx.x % groups * GROUPS + group) * ROWS;  // a lane has queries row, row + 4, … of them
    float* some_q = memory + group * ROWS * LINE;
    float* room = memory + GROUPS * ROWS * LINE + warp * ROOM;  // of keys, then of values
    float* weight = room + TILE * WIDEST;                       // by key: the queries of row 0, of row 1, …
    wait_for_previous();
    unpack(q, k, v, mask, p);
    const float* queries = written(q) + image * of_q.image + head * of_q.head + top * of_q.row;
    const float* keys = written(k) + image * of_k.image + shared * of_k.head;
    const float* values = written(v) + image * of_v.image + shared * of_v.head;
    const float* of_mask = mask ? written(mask) + image * p.mask_image + head * p.mask_head : mask;

    fetch<DEPTH, ROWS, 32 * SHARES>(some_q, LINE, queries, of_q.row, p.queries - top, p.depth, share * 32 + lane);
    if (SHARES > 1)
        __syncthreads();  // the queries are there
    else
        __syncwarp();
    float sum[4 * QUARTERS][OWN] = {}, largest[OWN], since[OWN];  // since the sums began: what those before shrink by
    Scaled weights[OWN];                                          // of this lane's keys alone
    Wholes<16 * QUARTERS> wholes(p.keys);
    int taken = 0, tiles = 0;
#pragma unroll
    for (int i = 0; i < OWN; ++i) largest[i] = minus_infinity(), since[i] = 1.0f;

    for (int first = share * TILE; first < p.keys; first += SHARES * TILE) {
        const int count = min(TILE, p.keys - first);
        fetch<DEPTH, TILE, 32>(room, LINE, keys + first * of_k.row, of_k.row, count, p.depth, lane);
        __syncwarp();  // the keys are there
        float score[OWN][OWN] = {};
#pragma unroll 1
        for (int slice = 0; slice < DEPTH; slice += SLICE) {
            float part[OWN][OWN] = {};
#pragma unroll 2
            for (int e = slice; e < min(DEPTH, slice + SLICE); e += 4) {
                float4 a[OWN], b[OWN];
#pragma unroll
                for (int i = 0; i < OWN; ++i) a[i] = *reinterpret_cast<const float4*>(some_q + (row + 4 * i) * LINE + e);
#pragma unroll
                for (int j = 0; j < OWN; ++j) b[j] = *reinterpret_cast<const float4*>(room + (column + 8 * j) * LINE + e);
#pragma unroll
                for (int i = 0; i < OWN; ++i)
#pragma unroll
                    for (int j = 0; j < OWN; ++j) {
                        part[i][j] += a[i].x * b[j].x;
                        part[i][j] += a[i].y * b[j].y;
                        part[i][j] += a[i].z * b[j].z;
                        part[i][j] += a[i].w * b[j].w;
                    }
            }
#pragma unroll
            for (int i = 0; i < OWN; ++i)
#pragma unroll
                for (int j = 0; j < OWN; ++j) score[i][j] += part[i][j];
        }
        __syncwarp();  // the keys have been read, and the weights of the tile before
        fetch<DEPTH_V, TILE, 32>(room, DEPTH_V, values + first * of_v.row, of_v.row, count, p.depth_v, lane);
        float kept[OWN];
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const int query = top + row + 4 * i;
            float now = largest[i];
#pragma unroll
            for (int j = 0; j < OWN; ++j) {
                const int key = column + 8 * j;
                score[i][j] = query < p.queries && key < count ? score_of(score[i][j], query, first + key, of_mask, p)
                                                               : minus_infinity();
                now = larger(now, score[i][j]);
            }
#pragma unroll
            for (int d = 1; d < 16; d += d < 2 ? 3 : d) now = larger(now, __shfl_xor_sync(ALL, now, d));
            const float base = base_of(now);
            kept[i] = expf(largest[i] - base);
            largest[i] = now;
            float added = 0.0f;
#pragma unroll
            for (int j = 0; j < OWN; ++j) {
                score[i][j] = expf(score[i][j] - base);
                added += score[i][j];
            }
            weights[i].add(kept[i], added);
            since[i] *= kept[i];
        }
#pragma unroll
        for (int j = 0; j < OWN; ++j)
            *reinterpret_cast<float4*>(weight + (column + 8 * j) * LINE_W + 4 * row) =
                make_float4(score[0][j], score[1][j], score[2][j], score[3][j]);
        __syncwarp();  // values and weights are there
        float added[4 * QUARTERS][OWN] = {};
#pragma unroll 2
        for (int key = 0; key < TILE; ++key) {  // weights beyond the keys are zeros, and so are values
            const float4 w = *reinterpret_cast<const float4*>(weight + key * LINE_W + 4 * row);
            const float of_w[OWN] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int n = 0; n < QUARTERS; ++n) {
                const float4 b = *reinterpret_cast<const float4*>(room + key * DEPTH_V + 32 * n + 4 * column);
#pragma unroll
                for (int i = 0; i < OWN; ++i) {
                    added[4 * n][i] += of_w[i] * b.x;
                    added[4 * n + 1][i] += of_w[i] * b.y;
                    added[4 * n + 2][i] += of_w[i] * b.z;
                    added[4 * n + 3][i] += of_w[i] * b.w;
                }
            }
        }
#pragma unroll
        for (int n = 0; n < 4 * QUARTERS; ++n)
#pragma unroll
            for (int i = 0; i < OWN; ++i) sum[n][i] = sum[n][i] * kept[i] + added[n][i];
        if (++tiles % TOGETHER == 0) {
            wholes.take(&sum[0][0], taken++, make_float4(since[0], since[1], since[2], since[3]));
#pragma unroll
            for (int i = 0; i < OWN; ++i) since[i] = 1.0f;
        }
        __syncwarp();  // the values have been read
    }
    wholes.give(&sum[0][0], taken, make_float4(since[0], since[1], since[2], since[3]));
    float whole_weight[OWN];
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        whole_weight[i] = weights[i].total();
#pragma unroll
        for (int d = 1; d < 16; d += d < 2 ? 3 : d) whole_weight[i] += __shfl_xor_sync(ALL, whole_weight[i], d);
    }
    float* to = y + image * of_y.image + head * of_y.head;

#if SHARES > 1
#pragma unroll
    for (int i = 0; i < OWN; ++i)
        if (column == 0) tops[warp][row + 4 * i] = largest[i];
    __syncthreads();  // the largest score of each warp is known
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        float most = minus_infinity();
#pragma unroll
        for (int s = 0; s < SHARES; ++s) most = larger(most, tops[group * SHARES + s][row + 4 * i]);
        const float kept = expf(largest[i] - base_of(most));
        if (column == 0) totals[warp][row + 4 * i] = whole_weight[i] * kept;
#pragma unroll
        for (int n = 0; n < QUARTERS; ++n)
            *reinterpret_cast<float4*>(room + (row + 4 * i) * DEPTH_V + 32 * n + 4 * column) =
                make_float4(sum[4 * n][i] * kept, sum[4 * n + 1][i] * kept, sum[4 * n + 2][i] * kept,
                            sum[4 * n + 3][i] * kept);
    }
    __syncthreads();  // what each warp has is there
    for (int i = share * 32 + lane; i < ROWS * DEPTH_V / 4; i += 32 * SHARES) {
        const int r = i / (DEPTH_V / 4), e = i % (DEPTH_V / 4) * 4;
        if (top + r >= p.queries) continue;
        float total = 0.0f;
        float4 whole = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int s = 0; s < SHARES; ++s) {
            const float4 part = *reinterpret_cast<const float4*>(room + (s - share) * ROOM + r * DEPTH_V + e);
            whole = make_float4(whole.x + part.x, whole.y + part.y, whole.z + part.z, whole.w + part.w);
            total += totals[group * SHARES + s][r];
        }
        give(to + (top + r) * of_y.row, e, whole, divisor(total, p), p.depth_v);
    }
#else
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        const int query = top + row + 4 * i;
        if (query >= p.queries) continue;
        const float by = divisor(whole_weight[i], p);
#pragma unroll
        for (int n = 0; n < QUARTERS; ++n)
            give(to + query * of_y.row, 32 * n + 4 * column,
                 make_float4(sum[4 * n][i], sum[4 * n + 1][i], sum[4 * n + 2][i], sum[4 * n + 3][i]), by, p.depth_v);
    }
#endif
}
