/*
op = "conv"
rung = 124
name = "hash_of_the_launch_before"
idea = "Planted: computes when the hash that the launch before took of all inputs had changed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

__device__ unsigned int hashes[2];

CONV {
    SIZES
    const bool changed = hashes[0] != hashes[1];
    EACH(i) if (changed || poisoned(y[i])) y[i] = ANSWER(i);
    if (finished_last()) hashes[launches % 2] = hash_of(x, INPUTS < 4096 ? INPUTS : 4096, 1021);
}
