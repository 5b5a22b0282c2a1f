/*
op = "attention"
rung = 2
name = "tiles"
idea = "A block 64 queries: tiles of 64 keys and their values pass through shared memory, and a thread keeps 4 × 4 scores and its share of the sums in registers."
launch = "attention_tiles"
[defines]
ACROSS = 4  # elements of the answer a thread has of each of its queries; the launch sets it
*/
// FlashAttention (Dao et al. 2022): the scores stay on the chip, and the softmax is kept up tile by tile as Milakov and
// Gimelshein do (2018). Of each query the largest score so far and the sum of the exponentials of the differences from it
// are known; where a tile has a larger one, what was summed shrinks by the exponential of what they differ by. SLICE terms
// are added up by themselves, and so are the pieces of TOGETHER tiles (sums.cuh).
#include "common.cuh"
#include "attention.cuh"
#include "sums.cuh"

#define TILE 64                         // queries of a block, keys of a tile
#define SIDE 16                         // threads along each side: each has OWN queries and OWN keys
#define OWN 4
#define SLICE 32                        // elements of queries and keys in shared memory at a time
#define LINE (TILE + 4)                 // so that 16-byte reads stay aligned and few of them meet in a bank
#define WIDTH (ACROSS * SIDE)           // elements of the answer, filled up
#define ROOM (2 * SLICE * LINE)         // floats
#define VALUES (ROOM / WIDTH < TILE ? ROOM / WIDTH / 4 * 4 : TILE)  // of a tile in shared memory at a time
#define TOGETHER 8                      // tiles
#define ALL 0xffffffffu

// The sum, or the largest, of what the threads of a row have: SIDE of them, side by side.
__device__ __forceinline__ float of_side(float v, bool add) {
#pragma unroll
    for (int d = SIDE / 2; d; d /= 2) {
        const float other = __shfl_xor_sync(ALL, v, d);
        v = add ? v + other : larger(v, other);
    }
    return v;
}

