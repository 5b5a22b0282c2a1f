// A net's convolutions and products on tensor cores, in TF32: the images of a value lie side by side, and eight of them are
// the eight rows or columns of an instruction as they lie (mma_sync.cuh). Included by net.cuh.
#pragma once
#include "half.cuh"
#include "mma_sync.cuh"

#define TOGETHER 8                       // images of an instruction
#define STEPS 8                          // of its sum
#define IMAGE_TILES (IMAGES / TOGETHER)  // of a group

// An activation of what is rounded to TF32 next may be as far off as that rounding itself (2^-11 of it).
template <class Out>
__device__ __forceinline__ float finish(float v, int kind) {
    if constexpr (Out::ROUNDED) {
        if (kind == ACTIVATION_TANH) {
            asm("tanh.approx.f32 %0, %0;" : "+f"(v));
            return v;
        }
    }
    return activate(v, kind);
}

// A convolution, and the pool over it where Kind is one (else -1): a warp computes Down × 2 outputs that lie side by side,
// a pool's window, of TOGETHER images, in all maps of a group. An instruction's sixteen are two pixels of eight images, its
// eight are maps. Steps of the sum are taps; where each lies in bytes, from a window's corner on, a table says. Weights lie
// in shared memory as lanes take them, (group, STEPS taps, eight maps, lane, 2), behind them the table as lanes take it,
// and then the biases. What it reads was rounded to TF32 by who put it there. Each block of the team has as
// many of the tasks as the others.
template <class In, class Out, int At, int Channels, int Outputs, int Groups, int Kh, int Kw, int StrideH, int StrideW,
          int DilationH, int DilationW, int OutH, int OutW, int Down, int Kind, int Between, int After>
__device__ __forceinline__ void convolve_tensor(float* memory, float* y, int left, int rank) {
    static_assert(In::ROUNDED, "in TF32");
    constexpr int CELLS_H = (OutH + Down - 1) / Down, CELLS_W = (OutW + 1) / 2;
    constexpr int SLABS = (Channels * Kh * Kw + STEPS - 1) / STEPS, TILES = (Outputs + 7) / 8;
    static_assert((CELLS_H * Down - 1) * StrideH + (Kh - 1) * DilationH < In::PLANE / In::ROW &&
                      (CELLS_W * 2 - 1) * StrideW + (Kw - 1) * DilationW < In::ROW,
                  "windows lie within what is read");
    constexpr int TASKS = CELLS_H * CELLS_W * Groups * IMAGE_TILES, EACH = (TASKS + RANKS - 1) / RANKS;
    const float* const taps = memory + At + Groups * SLABS * TILES * 2 * LANES;
    const float* const biases = taps + SLABS * STEPS;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, step = lane % 4;
    const int2* const table = reinterpret_cast<const int2*>(taps) + step;
#pragma unroll 1
    for (int task = rank * EACH + warp; task < min(TASKS, rank * EACH + EACH); task += WARPS) {
        const int image = task % IMAGE_TILES * TOGETHER + lane / 4, cell = task / IMAGE_TILES;
        const int column = cell % CELLS_W * 2, row = cell / CELLS_W % CELLS_H * Down, group = cell / (CELLS_W * CELLS_H);
        // Not through In::at, whose border is where this window begins.
        const char* corner = reinterpret_cast<const char*>(
            memory + In::AT + image +
            (group * Channels * In::PLANE + row * StrideH * In::ROW + column * StrideW) * IMAGES);
        const float2* filter = reinterpret_cast<const float2*>(memory + At) + group * (SLABS * TILES * LANES) + lane;
        float sum[TILES][Down][4] = {};
        int2 place = table[0];
#pragma unroll(SLABS <= 4 ? SLABS : 2)
        for (int slab = 0; slab < SLABS; ++slab) {
            const char *const near = corner + place.x, *const far = corner + place.y;
            place = table[min(slab + 1, SLABS - 1) * 4];  // where the next lie is known when it is their turn
            uint4 pixels[Down];
#pragma unroll
            for (int i = 0; i < Down; ++i) {
                constexpr int BESIDE = StrideW * IMAGES;
                const unsigned* const upper = reinterpret_cast<const unsigned*>(near) + i * (StrideH * In::ROW * IMAGES);
                const unsigned* const lower = reinterpret_cast<const unsigned*>(far) + i * (StrideH * In::ROW * IMAGES);
                pixels[i] = make_uint4(upper[0], upper[BESIDE], lower[0], lower[BESIDE]);
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
                        v = Kind == POOL_MAX ? larger(v, one) : v + finish<Out>(one + shift, Between);
                    }
                    // Neither a sum with the bias nor an activation ever falls: done once, with the largest.
                    v = Kind == POOL_MAX ? finish<Out>(v + shift, Between) : v / (Down * 2);
                    Out::put(memory, y, left, image, channel, row / Down, column / 2, finish<Out>(v, After));
                } else {
#pragma unroll
                    for (int i = 0; i < Down * 2; ++i)
                        if (row + i / 2 < OutH && column + i % 2 < OutW)
                            Out::put(memory, y, left, image, channel, row + i / 2, column + i % 2,
                                     finish<Out>(sum[t][i / 2][i % 2 * 2 + e] + shift, Between));
                }
            }
    }
}

