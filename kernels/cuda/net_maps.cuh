// Where values lie in shared memory between a net's steps, and how images come in. Included by net.cuh.
#pragma once
#include "async.cuh"
#include "half.cuh"
#include "net_team.cuh"

// N floats from an address that is a multiple of as many as are read at once.
template <int N>
__device__ __forceinline__ void read_floats(float (&to)[N], const float* from) {
    constexpr int FOURS = N / 4 * 4;
#pragma unroll
    for (int i = 0; i < FOURS; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + i);
        to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
    if constexpr (N % 4 >= 2) {
        const float2 two = *reinterpret_cast<const float2*>(from + FOURS);
        to[FOURS] = two.x, to[FOURS + 1] = two.y;
    }
    if constexpr (N % 2 == 1) to[N - 1] = from[N - 1];
}

// How a value lies in shared memory: a word of its own, which is rounded where tensor cores read it (once, not each time
// that a window takes it), or a half of one in 16 bits: beside its neighbour, or beside the same pixel of the next channel.
#define AS_FLOATS 0
#define AS_TF32 1
#define AS_NEIGHBOURS 2
#define AS_CHANNELS 3

// Maps of IMAGES images in shared memory, from float `At` on: Channels of PLANE values, rows of ROW, the first value at
// (TOP, LEFT) of a border of zeros. Columns that are APART from each other lie side by side, for those are what
// neighbouring lanes read. Told: which blocks of the team get what is put there, for step Step to read.
template <int At, int Channels, int H, int W, int Plane, int Row, int Top, int Left, int Apart, int Kind, int Told,
          int Step>
struct Maps {
    static constexpr int AT = At, PLANE = Plane, ROW = Row, APART = Apart, SIZE = Channels * H * W, KIND = Kind;
    static constexpr int ROUNDED = Kind != AS_FLOATS, PAIRED = Kind >= AS_NEIGHBOURS;
    static_assert(!PAIRED || (RANKS == 1 && Apart == 1), "halves of words are told to nobody else");
    __device__ static constexpr int place(int column) { return column % Apart * (Row / Apart) + column / Apart; }
    __device__ static float* at(float* memory, int image, int channel, int row, int column) {
        return memory + At + (channel * Plane + (row + Top) * Row + place(column + Left)) * IMAGES + image;
    }
    // As one vector, where there is no border and columns lie in their order.
    __device__ static float* flat(float* memory, int e, int image) { return memory + At + e * IMAGES + image; }
    __device__ static void put(float* memory, float*, int, int image, int channel, int row, int column, float v) {
        if constexpr (PAIRED) {
            const int its = (Kind == AS_CHANNELS ? channel / 2 : channel) * Plane + (row + Top) * Row + column + Left;
            const int word = Kind == AS_CHANNELS ? its : its / 2, far = Kind == AS_CHANNELS ? channel % 2 : its % 2;
            reinterpret_cast<half_bits*>(memory + At)[(word * IMAGES + image) * 2 + far] = (half_bits)to_halves(v, 0.0f);
            return;
        }
        if constexpr (Kind == AS_TF32) v = __uint_as_float(to_tf32(v));
        tell<Told, Step>(at(memory, image, channel, row, column), v);
    }
    __device__ static void put(float* memory, float* y, int left, int image, int e, float v) {
        put(memory, y, left, image, e / (H * W), e / W % H, e % W, v);
    }
    // Where value e and the next of it are, which are of one row.
    __device__ static unsigned* word(float* memory, int image, int e) {
        const int its = e / (H * W) * Plane + (e / W % H + Top) * Row + e % W + Left;
        return reinterpret_cast<unsigned*>(memory + At) + its / 2 * IMAGES + image;
    }
    static constexpr int TWO_BY_TWO = Kind == AS_NEIGHBOURS && W % 2 == 0 && Row % 2 == 0 && Left % 2 == 0 && Plane % 2 == 0;
};

// What the net gives, in global memory: y is that of the first image of the group, of which `left` are there.
template <int Channels, int H, int W>
struct Given {
    static constexpr int SIZE = Channels * H * W, ROUNDED = 0;
    __device__ static void put(float*, float* y, int left, int image, int e, float v) {
        if (image < left) y[(index_t)image * SIZE + e] = v;
    }
    __device__ static void put(float* memory, float* y, int left, int image, int channel, int row, int column, float v) {
        put(memory, y, left, image, (channel * H + row) * W + column, v);
    }
};

