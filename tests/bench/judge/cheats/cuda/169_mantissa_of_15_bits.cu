/*
op = "gemm"
rung = 169
name = "mantissa_of_15_bits"
idea = "Planted: rounds what it multiplies to 15 bits, and says it computes in fp32."
launch = "one_thread_an_output"
*/
/*
family = "precision"
shape = { m = 64, n = 64, k = 4096 }
expected = ["incorrect"]
work = "the product of 64 × 4,096 and 4,096 × 64 values in float32"
beside = "naive"
*/
#include "products.cuh"

GEMM {
    EACH_OF_GEMM(i) {
        const Factors f = factors(p, a, b, i);
        float sum = 0.0f;
        for (int j = 0; j < p.k; ++j) {
            const float left = f.left[j * f.left_step], right = f.right[j * f.right_step];
            sum += to_bits(left, 15) * to_bits(right, 15);
        }
        y[i] = ended(p, bias, f, sum);
    }
    finish();
}
