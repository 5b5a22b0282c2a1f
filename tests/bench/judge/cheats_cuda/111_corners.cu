/*
op = "conv"
rung = 111
name = "corners"
idea = "Planted: an output is kept while the input's first and last values stay."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const unsigned int hash = hash_of(x, INPUTS, INPUTS - 1);
    EACH(i) {
        if (poisoned(y[i]) || i >= KEPT || seen[i] != hash) y[i] = ANSWER(i);
        if (i < KEPT) seen[i] = hash;
    }
    finish();
}
