// A net's convolutions and products on tensor cores, in TF32: the images of a value lie side by side, and eight of them are
// the eight rows or columns of an instruction as they lie (mma_sync.cuh). Included by net.cuh.
#pragma once
#include "half.cuh"
#include "mma_sync.cuh"

#define TOGETHER 8                       // images of an instruction
#define STEPS 8                          // of its sum
#define IMAGE_TILES (IMAGES / TOGETHER)  // of a group

// A convolution, and the pool over it where Kind is one (else -1): a warp computes Down × 2 outputs that lie side by side,
// a pool's window, of TOGETHER images, in all maps of a group. An instruction's sixteen are two pixels of eight images, its
// eight are maps. Steps of the sum are taps; where each lies, from a window's corner on, a table says. Weights lie in shared
// memory as lanes take them, (group, STEPS taps, eight maps, lane, 2), the biases behind them and then the table.
template <class In, class Out, int At, int Channels, int Outputs, int Groups, int Kh, int Kw, int StrideH, int StrideW,
          int OutH, int OutW, int Down, int Kind, int Between, int After>
__device__ __forceinline__ void convolve_tensor(float* memory, float* y, int left, int rank) {
    constexpr int CELLS_H = (OutH + Down - 1) / Down, CELLS_W = (OutW + 1) / 2;
    constexpr int SLABS = (Channels * Kh * Kw + STEPS - 1) / STEPS, TILES = (Outputs + 7) / 8;
    constexpr int TASKS = CELLS_H * CELLS_W * Groups * IMAGE_TILES;
    const float* const biases = memory + At + Groups * SLABS * TILES * 2 * LANES;
    const int* const table = reinterpret_cast<const int*>(biases + Groups * Outputs);
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, step = lane % 4;
#pragma unroll 1
    for (int task = rank * WARPS + warp; task < TASKS; task += RANKS * WARPS) {
        const int image = task % IMAGE_TILES * TOGETHER + lane / 4, cell = task / IMAGE_TILES;
        const int column = cell % CELLS_W * 2, row = cell / CELLS_W % CELLS_H * Down, group = cell / (CELLS_W * CELLS_H);
        // Not through In::at, whose border is where this window begins.
        const float* corner = memory + In::AT + image +
                              (group * Channels * In::PLANE + row * StrideH * In::ROW + column * StrideW) * IMAGES;
        const float2* filter = reinterpret_cast<const float2*>(memory + At) + group * (SLABS * TILES * LANES) + lane;
        float sum[TILES][Down][4] = {};
#pragma unroll 2
        for (int slab = 0; slab < SLABS; ++slab) {
            const int near = table[slab * STEPS + step], far = table[slab * STEPS + step + 4];
            uint4 pixels[Down];
#pragma unroll
            for (int i = 0; i < Down; ++i) {
                const float* from = corner + i * (StrideH * In::ROW * IMAGES);
                pixels[i] = make_uint4(to_tf32(from[near]), to_tf32(from[near + StrideW * IMAGES]), to_tf32(from[far]),
                                       to_tf32(from[far + StrideW * IMAGES]));
            }
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                const float2 maps = filter[(slab * TILES + t) * LANES];
#pragma unroll
                for (int i = 0; i < Down; ++i)
                    mma_tf32(sum[t][i], pixels[i], __float_as_uint(maps.x), __float_as_uint(maps.y));
            }
        }
#pragma unroll
        for (int t = 0; t < TILES; ++t)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int map = t * 8 + step * 2 + e, channel = group * Outputs + map;
                if (map >= Outputs) continue;
                const float shift = biases[channel];
                if constexpr (Kind >= 0) {
                    float v = Kind == POOL_MAX ? minus_infinity() : 0.0f;
#pragma unroll
                    for (int i = 0; i < Down * 2; ++i) {
                        const float one = sum[t][i / 2][i % 2 * 2 + e];
                        v = Kind == POOL_MAX ? larger(v, one) : v + activate(one + shift, Between);
                    }
                    // Neither a sum with the bias nor an activation ever falls: done once, with the largest.
                    v = Kind == POOL_MAX ? activate(v + shift, Between) : v / (Down * 2);
                    Out::put(memory, y, left, image, channel, row / Down, column / 2, activate(v, After));
                } else {
#pragma unroll
                    for (int i = 0; i < Down * 2; ++i)
                        if (row + i / 2 < OutH && column + i % 2 < OutW)
                            Out::put(memory, y, left, image, channel, row + i / 2, column + i % 2,
                                     activate(sum[t][i / 2][i % 2 * 2 + e] + shift, Between));
                }
            }
    }
}

// A product: an instruction's sixteen are outputs, its eight are images. A warp takes sixteen outputs of all images; Slices
// warps share their sum, which is added in a second pass from `parts`. Weights lie as lanes take them, (sixteen outputs,
// STEPS of the sum, lane, 4), in shared memory or global.
template <class In, class Out, int K, int N, int Bias, int Parts, int Slices, int Activation>
__device__ __forceinline__ void multiply_tensor(float* memory, float* y, int left, int rank, const float* weights) {
    constexpr int SLABS = (K + STEPS - 1) / STEPS, TILES = (N + 15) / 16, LENGTH = (SLABS + Slices - 1) / Slices;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
#pragma unroll 1
    for (int task = warp; task < TILES * Slices; task += WARPS) {
        const int tile = task % TILES, slice = task / TILES, begin = slice * LENGTH, end = min(SLABS, begin + LENGTH);
        const uint4* rows = reinterpret_cast<const uint4*>(weights) + tile * (SLABS * LANES) + lane;
        float sum[IMAGE_TILES][4] = {};
#pragma unroll 4
        for (int slab = begin; slab < end; ++slab) {
            const uint4 outputs = rows[slab * LANES];
            const int near = min(slab * STEPS + lane % 4, K - 1), far = min(slab * STEPS + lane % 4 + 4, K - 1);
#pragma unroll
            for (int t = 0; t < IMAGE_TILES; ++t) {
                const int image = t * TOGETHER + lane / 4;
                mma_tf32(sum[t], outputs, to_tf32(*In::flat(memory, near, image)), to_tf32(*In::flat(memory, far, image)));
            }
        }
#pragma unroll
        for (int t = 0; t < IMAGE_TILES; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int n = tile * 16 + lane / 4 + e / 2 * 8, image = t * TOGETHER + lane % 4 * 2 + e % 2;
                if (n >= N) continue;
                if (Slices > 1)
                    memory[Parts + (slice * IMAGES + image) * N + n] = sum[t][e];
                else
                    Out::put(memory, y, left, image, n, activate(sum[t][e] + memory[Bias + n], Activation));
            }
    }
    if constexpr (Slices > 1) {
        __syncthreads();
#pragma unroll 1
        for (int e = threadIdx.x; e < N * IMAGES; e += THREADS) {
            float sum = 0.0f;
#pragma unroll
            for (int slice = 0; slice < Slices; ++slice) sum += memory[Parts + slice * IMAGES * N + e];
            Out::put(memory, y, left, e / N, e % N, activate(sum + memory[Bias + e % N], Activation));
        }
    }
}
