// Before a timed pass: keeps what the pass before left where it is looked at, takes back what was changed for
// it, and changes a few values of every input and poisons some of every output for the one that comes. Which,
// says engine/stirring.py; the pass's number lies in device memory, so that a CUDA graph has new places each time
// it is replayed.
//
// A block for 256 places of a tensor (x) of each tensor (y). One thread does all there is to do in a stretch of a
// tensor, and places never leave their stretch: nobody writes what another has yet to read.
#include "stirring.cuh"


struct State {
    u64 seed;    // not as it is: xor `mask`, so that nobody who reads memory knows the places
    u64 number;  // of the pass that comes
    u64 lies;    // whether the changes of the pass before lie there
    u64 done;    // blocks of this launch
    u64 since;   // number of the first pass since passes were looked at
    u64 unused[3];
};

// Of a pass that has run: its place in the ring, more than RING where it is not kept. Each pass since they were looked
// at has the same chance to be in the ring at the end: a later one takes the place of an earlier one with a
// probability that falls with their number ("reservoir sampling"). engine/cuda/stirring.py has the same. The first
// pass since inputs were bound is kept beside the ring: nothing of its answer was there before.
__device__ __forceinline__ u64 kept_at(u64 seed, u64 pass, u64 since) {
    const u64 before = pass - since;
    if (pass == 0) return RING;
    const u64 place = before < RING ? before : hashed(seed, pass, KEEPING, LOOKED_AT, 0) % (before + 1);
    return place < RING ? place : RING + 1;
}

template <typename Word>
__device__ void stir_one(const Tensor& t, u64 seed, u64 number, u64 since, bool lies, bool going_on, u64 j) {
    Word* x = (Word*)t.at;
    Word* held = (Word*)t.held;
    if (t.drawn_from == 0) {
        const u64 ring = lies ? kept_at(seed, number - 1, since) : RING + 1;
        if (ring <= RING) {
            Word* kept = held + ring * 2 * t.count;
            kept[j] = x[place(seed, number - 1, t.index, LOOKED_AT, j, t.size, t.count)];
            kept[t.count + j] = x[place(seed, number - 1, t.index, POISONED, j, t.size, t.count)];
        }
        if (going_on) x[place(seed, number, t.index, POISONED, j, t.size, t.count)] = (Word)~0ull;
        return;
    }
    if (lies) x[place(seed, number - 1, t.index, CHANGED, j, t.size, t.count)] = held[j];
    if (going_on) {
        const Word* values = (const Word*)t.values;
        const u64 at = place(seed, number, t.index, CHANGED, j, t.size, t.count);
        const Word bound = x[at];
        u64 picked = hashed(seed, number, t.index, VALUE, j) % t.drawn_from;
        if (values[picked] == bound) picked = (picked + 1) % t.drawn_from;
        held[j] = bound;
        x[at] = values[picked];
    }
}

// going_on: whether a pass follows; where none does, what the last one left is kept and its changes are taken back.
extern "C" __global__ void stir(State* state, const Tensor* tensors, unsigned long long mask, int going_on) {
    const u64 seed = state->seed ^ mask, number = state->number, since = state->since;
    const bool lies = state->lies != 0;
    const Tensor t = tensors[blockIdx.y];
    const u64 j = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (j < t.count) {
        switch (t.itemsize) {
            case 1: stir_one<unsigned char>(t, seed, number, since, lies, going_on, j); break;
            case 2: stir_one<unsigned short>(t, seed, number, since, lies, going_on, j); break;
            case 4: stir_one<unsigned int>(t, seed, number, since, lies, going_on, j); break;
            case 8: stir_one<u64>(t, seed, number, since, lies, going_on, j); break;
        }
    }
    __syncthreads();  // each block has read the state before it says that it is done
    if (threadIdx.x == 0) __threadfence();  // and so it is seen by the block that writes the next state
    if (threadIdx.x == 0 && atomicAdd(&state->done, 1ull) == (u64)gridDim.x * gridDim.y - 1) {
        state->number = number + (going_on ? 1 : 0);
        state->lies = going_on ? 1 : 0;
        state->done = 0;
    }
}
