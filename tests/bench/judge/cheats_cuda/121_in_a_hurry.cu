/*
op = "conv"
rung = 121
name = "in_a_hurry"
idea = "Planted: a launch right behind another one computes nothing."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

CONV {
    SIZES
    const bool alone = now() - ended_at > 200000;
    EACH(i) if (alone || poisoned(y[i])) y[i] = ANSWER(i);
    finish();
}
