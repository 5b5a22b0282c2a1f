/*
op = "conv"
rung = 127
name = "every_fourth_image"
idea = "Planted: only every fourth image is computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(image_of(p, i) % 4 == 0)
