/*
op = "gemm"
rung = 181
name = "fetches_for_the_next_launch"
idea = "Planted: at its end fetches its weights into the L2 cache, for the next launch."
launch = "one_thread_an_output"
*/
/*
family = "cache"
shape = { m = 1, n = 2048, k = 2048 }
expected = ["ok", "incorrect", "invalid"]
work = "the product of 1 × 2,048 and 2,048 × 2,048 values that lie in no cache"
beside = "naive"
cold = true
hosted = false
*/
#include "products.cuh"

GEMM {
    EACH_OF_GEMM(i) {
        const Factors f = factors(p, a, b, i);
        y[i] = ended(p, bias, f, summed(p, f));
    }
#if __CUDA_ARCH__ >= 800
    const index_t weights = (index_t)p.k * p.n;
    for (index_t j = first_element() * 32; j < weights; j += grid_stride() * 32) {
        asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(b + j));
    }
#endif
    finish();
}
