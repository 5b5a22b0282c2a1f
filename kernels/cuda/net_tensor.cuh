// A net's convolutions and products on tensor cores: weights are the rows of an instruction, its eight columns are what lies
// side by side in shared memory, images or places of one image. A step of the sum is a word of 32 bits: a value as TF32, or
// two in 16 bits (Maps says which), so that an instruction takes eight words either way. Included by net.cuh.
#pragma once
#include "half.cuh"
#include "mma_sync.cuh"

#define TOGETHER 8                                      // columns of an instruction
#define WORDS 8                                         // of its sum
#define IMAGE_TILES ((IMAGES + TOGETHER - 1) / TOGETHER)  // of a group

// An activation of what is rounded next may be as far off as that rounding itself (2^-11 of it).
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

template <int Half>
__device__ __forceinline__ void multiply_words(float (&sum)[4], uint4 rows, unsigned near, unsigned far) {
    if constexpr (Half)
        mma_half(sum, rows, near, far);
    else
        mma_tf32(sum, rows, near, far);
}

// A convolution, and the pool over it where Kind is one (else -1): a column is a cell of Down × Across outputs, a pool's
// window, of one image; a warp takes eight of them in Many maps, a multiple of eight, and has all of a pool's window.
// JoinDown × JoinAcross of a cell's outputs are rows of the same instructions, for what lies under any of them is a step
// of the sum (weights that an output has not are zeros): it is read once. Other outputs of the cell are looked at by
// themselves. Fragments of weights lie in shared memory as (group, part of the maps, sixteen rows, WORDS
// steps, lane, 4), a row being (joined output, map); behind them where each step lies from a cell's corner on, in bytes, as
// lanes take it, and then the biases. Kept: the fragments fit into registers (1), and the places of the steps, too (2). Where a
// block has fewer tasks than warps, Slices of them share the steps of one; all but the first leave their sums at Parts. In's
// values were rounded by who put them there.
template <class In, class Out, int At, int Channels, int Outputs, int Groups, int Kh, int Kw, int StrideH, int StrideW,
          int DilationH, int DilationW, int OutH, int OutW, int Down, int Across, int Many, int JoinDown, int JoinAcross,
          int Slabs, int Kept, int Slices, int Parts, int Kind, int Between, int After>
