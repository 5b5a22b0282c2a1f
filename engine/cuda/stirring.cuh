// Where and by what a pass is changed: engine/stirring.py's hash and places, bit for bit.
#pragma once

typedef unsigned long long u64;

enum Purpose { CHANGED, VALUE, POISONED, LOOKED_AT };

#define GOLDEN 0x9E3779B97F4A7C15ull
#define KEEPING (1ull << 32)  // in the place of a tensor's number: which passes are kept

__device__ __forceinline__ u64 mixed(u64 state) {
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ull;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBull;
    return state ^ (state >> 31);
}

// The j-th of `hashed` in stirring.py.
__device__ __forceinline__ u64 hashed(u64 seed, u64 number, u64 tensor, Purpose purpose, u64 j) {
    u64 stream = mixed(seed + number * GOLDEN);
    stream = mixed(stream + (4 * tensor + purpose + 1) * GOLDEN);
    return mixed(stream + (j + 1) * GOLDEN);
}

// The j-th of `Stirring.places`: one in each of `count` stretches of equal length.
__device__ __forceinline__ u64 place(u64 seed, u64 number, u64 tensor, Purpose purpose, u64 j, u64 size, u64 count) {
    const u64 first = j * size / count, behind = (j + 1) * size / count;
    const u64 drawn = hashed(seed, number, tensor, purpose, j);
    return first + drawn % (behind > first ? behind - first : 1);
}

struct Tensor {
    u64 at, itemsize, size, count, index;
    u64 values, drawn_from;  // an input: where its values lie and how many, 0 of an output
    u64 held;                // an input: what lay at the changed places; an output: what passes left, a ring and one
};