// A product: an instruction's sixteen are outputs, its eight are images. A warp takes sixteen outputs of all images; Slices
// warps share their sum, which is added in a second pass from `parts`. Weights lie as lanes take them, (sixteen outputs,
// STEPS of the sum, lane, 4), in shared memory or global, Ahead of them on their way while others are multiplied; a block of
// the team has as many outputs that follow each other as the others. What it reads was rounded to TF32 by who put it there.
// Half: in float16, twice as many steps an instruction; what it reads has no more bits than that.
template <class In, class Out, int K, int N, int Bias, int Parts, int Slices, int Activation, int Team, int Ahead, int Half>
__device__ __forceinline__ void multiply_tensor(float* memory, float* y, int left, int rank, const float* weights) {
    static_assert(In::ROUNDED, "in TF32");
    constexpr int DEEP = Half ? 2 * STEPS : STEPS;
    constexpr int SLABS = (K + DEEP - 1) / DEEP, LENGTH = (SLABS + Slices - 1) / Slices;
    constexpr int TILES = ((N + 15) / 16 + Team - 1) / Team, LOCAL = TILES * 16;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
#pragma unroll 1
    for (int task = warp; task < TILES * Slices; task += WARPS) {
        const int tile = task % TILES, slice = task / TILES, begin = slice * LENGTH, end = min(SLABS, begin + LENGTH);
        const uint4* rows = reinterpret_cast<const uint4*>(weights) + tile * (SLABS * LANES) + lane;
        float sum[IMAGE_TILES][4] = {};
        uint4 next[Ahead];
#pragma unroll
        for (int i = 0; i < Ahead; ++i)
            if (begin + i < end) next[i] = rows[(begin + i) * LANES];
#pragma unroll 1
        for (int first = begin; first < end; first += Ahead) {
            uint4 outputs[Ahead];
#pragma unroll
            for (int i = 0; i < Ahead; ++i) {
                outputs[i] = next[i];
                if (first + Ahead + i < end) next[i] = rows[(first + Ahead + i) * LANES];
            }
#pragma unroll
            for (int i = 0; i < Ahead; ++i) {
                if (first + i >= end) break;
#pragma unroll
                for (int t = 0; t < IMAGE_TILES; ++t) {
                    float v[DEEP / 4];
#pragma unroll
                    for (int j = 0; j < DEEP / 4; ++j) {
                        const int k = (first + i) * DEEP + lane % 4 + 4 * j;  // neighbours are in banks of their own
                        v[j] = *In::flat(memory, K % DEEP == 0 ? k : min(k, K - 1), t * TOGETHER + lane / 4);
                    }
                    if constexpr (Half)
                        mma_half(sum[t], outputs[i], to_halves(v[0], v[1]), to_halves(v[2], v[3]));
                    else
                        mma_tf32(sum[t], outputs[i], __float_as_uint(v[0]), __float_as_uint(v[1]));
                }
            }
        }
#pragma unroll
        for (int t = 0; t < IMAGE_TILES; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int local = tile * 16 + lane / 4 + e / 2 * 8, image = t * TOGETHER + lane % 4 * 2 + e % 2;
                const int n = rank * LOCAL + local;
                if (n >= N) continue;
                if (Slices > 1)
                    memory[Parts + (slice * IMAGES + image) * LOCAL + local] = sum[t][e];
                else
                    Out::put(memory, y, left, image, n, finish<Out>(sum[t][e] + memory[Bias + n], Activation));
            }
    }
    if constexpr (Slices > 1) {
        __syncthreads();
#pragma unroll 1
        for (int e = threadIdx.x; e < LOCAL * IMAGES; e += THREADS) {
            const int n = rank * LOCAL + e % LOCAL;
            if (n >= N) continue;
            float sum = 0.0f;
#pragma unroll
            for (int slice = 0; slice < Slices; ++slice) sum += memory[Parts + slice * IMAGES * LOCAL + e];
            Out::put(memory, y, left, e / LOCAL, n, finish<Out>(sum + memory[Bias + n], Activation));
        }
    }
}
