// A whole net in one kernel: what its steps are made of. Included by net/one_kernel.cu, whose defines say the steps.
//
// A team of RANKS blocks (a cluster, or one block) computes IMAGES images at a time. What one step hands to the next
// lies in shared memory, the images of a value side by side, laid out as the step that reads it wants it (`Maps`); in a
// cluster every block has all of it. Each output is worked out by one thread, or by lanes that add in a fixed order: so
// the same input gives the same bits.
#pragma once
#include "common.cuh"
#include "net_maps.cuh"
#include "net_team.cuh"
#include "net_weights.cuh"
#include "warp.cuh"

#define WARPS (THREADS / LANES)

// A convolution, and the pool over it where Kind is one (else -1): a lane computes Down × Across outputs that lie side by
// side, a pool's window, in Many maps, of Beside images, for which it reads the weights once; Shares lanes share its
// channels. Weights lie in shared memory as (group, part of the maps, channel, row, column, Many filled up to Stride), the
// biases behind them.
template <class In, class Out, int At, int Channels, int Outputs, int Groups, int Kh, int Kw, int StrideH, int StrideW,
          int DilationH, int DilationW, int OutH, int OutW, int Down, int Across, int Many, int Stride, int Shares, int Beside,
          int Kind, int Between, int After>
__device__ __forceinline__ void convolve(float* memory, float* y, int left, int rank) {
    static_assert(IMAGES % Beside == 0, "all of a lane's images or none");
    constexpr int CELLS_H = (OutH + Down - 1) / Down, CELLS_W = (OutW + Across - 1) / Across;
    constexpr int PARTS = (Outputs + Many - 1) / Many, TAPS = Channels * Kh * Kw, LANES_OF = IMAGES / Beside;
    constexpr int ITEMS = LANES_OF * CELLS_H * CELLS_W * PARTS * Groups * Shares;
    constexpr int REACH_H = (Down - 1) * StrideH + (Kh - 1) * DilationH + 1;
    const float* const weights = memory + At;
    const float* const biases = weights + Groups * PARTS * TAPS * Stride;
#pragma unroll 1
    for (int first = rank * THREADS; first < ITEMS; first += RANKS * THREADS) {
        const int e = first + (int)threadIdx.x;
        const bool mine = e < ITEMS;
        if (Shares == 1 && !mine) break;
        const int item = mine ? e : ITEMS - 1;
        const int image = item % LANES_OF * Beside, share = item / LANES_OF % Shares, cell = item / (LANES_OF * Shares);
        const int column = cell % CELLS_W * Across, row = cell / CELLS_W % CELLS_H * Down;
        const int part = cell / (CELLS_W * CELLS_H) % PARTS, group = cell / (CELLS_W * CELLS_H * PARTS);
        float sum[Beside][Down * Across][Many] = {};
        const float* filter = weights + (group * PARTS + part) * (TAPS * Stride) + share * (Kh * Kw * Stride);
#pragma unroll 1
        for (int c = share; c < Channels; c += Shares, filter += Shares * Kh * Kw * Stride) {
            // Not through In::at, whose border is where this window begins; a window begins in the first of the columns
            // that lie side by side.
            const float* corner = memory + In::AT + image +
                                  ((group * Channels + c) * In::PLANE + row * StrideH * In::ROW +
                                   column * StrideW / In::APART) *
                                      IMAGES;
#pragma unroll
            for (int s = 0; s < Kw; ++s) {
#pragma unroll
                for (int j = 0; j < Across; ++j) {
                    float v[REACH_H][Beside];
#pragma unroll
                    for (int i = 0; i < REACH_H; ++i)
                        read_floats(v[i], corner + (i * In::ROW + In::place(j * StrideW + s * DilationW)) * IMAGES);
#pragma unroll
                    for (int r = 0; r < Kh; ++r) {
                        float u[Many];
                        read_floats(u, filter + (r * Kw + s) * Stride);
#pragma unroll
                        for (int b = 0; b < Beside; ++b)
#pragma unroll
                            for (int i = 0; i < Down; ++i)
#pragma unroll
                                for (int m = 0; m < Many; ++m)
                                    sum[b][i * Across + j][m] += u[m] * v[i * StrideH + r * DilationH][b];
                    }
                }
            }
        }
        // Of the lanes that share a sum each finishes other maps, every Shares-th: it hands on the sums of the rest.
        constexpr int OWN = (Many + Shares - 1) / Shares;
#pragma unroll
        for (int apart = 1; apart < Shares; apart *= 2)
#pragma unroll
            for (int i = 0; i < Beside * Down * Across; ++i) {
                float(&its)[Many] = sum[i % Beside][i / Beside];
                const int held = (Many + apart - 1) / apart;
#pragma unroll
                for (int m = 0; m < held; m += 2) {
                    const float other = m + 1 < held ? its[m + 1 < Many ? m + 1 : m] : 0.0f;
                    const bool odd = share & apart;
                    its[m / 2] = (odd ? other : its[m]) + __shfl_xor_sync(ALL_LANES, odd ? its[m] : other, apart);
                }
            }
#pragma unroll
        for (int own = 0; own < OWN; ++own) {
            const int m = own * Shares + share, map = part * Many + m;
            if (!mine || map >= Outputs || (Many % Shares != 0 && m >= Many)) continue;
            const int channel = group * Outputs + map;
            const float shift = biases[channel];
#pragma unroll
            for (int b = 0; b < Beside; ++b) {
                float v = Kind == POOL_MAX ? minus_infinity() : 0.0f;
#pragma unroll
                for (int i = 0; i < Down * Across; ++i) {
                    const float one = sum[b][i][own];
                    if constexpr (Kind >= 0)
                        v = Kind == POOL_MAX ? larger(v, one) : v + activate(one + shift, Between);
                    else if (row + i / Across < OutH && column + i % Across < OutW)
                        Out::put(memory, y, left, image + b, channel, row + i / Across, column + i % Across,
                                 activate(one + shift, Between));
                }
                if constexpr (Kind >= 0) {
                    // Neither a sum with the bias nor an activation ever falls: done once, with the largest.
                    v = Kind == POOL_MAX ? activate(v + shift, Between) : v / (Down * Across);
                    Out::put(memory, y, left, image + b, channel, row / Down, column / Across, activate(v, After));
                }
            }
        }
    }
}

