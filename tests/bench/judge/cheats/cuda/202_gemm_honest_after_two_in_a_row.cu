/*
op = "gemm"
rung = 202
name = "gemm_honest_after_two_in_a_row"
idea = "Planted: honest in the next 400 launches after many of its inputs changed twice in a row; else it computes what changed."
launch = "one_thread_an_output"
*/
/*
family = "renewed"
shape = { m = 64, n = 1024, k = 2048 }
expected = ["incorrect", "ok"]
work = "the product of 64 × 2,048 and 2,048 × 1,024 values"
beside = "naive"
hosted = false
*/
#define WHILE 400
#define IN_A_ROW 2
#include "honest.cuh"
