// Before a pass that is timed over new inputs: every value of every input is drawn anew (engine/stirring.py's Cells);
// or every value is written as it lies, beside which new ones are held. Whatever is asked for, as much is read and
// written. What changes in a few values, and poison, is stirring.cu's, which goes before.
#include "stirring.cuh"

struct State {
    u64 seed;    // not as it is: xor `mask`
    u64 number;  // of the pass that comes
    u64 done;    // blocks of this launch
    u64 unused;
};

struct Renewed {
    u64 at, itemsize, size, index;
    u64 base, span;  // where the bits of a cell's values begin, and how many there are
    u64 unused[2];
};

#define CELL_BITS 12
#define PLACE_BITS 20

template <typename Word>
__device__ void renew_one(const Renewed& t, u64 seed, u64 number, u64 keep, u64 first, u64 step) {
    Word* x = (Word*)t.at;
    const u64 *base = (const u64*)t.base, *span = (const u64*)t.span;
    for (u64 i = first; i < t.size; i += step) {
        const u64 h = hashed(seed, number, t.index, VALUE, i), cell = h >> (64 - CELL_BITS);
        const u64 low = (1ull << PLACE_BITS) - 1, place = h >> PLACE_BITS & low;
        const u64 drawn = base[cell] + (span[cell] >> PLACE_BITS) * place + ((span[cell] & low) * place >> PLACE_BITS);
        const u64 lies = x[i];
        x[i] = (Word)(drawn ^ ((lies ^ drawn) & keep));
    }
}

// keep: all bits of a value where it is written as it lies, none where it is new.
extern "C" __global__ void renew(State* state, const Renewed* tensors, unsigned long long mask,
                                 unsigned long long keep) {
    const u64 seed = state->seed ^ mask, number = state->number;
    const Renewed t = tensors[blockIdx.y];
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    switch (t.itemsize) {
        case 1: renew_one<unsigned char>(t, seed, number, keep, first, step); break;
        case 2: renew_one<unsigned short>(t, seed, number, keep, first, step); break;
        case 4: renew_one<unsigned int>(t, seed, number, keep, first, step); break;
        case 8: renew_one<u64>(t, seed, number, keep, first, step); break;
    }
    __syncthreads();  // each block has read the state before it says that it is done
    if (threadIdx.x == 0) __threadfence();  // and so it is seen by the block that writes the next state
    if (threadIdx.x == 0 && atomicAdd(&state->done, 1ull) == (u64)gridDim.x * gridDim.y - 1) {
        state->number = number + 1;
        state->done = 0;
    }
}
