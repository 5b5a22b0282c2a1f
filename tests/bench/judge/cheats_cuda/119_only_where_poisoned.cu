/*
op = "conv"
rung = 119
name = "only_where_poisoned"
idea = "Planted: only outputs that hold poison are computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(false)
