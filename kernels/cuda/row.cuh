// What the threads of a row do together: LANES of them a row, ROWS rows a block. Where ACROSS is set, neighbouring
// threads have neighbouring rows and a row's threads lie ROWS apart; else they lie side by side.
#pragma once

#define ALL 0xffffffffu
#define WIDTH (ACROSS ? 1 : LANES < 32 ? LANES : 32)  // threads of a row whose values meet by shuffles
#define EIGHT 8                                       // values that are joined before they are joined with others
#define PARTS (LANES / WIDTH)                         // what is left of a row then, for shared memory

__device__ __forceinline__ int row_of_block() { return ACROSS ? threadIdx.x % ROWS : threadIdx.x / LANES; }
__device__ __forceinline__ int lane_of_row() { return ACROSS ? threadIdx.x / ROWS : threadIdx.x % LANES; }

// What the threads of a row have, joined two by two, and of many what each EIGHT come to: sums of few terms keep their
// digits. Each of the threads gets it. All threads of the block take part.
template <typename Join>
__device__ __forceinline__ float of_row(float v, Join join) {
#pragma unroll
    for (int d = WIDTH / 2; d; d /= 2) v = join(v, __shfl_xor_sync(ALL, v, d));
#if LANES > 32 || ACROSS
    __shared__ float parts[PARTS][ROWS];
    const int row = row_of_block(), lane = lane_of_row();
    __syncthreads();  // what was there before has been read
    if (lane % WIDTH == 0) parts[lane / WIDTH][row] = v;
    __syncthreads();
    for (int first = 0; first < PARTS; first += EIGHT) {
        float some = parts[first][row];
        for (int part = first + 1; part < PARTS && part < first + EIGHT; ++part) some = join(some, parts[part][row]);
        v = first ? join(v, some) : some;
    }
#endif
    return v;
}

struct Larger {
    __device__ __forceinline__ float operator()(float a, float b) const { return larger(a, b); }
};

struct Added {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