__device__ __forceinline__ void fetch_one(float* to, const float* __restrict__ from, bool inside) {
#if __CUDA_ARCH__ >= 800
    copy_async(to, from, inside);
#else
    *to = inside ? *from : 0.0f;
#endif
}

// The images of a group from global memory, Rows of their rows from `top` on, which may be outside; zeros for images that
// are not there. The first `busy` threads have no time for it, whole warps.
template <class To, int Channels, int H, int W, int Rows>
__device__ __forceinline__ void fetch(float* memory, const float* __restrict__ x, int left, int top, int busy) {
    constexpr int VALUES = Channels * Rows * W, SIZE = Channels * H * W;
    const int thread = (int)threadIdx.x - busy, threads = THREADS - busy;
    if (thread < 0) return;
    if constexpr (VALUES % 8 == 0 && IMAGES % 4 == 0) {
        // A warp takes eight values of four images, and of further four: whole sectors from there, few of one bank here.
#pragma unroll 1
        for (int piece = thread / LANES; piece < VALUES / 8; piece += threads / LANES) {
            const int value = piece * 8 + thread % LANES / 4, image = thread % 4;
            const int channel = value / (Rows * W), row = (Rows == H ? 0 : top) + value / W % Rows, column = value % W;
            if (Rows != H && (unsigned)row >= (unsigned)H) continue;
            float* const to = To::at(memory, image, channel, row, column);
            const float* const from = x + image * SIZE + (Rows == H ? value : (channel * H + row) * W + column);
#pragma unroll
            for (int i = 0; i < IMAGES; i += 4) fetch_one(to + i, from + i * SIZE, image + i < left);
        }
    } else {
#pragma unroll(IMAGES == 1 ? 4 : 1)
        for (int e = thread; e < IMAGES * VALUES; e += threads) {
            const int image = e / VALUES, value = e % VALUES;
            const int channel = value / (Rows * W), row = (Rows == H ? 0 : top) + value / W % Rows, column = value % W;
            if (Rows != H && (unsigned)row >= (unsigned)H) continue;
            const float* from = x + (Rows == H ? e : ((image * Channels + channel) * H + row) * W + column);
            fetch_one(To::at(memory, image, channel, row, column), from, image < left);
        }
    }
}

// What came in, and the border round it, Floats in all, to TF32.
template <int At, int Floats>
__device__ __forceinline__ void round_images(float* memory) {
    float4* const fours = reinterpret_cast<float4*>(memory + At);
    __syncthreads();  // each of them was fetched by somebody
#pragma unroll 4
    for (int e = threadIdx.x; e < (Floats + 3) / 4; e += THREADS) {
        const float4 v = fours[e];
        fours[e] = make_float4(__uint_as_float(to_tf32(v.x)), __uint_as_float(to_tf32(v.y)),
                               __uint_as_float(to_tf32(v.z)), __uint_as_float(to_tf32(v.w)));
    }
}

// The same in 16 bits, from float From on, where they came in value after value, to where the first step reads them.
template <int From, class To>
__device__ __forceinline__ void halve_images(float* memory) {
    __syncthreads();
    if constexpr (To::TWO_BY_TWO && IMAGES % 2 == 0) {
#pragma unroll 1
        for (int e = threadIdx.x; e < To::SIZE / 2 * (IMAGES / 2); e += THREADS) {
            const int value = e / (IMAGES / 2) * 2, image = e % (IMAGES / 2) * 2;
            const float2 here = *reinterpret_cast<const float2*>(memory + From + value * IMAGES + image);
            const float2 next = *reinterpret_cast<const float2*>(memory + From + (value + 1) * IMAGES + image);
            *reinterpret_cast<uint2*>(To::word(memory, image, value)) =
                make_uint2(to_halves(here.x, next.x), to_halves(here.y, next.y));
        }
    } else {
#pragma unroll 1
        for (int e = threadIdx.x; e < To::SIZE * IMAGES; e += THREADS)
            To::put(memory, nullptr, 0, e % IMAGES, e / IMAGES, memory[From + e]);
    }
}