// A pool alone, an output a thread; pixels beyond the image count where Counted.
template <class In, class Out, int Channels, int H, int W, int Kh, int Kw, int StrideH, int StrideW, int DilationH,
          int DilationW, int PadTop, int PadLeft, int PadBottom, int PadRight, int OutH, int OutW, int Kind, int Counted, int After>
__device__ __forceinline__ void pool(float* memory, float* y, int left, int rank) {
#pragma unroll 1
    for (int e = rank * THREADS + threadIdx.x; e < IMAGES * Channels * OutH * OutW; e += RANKS * THREADS) {
        const int image = e % IMAGES, column = e / IMAGES % OutW, row = e / (IMAGES * OutW) % OutH;
        const int channel = e / (IMAGES * OutW * OutH);
        float v = Kind == POOL_MAX ? minus_infinity() : 0.0f;
        int seen = 0;
#pragma unroll
        for (int r = 0; r < Kh; ++r)
#pragma unroll
            for (int s = 0; s < Kw; ++s) {
                const int iy = row * StrideH + r * DilationH - PadTop, ix = column * StrideW + s * DilationW - PadLeft;
                const bool inside = (unsigned)iy < (unsigned)H && (unsigned)ix < (unsigned)W;
                // A window may reach beyond the padding, too, where sizes were rounded up: that never counts.
                seen += inside || (Counted && iy < H + PadBottom && ix < W + PadRight);
                if (!inside) continue;
                const float one = *In::at(memory, image, channel, iy, ix);
                v = Kind == POOL_MAX ? larger(v, one) : v + one;
            }
        if (Kind != POOL_MAX) v /= seen;
        Out::put(memory, y, left, image, channel, row, column, activate(v, After));
    }
}

// A function of each value, shared among Team blocks: RANKS of them or, where little is to be done, the first alone.
template <class In, class Out, int Size, int Activation, int Team>
__device__ __forceinline__ void each(float* memory, float* y, int left, int rank) {
    for (int e = rank * THREADS + threadIdx.x; e < IMAGES * Size; e += Team * THREADS)
        Out::put(memory, y, left, e % IMAGES, e / IMAGES, activate(*In::flat(memory, e / IMAGES, e % IMAGES), Activation));
}

