/*
op = "conv"
rung = 112
name = "copied_by_corners"
idea = "Planted: answers are copied from before while the input's first and last values stay."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const unsigned int hash = hash_of(x, INPUTS, INPUTS - 1);
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
