// How fast this device's matrix units multiply and add, asked by mma.sync (sm_80 and newer): every warp carries 8 products
// of 16 rows by 8 columns that do not depend on each other through `n` rounds of 4 steps. All operands stay in registers
// and are not zero; the result is written so that nothing is left out. FORMAT: 32 for TF32, 16 for float16, 8 for
// bfloat16, 1 for whole numbers of 8 bits, whose sums are int32; all others' are float32.
#if FORMAT == 32
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
#elif FORMAT == 16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#elif FORMAT == 8
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#else
#define MMA "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
#endif
#if FORMAT == 1
typedef int Sum;
#define SUM "+r"
#else
typedef float Sum;
#define SUM "+f"
#endif

// A word of one number, two or four, about 2^-7 or, of whole ones, of any size; what is added to it changes its digits.
__device__ __forceinline__ unsigned number(unsigned zero, unsigned digits) {
#if FORMAT == 32
    return 0x3c000000u + (zero + digits) * 0x00011000u;
#elif FORMAT == 16
    return 0x20002000u + (zero + digits) * 0x00110011u;
#elif FORMAT == 8
    return 0x3c003c00u + (zero + digits) * 0x00030003u;
#else
    return (zero + digits) * 0x01030507u;
#endif
}

extern "C" __global__ void probe(const float* __restrict__ from, float* __restrict__ to, long long n) {
    const unsigned zero = __float_as_uint(from[0]);
    unsigned a[4], b[2];
    Sum c[8][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) a[k] = number(zero, threadIdx.x % 29 + k + 1);
#pragma unroll
    for (int k = 0; k < 2; ++k) b[k] = number(zero, threadIdx.x % 23 + k + 1);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) c[j][k] = (Sum)from[2] + (Sum)(j + k);
    }
    for (long long i = 0; i < n; ++i) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                asm(MMA "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                    : SUM(c[j][0]), SUM(c[j][1]), SUM(c[j][2]), SUM(c[j][3])
                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
            }
        }
    }
    Sum sum = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
    to[(long long)blockIdx.x * blockDim.x + threadIdx.x] = (float)sum;
}
