/*
op = "conv"
rung = 125
name = "first_image_only"
idea = "Planted: only the first image is computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(image_of(p, i) == 0)