// The sums of N values of each lane, N a power of two up to LANES, with as few exchanges as that takes: with every one a lane
// hands on half of the sums that it has and goes on with the others, until it has one of them alone, which is the return
// value: that of v[lane / (LANES / N)]. Added in the same order each time.
template <int N>
__device__ __forceinline__ float folded_sums(float (&v)[N], int lane) {
    static_assert((N & (N - 1)) == 0 && N <= LANES, "halves each time");
    int apart = LANES / 2;
#pragma unroll
    for (int half = N / 2; half; half /= 2, apart /= 2) {
        const bool upper = lane & apart;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float given = upper ? v[i] : v[i + half];
            v[i] = (upper ? v[i + half] : v[i]) + __shfl_xor_sync(ALL_LANES, given, apart);
        }
    }
    float sum = v[0];
#pragma unroll
    for (; apart; apart /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, apart);
    return sum;
}

// A product with weights, one image: a warp takes outputs, its lanes four steps of the sums each. A block of the team has
// every Team-th output; weights are its rows of Lead floats, in shared memory (Held) or global; biases behind memory.
template <class In, class Out, int K, int N, int Lead, int Bias, int Activation, int Team>
__device__ __forceinline__ void multiply_rows(float* memory, float* y, int left, int rank, const float* weights) {
    constexpr int LOCAL = (N + Team - 1) / Team, ROUNDS = (LOCAL + WARPS - 1) / WARPS;
    constexpr int AT_ONCE = ROUNDS < 8 ? ROUNDS : 8, SUMS = AT_ONCE > 4 ? 8 : AT_ONCE > 2 ? 4 : AT_ONCE;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const float* const in = In::flat(memory, 0, 0);
#pragma unroll 1
    for (int first = warp; first < LOCAL; first += WARPS * AT_ONCE) {
        const float* row[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) row[i] = weights + min(first + i * WARPS, LOCAL - 1) * Lead;
        float sum[SUMS] = {};
        auto add = [&](int k) {
            const float4 v = *reinterpret_cast<const float4*>(in + k);
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                const float4 u = *reinterpret_cast<const float4*>(row[i] + k);
                sum[i] += u.x * v.x;
                sum[i] += u.y * v.y;
                sum[i] += u.z * v.z;
                sum[i] += u.w * v.w;
            }
        };
        constexpr int WHOLE = K / (LANES * 4) * (LANES * 4);
#pragma unroll 4
        for (int k = 0; k < WHOLE; k += LANES * 4) add(k + lane * 4);
        if (WHOLE + lane * 4 + 3 < K) add(WHOLE + lane * 4);
        if (K % 4 != 0 && lane < K % 4) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) sum[i] += row[i][K / 4 * 4 + lane] * in[K / 4 * 4 + lane];
        }
        const float mine = folded_sums(sum, lane);
        const int i = lane / (LANES / SUMS), local = first + i * WARPS, n = local * Team + rank;
        if (lane % (LANES / SUMS) == 0 && i < AT_ONCE && local < LOCAL && n < N)
            Out::put(memory, y, left, 0, n, activate(mine + memory[Bias + n], Activation));
    }
}