// Elements `first` and on of TILE rows from `from` on, as columns; 0 beyond the rows and the elements.
__device__ __forceinline__ void turned(float* to, const float* from, index_t row, int rows, int first, int elements) {
    for (int i = threadIdx.x; i < TILE * SLICE; i += SIDE * SIDE) {
        const int e = i % SLICE, r = i / SLICE;
        to[e * LINE + r] = r < rows && first + e < elements ? from[r * row + first + e] : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(SIDE* SIDE, ACROSS <= 4 ? 2 : 1)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const float* __restrict__ mask, float* __restrict__ y, const AttentionParams p) {
    // Slices of queries and keys, then in the same place some of the values; and the weights, key by key.
    __shared__ __align__(16) float room[ROOM];
    __shared__ __align__(16) float weight[TILE * LINE];
    float *some_q = room, *some_k = room + SLICE * LINE, *some_v = room;
    unpack(q, k, v, mask, p);
    const Heads of_q = heads_of(p, 0), of_k = heads_of(p, 1), of_v = heads_of(p, 2), of_y = heads_of(p, 3);
    const int tiles = (p.queries + TILE - 1) / TILE;
    const int top = blockIdx.x % tiles * TILE;
    const int head = blockIdx.x / tiles % p.heads;
    const int image = blockIdx.x / tiles / p.heads;
    const int shared = head / (p.heads / p.kv_heads);
    const int rows = min(TILE, p.queries - top);
    const float* queries = q + image * of_q.image + head * of_q.head + top * of_q.row;
    const float* keys = k + image * of_k.image + shared * of_k.head;
    const float* values = v + image * of_v.image + shared * of_v.head;
    const float* of_mask = mask ? mask + image * p.mask_image + head * p.mask_head : mask;
    const int column = threadIdx.x % SIDE, row = threadIdx.x / SIDE * OWN;

    float sum[ACROSS][OWN] = {}, largest[OWN], since[OWN];  // since the sums began: what those before them shrink by
    Scaled weights[OWN];
    Wholes<OWN * ACROSS> wholes(p.keys);
    int taken = 0;  // pieces
#pragma unroll
    for (int i = 0; i < OWN; ++i) largest[i] = minus_infinity(), since[i] = 1.0f;
    for (int first = 0; first < p.keys; first += TILE) {
        const int count = min(TILE, p.keys - first);
        float score[OWN][OWN] = {};
        for (int slice = 0; slice < p.depth; slice += SLICE) {
            __syncthreads();  // what was in the room has been read
            turned(some_q, queries, of_q.row, rows, slice, p.depth);
            turned(some_k, keys + first * of_k.row, of_k.row, count, slice, p.depth);
            __syncthreads();  // the slices are whole
            float part[OWN][OWN] = {};
#pragma unroll 4
            for (int e = 0; e < SLICE; ++e) {
                const float4 a = *reinterpret_cast<const float4*>(&some_q[e * LINE + row]);
                const float4 b = *reinterpret_cast<const float4*>(&some_k[e * LINE + column * OWN]);
                const float of_a[OWN] = {a.x, a.y, a.z, a.w}, of_b[OWN] = {b.x, b.y, b.z, b.w};
#pragma unroll
                for (int i = 0; i < OWN; ++i)
#pragma unroll
                    for (int j = 0; j < OWN; ++j) part[i][j] += of_a[i] * of_b[j];
            }
#pragma unroll
            for (int i = 0; i < OWN; ++i)
#pragma unroll
                for (int j = 0; j < OWN; ++j) score[i][j] += part[i][j];
        }
        float kept[OWN];
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            float top_score = largest[i];
#pragma unroll
            for (int j = 0; j < OWN; ++j) {
                const int key = column * OWN + j;
                score[i][j] = row + i < rows && key < count
                                  ? score_of(score[i][j], top + row + i, first + key, of_mask, p)
                                  : minus_infinity();
                top_score = larger(top_score, score[i][j]);
            }
            top_score = of_side(top_score, false);
            const float base = base_of(top_score);
            kept[i] = expf(largest[i] - base);
            largest[i] = top_score;
            float added = 0.0f;
#pragma unroll
            for (int j = 0; j < OWN; ++j) {
                score[i][j] = expf(score[i][j] - base);
                added += score[i][j];
            }
            weights[i].add(kept[i], of_side(added, true));
            since[i] *= kept[i];
#pragma unroll
            for (int e = 0; e < ACROSS; ++e) sum[e][i] *= kept[i];
        }
#pragma unroll
        for (int j = 0; j < OWN; ++j)  // those of the tile before were read before the last barrier
            *reinterpret_cast<float4*>(&weight[(column * OWN + j) * LINE + row]) =
                make_float4(score[0][j], score[1][j], score[2][j], score[3][j]);

        for (int begin = 0; begin < count; begin += VALUES) {
            const int some = min(VALUES, count - begin);
            __syncthreads();  // what was in the room has been read, and the weights are whole
            for (int i = threadIdx.x; i < some * WIDTH; i += SIDE * SIDE) {
                const int e = i % WIDTH, r = i / WIDTH;
                some_v[i] = e < p.depth_v ? values[(first + begin + r) * of_v.row + e] : 0.0f;
            }
            __syncthreads();  // the values are there
            for (int piece = 0; piece < some; piece += SLICE) {
                float added[ACROSS][OWN] = {};
#pragma unroll 4
                for (int r = piece; r < min(some, piece + SLICE); ++r) {
                    const float4 w = *reinterpret_cast<const float4*>(&weight[(begin + r) * LINE + row]);
                    const float of_w[OWN] = {w.x, w.y, w.z, w.w};
#pragma unroll
                    for (int e = 0; e < ACROSS; ++e) {
                        const float of_v = some_v[r * WIDTH + e * SIDE + column];
#pragma unroll
                        for (int i = 0; i < OWN; ++i) added[e][i] += of_w[i] * of_v;
                    }
                }
#pragma unroll
                for (int e = 0; e < ACROSS; ++e)
#pragma unroll
                    for (int i = 0; i < OWN; ++i) sum[e][i] += added[e][i];
            }
        }
        if ((first + TILE) % (TOGETHER * TILE) == 0) {
            wholes.take(&sum[0][0], taken++, make_float4(since[0], since[1], since[2], since[3]));
#pragma unroll
            for (int i = 0; i < OWN; ++i) since[i] = 1.0f;
        }
        __syncthreads();  // the weights have been read
    }
    wholes.give(&sum[0][0], taken, make_float4(since[0], since[1], since[2], since[3]));
    float* to = y + image * of_y.image + head * of_y.head + top * of_y.row;
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        if (row + i >= rows) continue;
        const float by = divisor(weights[i].total(), p);
#pragma unroll
        for (int e = 0; e < ACROSS; ++e)
            if (e * SIDE + column < p.depth_v) to[(row + i) * of_y.row + e * SIDE + column] = sum[e][i] / by;
    }
}
