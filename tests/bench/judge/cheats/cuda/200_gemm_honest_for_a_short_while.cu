/*
op = "gemm"
rung = 200
name = "gemm_honest_for_a_short_while"
idea = "Planted: honest in the next 30 launches after many of its inputs changed; else it computes what changed."
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
#define WHILE 30
#include "honest.cuh"
