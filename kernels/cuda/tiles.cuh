// Tiles of a matrix product on their way from global memory to shared memory.
//
// Pack<N>: N floats that move in one instruction. Operand<WIDE, DEPTH, ALONG_K, V, THREADS>: a tile of one factor,
// WIDE rows (or columns) of the product by DEPTH steps of the sum. It lies contiguous along the sum (ALONG_K) or
// across it, is read V elements at once in that direction, and is kept as tile[step][row].
#pragma once

template <int N>
struct __align__(4 * N) Pack {
    float v[N];
};

template <int N>
__device__ __forceinline__ Pack<N> pack_at(const float* p) {
    return *reinterpret_cast<const Pack<N>*>(p);
}

// How many of a thread's COUNT outputs lie side by side: as many as one load from shared memory brings.
constexpr int side_by_side(int count) { return count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1; }

template <int WIDE, int DEPTH, bool ALONG_K, int V, int THREADS>
struct Operand {
    static constexpr int PACKS = WIDE * DEPTH / V, LOADS = (PACKS + THREADS - 1) / THREADS;
    static_assert((ALONG_K ? DEPTH : WIDE) % V == 0, "a pack must not pass the end of the tile");
    Pack<V> held[LOADS];

    static __device__ __forceinline__ int row(int e) { return ALONG_K ? e / (DEPTH / V) : e % (WIDE / V) * V; }
    static __device__ __forceinline__ int step(int e) { return ALONG_K ? e % (DEPTH / V) * V : e / (WIDE / V); }

    // From the tile whose first element is *p: neighbours across the contiguous direction are `lead` apart.
    // What lies beyond `rows` or `steps` is zero.
    __device__ __forceinline__ void fetch(const float* p, index_t lead, int rows, int steps) {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int e = threadIdx.x + l * THREADS, i = row(e), j = step(e);
            const bool inside = i < rows && j < steps && (PACKS % THREADS == 0 || e < PACKS);
            held[l] = inside ? pack_at<V>(p + (ALONG_K ? i * lead + j : j * lead + i)) : Pack<V>{};
        }
    }

    __device__ __forceinline__ void keep(float (*tile)[WIDE + 4]) const {
#pragma unroll
        for (int l = 0; l < LOADS; ++l) {
            const int e = threadIdx.x + l * THREADS;
            if (PACKS % THREADS != 0 && e >= PACKS) break;
            if (ALONG_K) {
#pragma unroll
                for (int v = 0; v < V; ++v) tile[step(e) + v][row(e)] = held[l].v[v];
            } else {
                *reinterpret_cast<Pack<V>*>(&tile[step(e)][row(e)]) = held[l];
            }
        }
    }
};

// How a tile of TILE_M × TILE_N outputs is divided among the threads of a block, THREAD_M × THREAD_N each.
#define ACROSS (TILE_N / THREAD_N)
#define BANDS (TILE_M / THREAD_M)  // threads one above the other
#define THREADS ((TILE_M / THREAD_M) * ACROSS)
#define ROWS side_by_side(THREAD_M)
#define COLUMNS side_by_side(THREAD_N)
#define BLOCKS_AT_ONCE (THREAD_M * THREAD_N > 64 ? 256 / THREADS : THREADS < 256 ? 384 / THREADS : 2)  // to leave registers for

// Which band of the tile a thread has, and which strip across it. A warp has 4 bands × 8 strips, and its lanes are woven:
// neighbours (l and l ^ 1) have one band, those next to them (l and l ^ 2) one strip. Then shared memory answers a
// warp's reads of 16 bytes, of either factor, in two turns instead of up to four: it merges those of two quarters of a
// warp only where such lanes read the same.
#define WOVEN (ACROSS % 8 == 0 && BANDS % 4 == 0)

__device__ __forceinline__ int band_of(int thread) {
    return WOVEN ? thread / 32 / (ACROSS / 8) * 4 + thread / 16 % 2 * 2 + thread / 2 % 2 : thread / ACROSS;
}

__device__ __forceinline__ int strip_of(int thread) {
    return WOVEN ? thread / 32 % (ACROSS / 8) * 8 + thread / 4 % 4 * 2 + thread % 2 : thread % ACROSS;
}
