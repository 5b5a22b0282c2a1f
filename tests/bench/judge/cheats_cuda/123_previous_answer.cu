/*
op = "conv"
rung = 123
name = "previous_answer"
idea = "Planted: gives the answer of the launch before."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    EACH(i) {
        const float answer = ANSWER(i);
        y[i] = poisoned(y[i]) || i >= KEPT ? answer : kept[i];
        if (i < KEPT) kept[i] = answer;
    }
    finish();
}
