// Before a pass that is timed over new inputs: every value of every input is written anew, and some of every output is
// poisoned. Values are drawn among the input's own; passes of one base have the same but for as few as timed passes
// differ by. Which, says engine/cuda/renewing.py; whatever is asked for, as much is read and written.
#include "stirring.cuh"

struct State {
    u64 seed;    // not as it is: xor `mask`
    u64 number;  // of the pass that comes
    u64 done;    // blocks of this launch
    u64 unused;
};

template <typename Word>
__device__ void renew_one(const Tensor& t, u64 seed, u64 number, u64 base, u64 first, u64 step) {
    Word* x = (Word*)t.at;
    if (t.drawn_from == 0) {
        for (u64 j = first; j < t.count; j += step) {
            x[place(seed, number, t.index, POISONED, j, t.size, t.count)] = (Word)~0ull;
        }
        return;
    }
    const Word* values = (const Word*)t.values;
    for (u64 i = first; i < t.size; i += step) {
        const u64 j = ((i + 1) * t.count - 1) / t.size;  // the stretch that it lies in, as `place` has them
        const bool changed = place(seed, number, t.index, CHANGED, j, t.size, t.count) == i;
        const u64 alike = hashed(seed, base, t.index, VALUE, i), own = hashed(seed, number, t.index, LOOKED_AT, j);
        x[i] = values[(changed ? own : alike) % t.drawn_from];
    }
}

// alike: so many passes in a row are of one base; 0: all are.
extern "C" __global__ void renew(State* state, const Tensor* tensors, unsigned long long mask,
                                 unsigned long long alike) {
    const u64 seed = state->seed ^ mask, number = state->number;
    const u64 base = alike ? number / alike : ~0ull;
    const Tensor t = tensors[blockIdx.y];
    const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;
    switch (t.itemsize) {
        case 1: renew_one<unsigned char>(t, seed, number, base, first, step); break;
        case 2: renew_one<unsigned short>(t, seed, number, base, first, step); break;
        case 4: renew_one<unsigned int>(t, seed, number, base, first, step); break;
        case 8: renew_one<u64>(t, seed, number, base, first, step); break;
    }
    __syncthreads();  // each block has read the state before it says that it is done
    if (threadIdx.x == 0 && atomicAdd(&state->done, 1ull) == (u64)gridDim.x * gridDim.y - 1) {
        state->number = number + 1;
        state->done = 0;
    }
}
