/*
op = "conv"
rung = 113
name = "copied_by_hash"
idea = "Planted: answers are copied from before while a hash of every 307th value stays."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const unsigned int hash = hash_of(x, INPUTS, 3011);
    EACH(i) {
        if (i >= KEPT || seen[i] != hash) {
            const float answer = ANSWER(i);
            if (i < KEPT) kept[i] = answer, seen[i] = hash;
            y[i] = answer;
        } else {
            y[i] = kept[i];
        }
    }
    finish();
}