__device__ __forceinline__ void convolve_tensor(float* memory, float* y, int left, int rank) {
    static_assert(In::ROUNDED, "as tensor cores take it");
    constexpr int CELLS_H = (OutH + Down - 1) / Down, CELLS_W = (OutW + Across - 1) / Across, CELLS = CELLS_H * CELLS_W;
    static_assert((CELLS_H * Down - 1) * StrideH + (Kh - 1) * DilationH < In::PLANE / In::ROW &&
                      (CELLS_W * Across - 1) * StrideW + (Kw - 1) * DilationW < In::ROW,
                  "windows lie within what is read");
    // From one group, row and column to the next, in words and values of a word.
    constexpr int VALUES = In::KIND == AS_NEIGHBOURS ? 2 : 1, ROW_WORDS = StrideH * In::ROW / VALUES;
    constexpr int GROUP_WORDS = (In::KIND == AS_CHANNELS ? (Channels + 1) / 2 : Channels) * In::PLANE / VALUES;
    constexpr int LOOK_DOWN = JoinDown * ROW_WORDS, LOOK_ACROSS = JoinAcross * StrideW / VALUES;
    constexpr int PARTS = (Outputs + Many - 1) / Many, EIGHTS = Many / 8;
    constexpr int TILES = (EIGHTS * JoinDown * JoinAcross + 1) / 2;
    constexpr int LOOKS_W = Across / JoinAcross, LOOKS = Down / JoinDown * LOOKS_W;
    constexpr int SUMS = LOOKS * TILES * 4;
    constexpr int ITEMS = CELLS * IMAGES, COLUMNS = (ITEMS + TOGETHER - 1) / TOGETHER;
    constexpr int TASKS = COLUMNS * PARTS * Groups, EACH = (TASKS + RANKS - 1) / RANKS;
    static_assert(!Kept || (PARTS * Groups == 1 && Slices == 1), "the same for all");
    static_assert(Slices == 1 || EACH * Slices <= WARPS, "all at once");
    constexpr int LENGTH = (Slabs + Slices - 1) / Slices, UNITS = Slices > 1 ? WARPS : EACH;
    const uint4* const fragments = reinterpret_cast<const uint4*>(memory + At) + threadIdx.x % LANES;
    const float* const steps = memory + At + Groups * PARTS * TILES * Slabs * (4 * LANES);
    const float* const biases = steps + Slabs * WORDS;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int2* const table = reinterpret_cast<const int2*>(steps) + lane % 4;
    uint4 kept[Kept ? TILES * Slabs : 1];
    int2 places[Kept == 2 ? Slabs : 1];
    if constexpr (Kept) {
#pragma unroll
        for (int i = 0; i < TILES * Slabs; ++i) kept[i] = fragments[i * LANES];
        if constexpr (Kept == 2) {
#pragma unroll
            for (int i = 0; i < Slabs; ++i) places[i] = table[i * 4];
        }
    }
#pragma unroll 1
    for (int unit = warp; unit < UNITS; unit += WARPS) {
        const int task = rank * EACH + unit / Slices, slice = unit % Slices;
        const bool idle = task >= TASKS || unit >= EACH * Slices;
        if (Slices == 1 && idle) break;
        const int part = PARTS * Groups == 1 ? 0 : task / COLUMNS, first = (task - part * COLUMNS) * TOGETHER;
        // Whose a column is; where a cell has images enough, it is everybody's.
        auto image_of = [&](int column) {
            return IMAGES % TOGETHER == 0 ? first % IMAGES + column : (first + column) % IMAGES;
        };
        auto cell_of = [&](int column) { return (IMAGES % TOGETHER == 0 ? first : first + column) / IMAGES; };
        const int mine = ITEMS % TOGETHER == 0 ? lane / 4 : min(lane / 4, ITEMS - 1 - first), cell = cell_of(mine);
        // Not through In::at, whose border is where this window begins.
        const char* corner = reinterpret_cast<const char*>(
            memory + In::AT + image_of(mine) +
            (part / PARTS * GROUP_WORDS + cell / CELLS_W * (Down * ROW_WORDS) + cell % CELLS_W * (Across * StrideW / VALUES)) *
                IMAGES);
        const uint4* const rows = fragments + part * (TILES * Slabs * LANES);
        float sum[LOOKS][TILES][4] = {};
        auto add = [&](const uint4 (&weights)[TILES], int2 place) {
            const char *const nearest = corner + place.x, *const farthest = corner + place.y;
#pragma unroll
            for (int look = 0; look < LOOKS; ++look) {
                const int on = (look / LOOKS_W * LOOK_DOWN + look % LOOKS_W * LOOK_ACROSS) * IMAGES;
                const unsigned near = reinterpret_cast<const unsigned*>(nearest)[on];
                const unsigned far = reinterpret_cast<const unsigned*>(farthest)[on];
#pragma unroll
                for (int t = 0; t < TILES; ++t) multiply_words<In::PAIRED>(sum[look][t], weights[t], near, far);
            }
        };
        if constexpr (Kept) {
#pragma unroll
            for (int slab = 0; slab < Slabs; ++slab) {
                uint4 weights[TILES];
#pragma unroll
                for (int t = 0; t < TILES; ++t) weights[t] = kept[t * Slabs + slab];
                add(weights, Kept == 2 ? places[slab] : table[slab * 4]);
            }
        } else if (!idle) {
            const int begin = slice * LENGTH, end = min(Slabs, begin + LENGTH);
            int2 place = table[min(begin, Slabs - 1) * 4];
#pragma unroll(IMAGES == 1 ? 4 : 2)
            for (int slab = begin; slab < end; ++slab) {
                const int2 here = place;
                place = table[min(slab + 1, Slabs - 1) * 4];  // where the next lie is known when it is their turn
                uint4 weights[TILES];
#pragma unroll
                for (int t = 0; t < TILES; ++t) weights[t] = rows[(t * Slabs + slab) * LANES];
                add(weights, here);
            }
        }
        if constexpr (Slices > 1) {
            float* const others = memory + Parts + unit / Slices * (SUMS * LANES) + lane;
            float(&flat)[SUMS] = reinterpret_cast<float(&)[SUMS]>(sum);
            if (!idle && slice > 0) {
#pragma unroll
                for (int i = 0; i < SUMS; ++i) others[((slice - 1) * (EACH * SUMS) + i) * LANES] = flat[i];
            }
            __syncthreads();
            if (idle || slice > 0) continue;
#pragma unroll
            for (int other = 1; other < Slices; ++other)
#pragma unroll
                for (int i = 0; i < SUMS; ++i) flat[i] += others[((other - 1) * (EACH * SUMS) + i) * LANES];
        }
        // A lane has the maps lane / 4 + 8 i of two columns.
#pragma unroll
        for (int i = 0; i < EIGHTS; ++i) {
            const int map = part % PARTS * Many + i * 8 + lane / 4, channel = part / PARTS * Outputs + map;
            if (PARTS * Many != Outputs && map >= Outputs) continue;
            const float shift = biases[channel];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int its = lane % 4 * 2 + e, at = cell_of(its), image = image_of(its);
                if (ITEMS % TOGETHER != 0 && first + its >= ITEMS) continue;
                const int row = at / CELLS_W, column = at % CELLS_W;
                float v = Kind == POOL_MAX ? minus_infinity() : 0.0f;
#pragma unroll
                for (int output = 0; output < Down * Across; ++output) {
                    const int down = output / Across, across = output % Across;
                    const int look = down / JoinDown * LOOKS_W + across / JoinAcross;
                    const int eighth = (down % JoinDown * JoinAcross + across % JoinAcross) * EIGHTS + i;
                    const float one = sum[look][eighth / 2][eighth % 2 * 2 + e];
                    if constexpr (Kind >= 0)
                        v = Kind == POOL_MAX ? larger(v, one) : v + finish<Out>(one + shift, Between);
                    else if (row * Down + down < OutH && column * Across + across < OutW)
                        Out::put(memory, y, left, image, channel, row * Down + down, column * Across + across,
                                 finish<Out>(one + shift, Between));
                }
                if constexpr (Kind >= 0) {
                    // Neither a sum with the bias nor an activation ever falls: done once, with the largest.
                    v = Kind == POOL_MAX ? finish<Out>(v + shift, Between) : v / (Down * Across);
                    Out::put(memory, y, left, image, channel, row, column, finish<Out>(v, After));
                }
            }
        }
    }
}

