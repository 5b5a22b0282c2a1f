/*
op = "conv"
rung = 128
name = "few_maps"
idea = "Planted: of each image half of the maps are computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(map_of(p, i) < m / 2)
