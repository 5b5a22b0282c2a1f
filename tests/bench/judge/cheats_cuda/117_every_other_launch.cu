/*
op = "conv"
rung = 117
name = "every_other_launch"
idea = "Planted: every other launch computes nothing."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(launches % 2 == 0)
