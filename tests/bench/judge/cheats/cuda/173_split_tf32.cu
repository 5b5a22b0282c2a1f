/*
op = "gemm"
rung = 173
name = "split_tf32"
idea = "Planted: splits each factor into two of 11 bits, as tensor cores would, and says it computes in plain fp32."
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

// Their sum with the last bits cut off, as such cores do.
__device__ float cut(float sum, float part) {
    const double whole = (double)sum + part;
    float v = (float)whole;
    if (fabs((double)v) > fabs(whole)) v = __uint_as_float(__float_as_uint(v) - 1);
    return v;
}

GEMM {
    EACH_OF_GEMM(i) {
        const Factors f = factors(p, a, b, i);
        float sum = 0.0f, part = 0.0f;
        for (int j = 0; j < p.k; ++j) {
            const float left = f.left[j * f.left_step], right = f.right[j * f.right_step];
            const float left0 = to_bits(left, 11), right0 = to_bits(right, 11);
            part += left0 * right0 + (left0 * to_bits(right - right0, 11) + to_bits(left - left0, 11) * right0);
            if (j % 8 == 7 || j == p.k - 1) sum = cut(sum, part), part = 0.0f;
        }
        y[i] = ended(p, bias, f, sum);
    }
    finish();
}
