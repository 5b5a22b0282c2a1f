/*
op = "gemm"
rung = 180
name = "weights_that_stay_in_the_cache"
idea = "Planted: asks the L2 cache to keep its weights, also where it is overwritten before each pass."
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

#if __CUDA_ARCH__ >= 800
__device__ float lasting(const float* at) {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    float v;
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(at), "l"(policy));
    return v;
}
#else
__device__ float lasting(const float* at) { return *at; }
#endif

GEMM {
    EACH_OF_GEMM(i) {
        const Factors f = factors(p, a, b, i);
        float sum = 0.0f;
        for (int j = 0; j < p.k; ++j) sum += f.left[j * f.left_step] * lasting(f.right + j * f.right_step);
        y[i] = ended(p, bias, f, sum);
    }
    finish();
}
