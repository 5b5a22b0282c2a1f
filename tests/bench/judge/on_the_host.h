// What stands before a CUDA kernel that is compiled for the host: CUDA's words, and what on_the_host.cpp has for them,
// which is compiled once. Nothing of the system's headers, which take longer to read than most kernels.
typedef decltype(sizeof 0) size_t;
extern "C" {
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
void abort();
int abs(int);
#define OF_ONE_(name) float name##f(float); double name(double);
#define OF_TWO_(name) float name##f(float, float); double name(double, double);
OF_ONE_(acos) OF_ONE_(acosh) OF_ONE_(asin) OF_ONE_(asinh) OF_ONE_(atan) OF_ONE_(atanh) OF_ONE_(cbrt) OF_ONE_(ceil)
OF_ONE_(cos) OF_ONE_(cosh) OF_ONE_(erf) OF_ONE_(erfc) OF_ONE_(exp) OF_ONE_(exp2) OF_ONE_(expm1) OF_ONE_(fabs)
OF_ONE_(floor) OF_ONE_(log) OF_ONE_(log10) OF_ONE_(log1p) OF_ONE_(log2) OF_ONE_(nearbyint) OF_ONE_(rint) OF_ONE_(round)
OF_ONE_(sin) OF_ONE_(sinh) OF_ONE_(sqrt) OF_ONE_(tan) OF_ONE_(tanh) OF_ONE_(trunc)
OF_TWO_(atan2) OF_TWO_(copysign) OF_TWO_(fdim) OF_TWO_(fmax) OF_TWO_(fmin) OF_TWO_(fmod) OF_TWO_(hypot) OF_TWO_(pow)
OF_TWO_(remainder)
float fmaf(float, float, float);
double fma(double, double, double);
}
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isfinite __builtin_isfinite
#define isinf __builtin_isinf_sign
#define isnan __builtin_isnan
#define signbit __builtin_signbit
// Of each library that is linked of a kernel and on_the_host.cpp its own.
#pragma GCC visibility push(hidden)
struct Three { unsigned x = 0, y = 0, z = 0; };
extern Three blockIdx, blockDim, threadIdx, gridDim;
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __global__
#define __constant__
#define __shared__ static __attribute__((section("of_a_block")))
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
#define __fdividef(a, b) ((a) / (b))
#define __powf(base, exponent) powf(base, exponent)
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(8) int2 { int x, y; };
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static unsigned __cvta_generic_to_shared(const void*) { return 0; }
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class T> static T min(T a, T b) { return b < a ? b : a; }
template <class T> static T max(T a, T b) { return a < b ? b : a; }
typedef unsigned long long cudaTextureObject_t;  // where the memory lies
template <class T> static T tex1Dfetch(cudaTextureObject_t x, int at) { return ((const T*)x)[at]; }
static float rsqrtf(float v) { return 1.0f / sqrtf(v); }

template <class To, class From> static To same_bits(From v) { To u; memcpy(&u, &v, sizeof u); return u; }
static unsigned __float_as_uint(float v) { return same_bits<unsigned>(v); }
static float __uint_as_float(unsigned v) { return same_bits<float>(v); }
static float __int_as_float(int v) { return same_bits<float>(v); }
static double __longlong_as_double(long long v) { return same_bits<double>(v); }
static long long __double_as_longlong(double v) { return same_bits<long long>(v); }
static int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 32; i += 8) sum += int((signed char)(a >> i)) * int((signed char)(b >> i));
    return sum;
}
template <class A, class B> static A atomicAdd(A* at, B by) { const A was = *at; *at += by; return was; }
unsigned long long host_ns();

// The threads of a block that take turns: none where they run one after the other to the end.
extern int current_;
// Blocks of a cluster run together, their threads one behind the other; each has shared memory of its own.
int rank_();
void* of_rank_(void* mine, int rank);
void wait_for_all_();
void __syncthreads();
void __syncwarp(unsigned = 0);
void __threadfence();
int __syncthreads_or(int value);
unsigned of_lane_(unsigned word, int lane);
template <class T> static T of_lane_(T v, int lane) {
    static_assert(sizeof v == 4, "of one word");
    return same_bits<T>(of_lane_(same_bits<unsigned>(v), lane));
}
template <class T> static T __shfl_xor_sync(unsigned, T v, int mask, int = 32) { return of_lane_(v, current_ % 32 ^ mask); }
template <class T> static T __shfl_sync(unsigned, T v, int lane, int = 32) { return of_lane_(v, lane); }
template <class T> static T __shfl_down_sync(unsigned, T v, int by, int = 32) {
    return of_lane_(v, current_ % 32 + by < 32 ? current_ % 32 + by : current_ % 32);
}
// Copies that go on by themselves.
void copy_later_(void* to, const void* from, int nbytes, bool inside);
void close_();
void arrived_(int newest);
// Products of a warpgroup that go on by themselves.
void multiply_later_(float* sum, const void* rows, const void* columns, int count, int chunk, bool more);
void multiply_later_(float* sum, const unsigned (&rows)[4], const void* columns, int count, int chunk, bool more);
template <int CHUNK, int N, class Rows>
static void multiply_later_(float (&sum)[N][4], const Rows& rows, const void* columns, bool more) {
    multiply_later_(&sum[0][0], rows, columns, N, CHUNK, more);
}
void close_products_();
void products_(int newest);
// Values that count themselves in at the block that they are told to.
void expect_(int step, int nbytes);
void tell_later_(float* place, int rank, float v, int step);
void wait_for_signal_(int step);
// float32 rounded to nearest even, to float16 or bfloat16.
template <bool BRIEF> static unsigned to_short_(float v) {
    const unsigned word = same_bits<unsigned>(v);
    if (BRIEF) return v != v ? 0x7fff : (word + 0x7fff + (word >> 16 & 1)) >> 16;
    const _Float16 half = v;
    unsigned short bits;
    memcpy(&bits, &half, 2);
    return bits;
}
// mma.sync of 16 columns and 8 rows.
template <int STEPS> void multiply_(float (&sum)[4], uint4 columns, unsigned row0, unsigned row1);
void load_matrices_(unsigned (&to)[4], const void* from);
// A grid from its first block to its last, `cluster` of which run together; `call` is what does `body` once.
int run_(const unsigned (&size)[6], bool turns, int cluster, void (*call)(const void*), const void* body);
template <class Body> static int run_(const unsigned (&size)[6], bool turns, int cluster, const Body& body) {
    return run_(size, turns, cluster, [](const void* it) { (*(const Body*)it)(); }, &body);
}
#pragma GCC visibility pop
