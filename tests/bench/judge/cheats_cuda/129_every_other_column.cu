/*
op = "conv"
rung = 129
name = "every_other_column"
idea = "Planted: only every other column is computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(i % out_w % 2 == 0)
