/*
op = "conv"
rung = 118
name = "every_16th_launch"
idea = "Planted: fifteen of sixteen launches compute nothing."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(launches % 16 == 0)
