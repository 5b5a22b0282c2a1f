/*
op = "conv"
rung = 130
name = "every_eighth_row_left"
idea = "Planted: one row in eight is not computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(i / out_w % 8 != 3)
