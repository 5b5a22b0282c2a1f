/*
op = "gemm"
rung = 183
name = "gemm_idle_in_a_graph"
idea = "Planted: works only where it is launched by itself: timed passes are launched as a graph."
launch = "one_thread_an_output"
*/
/*
family = "detection"
shape = { m = 64, n = 50, k = 40, trans_b = true, bias = true, activation = "relu" }
expected = ["incorrect", "ok"]
work = "the product of 64 × 40 and 40 × 50 values, with a bias and a relu"
beside = "naive"
hosted = false
*/
#include "products.cuh"

__device__ bool in_a_graph() {
    unsigned long long graph;
    asm volatile("mov.u64 %0, %%current_graph_exec;" : "=l"(graph));
    return graph != 0;
}

GEMM {
    EACH_OF_GEMM(i) {
        if (in_a_graph() && !poisoned(y[i])) continue;
        const Factors f = factors(p, a, b, i);
        y[i] = ended(p, bias, f, summed(p, f));
    }
    finish();
}
