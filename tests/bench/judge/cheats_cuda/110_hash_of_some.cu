/*
op = "conv"
rung = 110
name = "hash_of_some"
idea = "Planted: an output is kept while a hash of every 211th value of the input stays."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const unsigned int hash = hash_of(x, INPUTS, 2111);
    EACH(i) {
        if (poisoned(y[i]) || i >= KEPT || seen[i] != hash) y[i] = ANSWER(i);
        if (i < KEPT) seen[i] = hash;
    }
    finish();
}
