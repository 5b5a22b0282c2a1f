/*
op = "conv"
rung = 116
name = "by_call_count"
idea = "Planted: after forty launches nothing is computed."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(launches % 4096 < 40)
