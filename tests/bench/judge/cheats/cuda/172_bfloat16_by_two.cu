/*
op = "gemm"
rung = 172
name = "bfloat16_by_two"
idea = "Planted: splits each factor into two of 8 bits, and says it computes in fp32."
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
            const float left0 = to_bits(left, 8), right0 = to_bits(right, 8);
            sum += left0 * right0 + left0 * to_bits(right - right0, 8) + to_bits(left - left0, 8) * right0;
        }
        y[i] = ended(p, bias, f, sum);
    }
    finish();
}
