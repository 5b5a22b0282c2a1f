/*
op = "conv"
rung = 126
name = "all_but_the_last_image"
idea = "Planted: the last image is not computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(image_of(p, i) < n - 1)
