/*
op = "attention"
rung = 7
name = "tiles_ahead_fp16"
idea = "Many queries: four warps share tiles of 32 keys and values, which asynchronous copies bring as they lie while the tile before is worked on; they are rounded on their way out of shared memory."
launch = "attention_ahead"
precision = ["fp16", "bf16"]
overlaps = true
reads = ["nchw float32", "nhwc float16"]
writes = ["nchw float32", "nhwc float16"]
[defines]
DEPTH = 64    # elements of a query and a key, filled up to sixteens; the launch sets these four
DEPTH_V = 64  # of a value, filled up to 32
PITCH_K = 80  # elements from one key to the next in shared memory, so that few of a warp's reads meet in a bank
PITCH_V = 68  # and of values
READS = 0     # how q lies, packed with k and v in rows: by its place in `reads`
WRITES = 0    # and y
[needs]
compute_capability = "8.0"
[prefers]
outputs_min = 1000000
*/
#define ALIGNED 1
#include "async.cuh"
#include "attention_lanes.cuh"
#include "overlap.cuh"

#define WARPS 4
#define THREADS (32 * WARPS)
#define EACH (READS ? 8 : 4)  // elements of 16 bytes

extern __shared__ float4 dynamic[];

extern "C" __global__ void __launch_bounds__(THREADS, DEPTH + DEPTH_V > 128 ? 2 : 3)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    let_next_begin();
    number* memory = reinterpret_cast<number*>(dynamic);  // two tiles of keys, two of values
    const int groups = (p.queries + WARPS * ROWS - 1) / (WARPS * ROWS);
    const int head = blockIdx.x / groups % p.heads;
    const index_t image = blockIdx.x / groups / p.heads;
    const int top = (blockIdx.x % groups * WARPS + threadIdx.x / 32) * ROWS;
    wait_for_previous();
    const Inputs of = inputs_of(written(q), written(k), written(v), mask ? written(mask) : mask, image, head, p);

    auto fetch = [&](int first) {
        number* keys = memory + first / TILE % 2 * TILE * PITCH_K;
        number* values = memory + 2 * TILE * PITCH_K + first / TILE % 2 * TILE * PITCH_V;
#pragma unroll
        for (int i = threadIdx.x; i < TILE * DEPTH / EACH; i += THREADS) {
            const int row = i / (DEPTH / EACH), e = i % (DEPTH / EACH) * EACH;
            const bool inside = first + row < p.keys && e < p.depth;
            copy_async_16(keys + row * PITCH_K + e, of.keys + (inside ? (first + row) * of.row_k + e : 0), inside);
        }
#pragma unroll
        for (int i = threadIdx.x; i < TILE * DEPTH_V / EACH; i += THREADS) {
            const int row = i / (DEPTH_V / EACH), e = i % (DEPTH_V / EACH) * EACH;
            const bool inside = first + row < p.keys && e < p.depth_v;
            copy_async_16(values + row * PITCH_V + e, of.values + (inside ? (first + row) * of.row_v + e : 0), inside);
        }
        close_group();
    };
    fetch(0);
    Sixteen own(top, of, p);
    for (int first = 0; first < p.keys; first += TILE) {
        wait_for_all_but<0>();
        __syncthreads();  // this tile is whole, and nobody needs the one before any more
        if (first + TILE < p.keys) fetch(first + TILE);
        const number* keys = memory + first / TILE % 2 * TILE * PITCH_K;
        const number* values = memory + 2 * TILE * PITCH_K + first / TILE % 2 * TILE * PITCH_V;
        auto key = [&](int j, int e) { return pairs(keys + j * PITCH_K, e, DEPTH); };
        auto value = [&](int j, int e) { return columns(values + j * PITCH_V, values + (j + 1) * PITCH_V, e, DEPTH_V); };
        own.add(first, of.mask, p, key, value);
    }
    own.add_weights();
    own.write(y, heads_of(p, 3), image, head, p);
}
