/*
op = "conv"
rung = 122
name = "by_the_clock"
idea = "Planted: computes in one microsecond of eight."
launch = "one_thread_an_output"
*/
#include "cheats.cuh"

ONLY_IF(now() / 1024 % 8 == 0)
