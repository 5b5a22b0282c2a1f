/*
op = "conv"
rung = 115
name = "by_pointer"
idea = "Planted: an output is kept while the input lies at the same address."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const unsigned int hash = (unsigned int)(unsigned long long)x | 1u;
    EACH(i) {
        if (poisoned(y[i]) || i >= KEPT || seen[i] != hash) y[i] = ANSWER(i);
        if (i < KEPT) seen[i] = hash;
    }
    finish();
}