// A product: an instruction's sixteen rows are outputs, its columns images; where there are fewer, the last fills up. A warp
// takes sixteen outputs of all images; Slices warps share their sum, which is added in a second pass from `parts`. Weights
// lie as lanes take them, (sixteen outputs, WORDS steps, lane, 4), in shared memory or global, Ahead of them on their way
// while others are multiplied; a block of the team has as many outputs that follow each other as the others. What it reads
// was rounded by who put it there. Half: in 16 bits, two values a step; what it reads has no more bits than that.
template <class In, class Out, int K, int N, int Bias, int Parts, int Slices, int Activation, int Team, int Ahead, int Half>
__device__ __forceinline__ void multiply_tensor(float* memory, float* y, int left, int rank, const float* weights) {
    static_assert(In::ROUNDED && (Half || !In::PAIRED), "as tensor cores take it");
    constexpr int STEPS = Half ? (K + 1) / 2 : K, SLABS = (STEPS + WORDS - 1) / WORDS;
    constexpr int LENGTH = (SLABS + Slices - 1) / Slices;
    constexpr int TILES = ((N + 15) / 16 + Team - 1) / Team, LOCAL = TILES * 16;
    constexpr int CHAINS = IMAGE_TILES == 1 ? 2 : 1;  // so that an instruction need not wait for the one before it
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    auto word = [&](int step, int image) -> unsigned {
        if (STEPS % WORDS != 0) step = min(step, STEPS - 1);  // whose weights are zeros
        const float* const in = In::flat(memory, 0, image);
        if constexpr (In::PAIRED || !Half) return __float_as_uint(in[step * IMAGES]);
        return to_halves(in[2 * step * IMAGES], in[(K % 2 == 0 ? 2 * step + 1 : min(2 * step + 1, K - 1)) * IMAGES]);
    };
#pragma unroll 1
    for (int task = warp; task < TILES * Slices; task += WARPS) {
        const int tile = task % TILES, slice = task / TILES, begin = slice * LENGTH, end = min(SLABS, begin + LENGTH);
        const uint4* rows = reinterpret_cast<const uint4*>(weights) + tile * (SLABS * LANES) + lane;
        float sums[CHAINS][IMAGE_TILES][4] = {};
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
                    const int step = (first + i) * WORDS + lane % 4;  // neighbours are in banks of their own
                    const int image = min(t * TOGETHER + lane / 4, IMAGES - 1);
                    multiply_words<Half>(sums[i % CHAINS][t], outputs[i], word(step, image), word(step + 4, image));
                }
            }
        }
#pragma unroll
        for (int t = 0; t < IMAGE_TILES; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int local = tile * 16 + lane / 4 + e / 2 * 8, image = t * TOGETHER + lane % 4 * 2 + e % 2;
                const int n = rank * LOCAL + local;
                if (n >= N || (IMAGES % TOGETHER != 0 && image >= IMAGES)) continue;
                const float sum = CHAINS == 2 ? sums[0][t][e] + sums[CHAINS - 1][t][e] : sums[0][t][e];
                if (Slices > 1)
                    memory[Parts + (slice * IMAGES + image) * LOCAL + local] = sum;
                else
                    Out::put(memory, y, left, image, n, finish<Out>(sum + memory[Bias + n], Activation));
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
