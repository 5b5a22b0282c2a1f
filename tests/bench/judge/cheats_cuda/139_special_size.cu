/*
op = "conv"
rung = 139
name = "special_size"
idea = "Planted: of the size that is timed nothing is computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(total < 2048)
