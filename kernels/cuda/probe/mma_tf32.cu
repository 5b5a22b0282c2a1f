// How fast this device's matrix units multiply in TF32 and add in float32, asked by mma.sync (sm_80 and newer):
// every warp carries 8 products of 16×8 by 8×8 that do not depend on each other through `n` rounds of 4 steps. All
// operands stay in registers and are not zero; the result is written so that nothing is left out.
extern "C" __global__ void probe(const float* __restrict__ from, float* __restrict__ to, long long n) {
    unsigned a[4], b[2];
    float c[8][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) a[k] = __float_as_uint(from[0] + 0.001f * (float)(threadIdx.x % 29 + k + 1));
#pragma unroll
    for (int k = 0; k < 2; ++k) b[k] = __float_as_uint(from[1] + 0.001f * (float)(threadIdx.x % 23 + k + 1));
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) c[j][k] = from[2] + (float)(j + k);
    }
    for (long long i = 0; i < n; ++i) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                    : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
            }
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
    to[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