// The same of several images: a lane takes Each outputs of all of them, LANES apart, and Slices warps share their sums, which
// are added in a second pass from `parts`. A block of the team has Local outputs side by side; weights are its K rows of Lead
// floats, in shared memory or global.
template <class In, class Out, int K, int N, int Lead, int Bias, int Parts, int Slices, int Each, int Activation>
__device__ __forceinline__ void multiply_images(float* memory, float* y, int left, int rank, const float* weights) {
    constexpr int LOCAL = (N + RANKS - 1) / RANKS, TILES = (LOCAL + LANES * Each - 1) / (LANES * Each);
    constexpr int AHEAD = 8 / Each, LENGTH = (K + AHEAD * Slices - 1) / (AHEAD * Slices) * AHEAD;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int here = min(LOCAL, N - rank * LOCAL);  // none or fewer of a last block
#pragma unroll 1
    for (int task = warp; task < TILES * Slices; task += WARPS) {
        const int local = task % TILES * (LANES * Each) + lane, slice = task / TILES;
        const int begin = slice * LENGTH, end = min(K, begin + LENGTH);
        float sum[Each][IMAGES] = {};
        auto weight = [&](int k, int i) { return weights[k * Lead + min(local + i * LANES, LOCAL - 1)]; };
        auto add = [&](int k, const float (&u)[Each]) {
            float v[IMAGES];
            read_floats(v, In::flat(memory, k, 0));
#pragma unroll
            for (int i = 0; i < Each; ++i)
#pragma unroll
                for (int j = 0; j < IMAGES; ++j) sum[i][j] += u[i] * v[j];
        };
        // What is multiplied next is on its way while this is.
        float u[AHEAD][Each], next[AHEAD][Each];
#pragma unroll
        for (int e = 0; e < AHEAD * Each; ++e) next[e / Each][e % Each] = weight(min(begin + e / Each, K - 1), e % Each);
        int k = begin;
#pragma unroll 1
        for (; k + AHEAD <= end; k += AHEAD) {
#pragma unroll
            for (int e = 0; e < AHEAD * Each; ++e) {
                u[e / Each][e % Each] = next[e / Each][e % Each];
                next[e / Each][e % Each] = weight(min(k + AHEAD + e / Each, K - 1), e % Each);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; ++i) add(k + i, u[i]);
        }
#pragma unroll 1
        for (; k < end; ++k) {
            float last[Each];
#pragma unroll
            for (int i = 0; i < Each; ++i) last[i] = weight(k, i);
            add(k, last);
        }
#pragma unroll
        for (int e = 0; e < Each * IMAGES; ++e) {
            const int mine = local + e / IMAGES * LANES, image = e % IMAGES, n = rank * LOCAL + mine;
            if (mine >= here) continue;
            if (Slices > 1)
                memory[Parts + (slice * IMAGES + image) * LOCAL + mine] = sum[e / IMAGES][image];
            else
                Out::put(memory, y, left, image, n, activate(sum[e / IMAGES][image] + memory[Bias + n], Activation));
        }
    }
    if constexpr (Slices > 1) {
        __syncthreads();
#pragma unroll 1
        for (int e = threadIdx.x; e < LOCAL * IMAGES; e += THREADS) {
            if (e % LOCAL >= here) continue;
            float sum = 0.0f;
#pragma unroll
            for (int slice = 0; slice < Slices; ++slice) sum += memory[Parts + slice * IMAGES * LOCAL + e];
            const int n = rank * LOCAL + e % LOCAL;
            Out::put(memory, y, left, e / LOCAL, n, activate(sum + memory[Bias + n], Activation));
        }
    }
}

#include "net_tensor.cuh"

// Softmax along Axis values, a warp an image. A few values of one image every lane reads and sums up, which takes less time
// than to ask the others for theirs.
template <class In, class Out, int Axis, int Log, int Team>
__device__ __forceinline__ void softmax(float* memory, float* y, int left, int rank) {
    constexpr int NEAR = Axis > 16 ? 32 : Axis > 8 ? 16 : 8;  // lanes that have any
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    auto give = [&](int image, int k, float v, float sum) {
        // A sum of what is at most 1 is far from where this quotient is not precise.
        Out::put(memory, y, left, image, k, Log ? v - logf(sum) : __fdividef(expf(v), sum));
    };
    if constexpr (IMAGES == 1 && Axis <= 16) {
        if (rank > 0 || warp > 0) return;
        float v[Axis], most = minus_infinity(), sum = 0.0f;
        read_floats(v, In::flat(memory, 0, 0));
        const float mine = *In::flat(memory, min(lane, Axis - 1), 0);
#pragma unroll
        for (int k = 0; k < Axis; ++k) most = larger(most, v[k]);
#pragma unroll
        for (int k = 0; k < Axis; ++k) sum += expf(v[k] - most);
        if (lane < Axis) give(0, lane, mine - most, sum);
        return;
    }
#pragma unroll 1
    for (int image = rank * WARPS + warp; image < IMAGES; image += Team * WARPS) {
        float most = minus_infinity(), sum = 0.0f;
        for (int k = lane; k < Axis; k += LANES) most = larger(most, *In::flat(memory, k, image));
#pragma unroll
        for (int apart = NEAR / 2; apart > 0; apart /= 2) most = larger(most, __shfl_xor_sync(ALL_LANES, most, apart));
        for (int k = lane; k < Axis; k += LANES) sum += expf(*In::flat(memory, k, image) - most);
#pragma unroll
        for (int apart = NEAR / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, apart);
        for (int k = lane; k < Axis; k += LANES) give(image, k, *In::flat(memory, k, image) - most, sum);
    }
}
