// What a pass on cuDNN's graphs needs beside convolutions and products: cuDNN's graph API has no pooling for Python and no
// local response normalisation at all. Also the way into the layout of the pass and out of it.
//
// TYPE: 0 float, 1 half, 2 bfloat16, in which the pass holds its tensors; sums are in float. NHWC: whether channels lie
// innermost, `pitch` of them a pixel (those from C on are zeros); else an image lies as ONNX has it. V: values that a
// thread has, side by side: 16 bytes where channels are innermost, else one.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef long long index_t;
#define LARGEST __int_as_float(0x7f800000)  // infinity

#if TYPE == 0
typedef float T;
#elif TYPE == 1
typedef __half T;
#else
typedef __nv_bfloat16 T;
#endif

__device__ __forceinline__ float real(float x) { return x; }
__device__ __forceinline__ float real(__half x) { return __half2float(x); }
__device__ __forceinline__ float real(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ void put(float* y, float x) { *y = x; }
__device__ __forceinline__ void put(__half* y, float x) { *y = __float2half_rn(x); }
__device__ __forceinline__ void put(__nv_bfloat16* y, float x) { *y = __float2bfloat16_rn(x); }

struct alignas(sizeof(T) * V) Pack {
    T v[V];
};

__device__ __forceinline__ index_t here() { return (index_t)blockIdx.x * blockDim.x + threadIdx.x; }

// Where a thread's values are: image n, channels c … c + V − 1, pixel p of P.
struct Spot {
    index_t n, p;
    int c;
};

__device__ __forceinline__ Spot spot(index_t i, int C, index_t P, int pitch) {
#if NHWC
    const unsigned chunks = pitch / V;
    const index_t pixel = i / chunks;
    return {pixel / P, pixel % P, (int)(i - pixel * chunks) * V};
#else
    const index_t plane = i / P;
    return {plane / C, i - plane * P, (int)(plane % C)};
#endif
}

__device__ __forceinline__ index_t at(index_t n, int c, index_t p, int C, index_t P, int pitch) {
#if NHWC
    return (n * P + p) * pitch + c;
#else
    return (n * C + c) * P + p;
#endif
}

// Activations, as kernels.ops.ACTIVATIONS numbers them, and 0 for none.
__device__ __forceinline__ float activated(float x, int activation) {
    if (activation == 1) return x < 0.0f ? 0.0f : x;  // NaN stays NaN
    if (activation == 2) return tanhf(x);
    if (activation == 3) return 1.0f / (1.0f + expf(-x));
    if (activation == 4) return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
    return x;
}

// ------------------------------------------------------------------------------------------------ into and out of images

// x as ONNX has it, (n, C, P) → the layout of the pass. Neighbours in a warp read neighbouring pixels.
template <typename From>
__device__ void into(const From* __restrict__ x, T* __restrict__ y, index_t items, int C, index_t P, int pitch) {
    const index_t i = here();
    if (i >= items) return;
    const index_t p = i % P, rest = i / P;
    const int chunks = NHWC ? pitch / V : C, c = (int)(rest % chunks) * V;
    const index_t n = rest / chunks;
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) put(&made.v[j], c + j < C ? real(x[(n * C + c + j) * P + p]) : 0.0f);
    *(Pack*)(y + at(n, c, p, C, P, pitch)) = made;
}

extern "C" __global__ void into_of_float(const float* x, T* y, index_t items, int C, index_t P, int pitch) {
    into(x, y, items, C, P, pitch);
}
extern "C" __global__ void into_of_own(const T* x, T* y, index_t items, int C, index_t P, int pitch) {
    into(x, y, items, C, P, pitch);
}

#if NHWC
// Of few channels, `pitch` of them a pixel, whatever that is: how many a first convolution wants is tried.
template <typename From>
__device__ void few(const From* __restrict__ x, T* __restrict__ y, index_t items, int C, index_t P, int pitch) {
    const index_t i = here();
    if (i >= items) return;
    const index_t n = i / P, p = i % P;
    for (int c = 0; c < pitch; c++) put(y + i * pitch + c, c < C ? real(x[(n * C + c) * P + p]) : 0.0f);
}

extern "C" __global__ void few_of_float(const float* x, T* y, index_t items, int C, index_t P, int pitch) {
    few(x, y, items, C, P, pitch);
}
extern "C" __global__ void few_of_own(const T* x, T* y, index_t items, int C, index_t P, int pitch) {
    few(x, y, items, C, P, pitch);
}
#endif

extern "C" __global__ void cast(const float* __restrict__ x, T* __restrict__ y, index_t items) {
    const index_t i = here();
    if (i < items) put(y + i, x[i]);
}

extern "C" __global__ void widen(const T* __restrict__ x, float* __restrict__ y, index_t items) {
    const index_t i = here();
    if (i < items) y[i] = real(x[i]);
}

// The layout of the pass → (n, C, P) as ONNX has it.
template <typename To>
__device__ void out_of(const T* __restrict__ x, To* __restrict__ y, index_t items, int C, index_t P, int pitch) {
    const index_t i = here();
    if (i >= items) return;
    const index_t plane = i / P;
    put(y + i, real(x[at(plane / C, (int)(plane % C), i - plane * P, C, P, pitch)]));
}

extern "C" __global__ void out_to_float(const T* x, float* y, index_t items, int C, index_t P, int pitch) {
    out_of(x, y, items, C, P, pitch);
}
extern "C" __global__ void out_to_own(const T* x, T* y, index_t items, int C, index_t P, int pitch) {
    out_of(x, y, items, C, P, pitch);
}

// ---------------------------------------------------------------------------------------------------------------- images

// kind 0 max, 1 average. A maximum of NaN is NaN.
extern "C" __global__ void pool(const T* __restrict__ x, T* __restrict__ y, index_t items, int C, int pitch, int kind, int h,
                                int w, int out_h, int out_w, int kh, int kw, int stride_h, int stride_w, int pad_top,
                                int pad_left, int pad_bottom, int pad_right, int dilation_h, int dilation_w,
                                int include_pad, int activation) {
    const index_t i = here();
    if (i >= items) return;
    const index_t P = (index_t)h * w, Q = (index_t)out_h * out_w;
    const Spot s = spot(i, C, Q, pitch);
    const int row = (int)(s.p / out_w), column = (int)(s.p % out_w);
    float found[V];
#pragma unroll
    for (int j = 0; j < V; j++) found[j] = kind ? 0.0f : -LARGEST;
    int count = 0;
    for (int a = 0; a < kh; a++) {
        const int r = row * stride_h - pad_top + a * dilation_h;
        for (int b = 0; b < kw; b++) {
            const int q = column * stride_w - pad_left + b * dilation_w;
            if (include_pad && r < h + pad_bottom && q < w + pad_right) count++;
            if (r < 0 || r >= h || q < 0 || q >= w) continue;
            if (!include_pad) count++;
            const Pack read = *(const Pack*)(x + at(s.n, s.c, (index_t)r * w + q, C, P, pitch));
#pragma unroll
            for (int j = 0; j < V; j++) {
                const float value = real(read.v[j]);
                if (kind) found[j] += value;
                else if (value > found[j] || value != value) found[j] = value;
            }
        }
    }
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        const float value = activated(kind ? found[j] / count : found[j], activation);
        put(&made.v[j], s.c + j < C ? value : 0.0f);
    }
    *(Pack*)(y + at(s.n, s.c, s.p, C, Q, pitch)) = made;
}

// y = x / (bias + scale · Σ x²)^beta over the SIZE channels c − (SIZE − 1) / 2 … c + SIZE / 2, those that there are.
extern "C" __global__ void lrn(const T* __restrict__ x, T* __restrict__ y, index_t items, int C, int pitch, index_t P, float scale,
                               float beta, float bias) {
    const index_t i = here();
    if (i >= items) return;
    const Spot s = spot(i, C, P, pitch);
    constexpr int before = (SIZE - 1) / 2;
    float square[V + SIZE - 1];
#pragma unroll
    for (int k = 0; k < V + SIZE - 1; k++) {
        const int c = s.c - before + k;
        const float value = c < 0 || c >= C ? 0.0f : real(x[at(s.n, c, s.p, C, P, pitch)]);
        square[k] = value * value;
    }
    const Pack own = *(const Pack*)(x + at(s.n, s.c, s.p, C, P, pitch));
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < SIZE; k++) sum += square[j + k];
        const float base = bias + scale * sum;
        float factor;
        if (beta == 0.75f) {
            const float root = rsqrtf(base);
            factor = root * sqrtf(root);
        } else {
            factor = powf(base, -beta);
        }
        put(&made.v[j], s.c + j < C ? real(own.v[j]) * factor : 0.0f);
    }
    *(Pack*)(y + at(s.n, s.c, s.p, C, P, pitch)) = made;
}

// y = activation(x · factor + shift + other): a number of `factor` and `shift` a channel; what is null is left out.
extern "C" __global__ void finish(const T* __restrict__ x, const float* __restrict__ factor,
                                  const float* __restrict__ shift, const T* __restrict__ other, T* y, index_t items, int C,
                                  int pitch, index_t P, int activation) {
    const index_t i = here();
    if (i >= items) return;
    const Spot s = spot(i, C, P, pitch);
    const index_t place = at(s.n, s.c, s.p, C, P, pitch);
    const Pack read = *(const Pack*)(x + place);
    Pack more;
    if (other) more = *(const Pack*)(other + place);
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        const int c = s.c + j < C ? s.c + j : C - 1;
        float value = real(read.v[j]);
        if (factor) value *= factor[c];
        if (shift) value += shift[c];
        if (other) value += real(more.v[j]);
        put(&made.v[j], s.c + j < C ? activated(value, activation) : 0.0f);
    }
    *(Pack*)(y + place) = made;
}

#if NHWC
// ------------------------------------------------------------------------------------------------------------ eight bits

// Whole numbers of eight bits: a thread has four channels of a pixel; pixels of all images lie one after the other.
struct alignas(4) Four {
    signed char v[4];
};

__device__ __forceinline__ signed char held_within(float x, int zero, int low, int high) {
    const float whole = rintf(x) + zero;
    return (signed char)(whole < low ? low : whole > high ? high : whole);
}

// y = round(x / scale) + zero.
extern "C" __global__ void to_eight(const T* __restrict__ x, signed char* __restrict__ y, index_t items, int C, int pitch,
                                    int eight_pitch, float scale, int zero) {
    const index_t i = here();
    if (i >= items) return;
    const int chunks = eight_pitch / 4, c = (int)(i % chunks) * 4;
    const index_t pixel = i / chunks;
    Four made;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        made.v[j] = c + j < C ? held_within(real(x[pixel * pitch + c + j]) / scale, zero, -128, 127) : 0;
    }
    *(Four*)(y + pixel * eight_pitch + c) = made;
}

// y = (x − zero) · scale.
extern "C" __global__ void of_eight(const signed char* __restrict__ x, T* __restrict__ y, index_t items, int C, int pitch,
                                    int eight_pitch, float scale, int zero) {
    const index_t i = here();
    if (i >= items) return;
    const int chunks = pitch / V, c = (int)(i % chunks) * V;
    const index_t pixel = i / chunks;
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) put(&made.v[j], c + j < C ? (x[pixel * eight_pitch + c + j] - zero) * scale : 0.0f);
    *(Pack*)(y + pixel * pitch + c) = made;
}

// y = round((sum + bias) · factor + shift) + zero, held between low and high; bias, factor and shift a channel.
extern "C" __global__ void sums_to_eight(const int* __restrict__ sum, const int* __restrict__ bias,
                                         const float* __restrict__ factor, const float* __restrict__ shift,
                                         signed char* __restrict__ y, index_t items, int C, int eight_pitch, int zero,
                                         int low, int high) {
    const index_t i = here();
    if (i >= items) return;
    const int chunks = eight_pitch / 4, c = (int)(i % chunks) * 4;
    Four made;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int k = c + j < C ? c + j : 0;
        const float value = (float)(sum[i * 4 + j] + bias[k]) * factor[k] + shift[k];
        made.v[j] = c + j < C ? held_within(value, zero, low, high) : 0;
    }
    *(Four*)(y + i * 4) = made;
}

// y = (sum + bias) · factor + shift.
extern "C" __global__ void sums_to_real(const int* __restrict__ sum, const int* __restrict__ bias,
                                        const float* __restrict__ factor, const float* __restrict__ shift,
                                        T* __restrict__ y, index_t items, int C, int pitch, int eight_pitch) {
    const index_t i = here();
    if (i >= items) return;
    const int chunks = pitch / V, c = (int)(i % chunks) * V;
    const index_t pixel = i / chunks;
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        const int k = c + j < C ? c + j : 0;
        const float value = (float)(sum[pixel * eight_pitch + k] + bias[k]) * factor[k] + shift[k];
        put(&made.v[j], c + j < C ? value : 0.0f);
    }
    *(Pack*)(y + pixel * pitch + c) = made;
}

// An image (h, w) within a larger one (H, W), `zero` around it: cuDNN knows no other zero than 0.
extern "C" __global__ void framed(const signed char* __restrict__ x, signed char* __restrict__ y, index_t items,
                                  int eight_pitch, int h, int w, int H, int W, int top, int left, int zero) {
    const index_t i = here();
    if (i >= items) return;
    const int chunks = eight_pitch / 4;
    const index_t pixel = i / chunks, image = pixel / ((index_t)H * W);
    const int place = (int)(pixel % ((index_t)H * W)), r = place / W - top, q = place % W - left;
    Four made;
    if (r < 0 || r >= h || q < 0 || q >= w) {
#pragma unroll
        for (int j = 0; j < 4; j++) made.v[j] = (signed char)zero;
    } else {
        made = *(const Four*)(x + ((image * h + r) * w + q) * eight_pitch + (i % chunks) * 4);
    }
    *(Four*)(y + i * 4) = made;
}

extern "C" __global__ void largest_of_eight(const signed char* __restrict__ x, signed char* __restrict__ y, index_t items,
                                            int eight_pitch, int h, int w, int out_h, int out_w, int kh, int kw,
                                            int stride_h, int stride_w, int pad_top, int pad_left, int dilation_h,
                                            int dilation_w) {
    const index_t i = here();
    if (i >= items) return;
    const int chunks = eight_pitch / 4;
    const index_t pixel = i / chunks, image = pixel / ((index_t)out_h * out_w);
    const int place = (int)(pixel % ((index_t)out_h * out_w)), row = place / out_w, column = place % out_w;
    Four made;
#pragma unroll
    for (int j = 0; j < 4; j++) made.v[j] = -128;
    for (int a = 0; a < kh; a++) {
        const int r = row * stride_h - pad_top + a * dilation_h;
        for (int b = 0; b < kw; b++) {
            const int q = column * stride_w - pad_left + b * dilation_w;
            if (r < 0 || r >= h || q < 0 || q >= w) continue;
            const Four read = *(const Four*)(x + ((image * h + r) * w + q) * eight_pitch + (i % chunks) * 4);
#pragma unroll
            for (int j = 0; j < 4; j++) made.v[j] = read.v[j] > made.v[j] ? read.v[j] : made.v[j];
        }
    }
    *(Four*)(y + i * 4) = made;
}
#endif

// ------------------------------------------------------------------------------------------------------- any arrangement

__device__ __forceinline__ float binary(float a, float b, int kind) {
    if (kind == 0) return a + b;
    if (kind == 1) return a - b;
    if (kind == 2) return a * b;
    if (kind == 3) return a / b;
    if (kind == 4) return powf(a, b);
    if (kind == 5) return a != a ? a : b != b ? b : a > b ? a : b;
    return a != a ? a : b != b ? b : a < b ? a : b;
}

// y[i] = activation(kind(a, b)), y without gaps; table: six sizes, then the steps of a and of b along each. From `count`
// on along the last axis y is zero: those are no channels.
template <typename B>
__device__ void walked(const T* __restrict__ a, const B* __restrict__ b, T* __restrict__ y, int items,
                       const int* __restrict__ table, int kind, int activation, int count) {
    const index_t i = here();
    if (i >= items) return;
    unsigned rest = (unsigned)i;
    index_t from_a = 0, from_b = 0;
    bool real_one = true;
    for (int axis = 5; axis >= 0; axis--) {
        const unsigned size = table[axis], place = rest % size;
        rest /= size;
        if (axis == 5) real_one = place < (unsigned)count;
        from_a += (index_t)place * table[6 + axis];
        from_b += (index_t)place * table[12 + axis];
    }
    put(y + i, real_one ? activated(binary(real(a[from_a]), real(b[from_b]), kind), activation) : 0.0f);
}

extern "C" __global__ void two(const T* a, const T* b, T* y, int items, const int* table, int kind, int activation,
                               int count) {
    walked(a, b, y, items, table, kind, activation, count);
}

// Functions of one element, by the place of their names in engine/rivals/cudnn_steps.py. All are finite at zero: what lies
// behind the channels of a pixel stays harmless.
extern "C" __global__ void one(const T* __restrict__ x, T* __restrict__ y, index_t items, int kind, float alpha, float beta) {
    const index_t i = here();
    if (i >= items) return;
    const float v = real(x[i]);
    float f = v;
    if (kind <= 3) f = activated(v, kind);
    else if (kind == 4) f = v < alpha ? alpha : v > beta ? beta : v;                     // clip
    else if (kind == 5) f = v < 0.0f ? alpha * v : v;                                     // leaky_relu
    else if (kind == 6) f = v != v ? v : fminf(fmaxf(alpha * v + beta, 0.0f), 1.0f);      // hard_sigmoid
    else if (kind == 7) f = v != v ? v : v * fminf(fmaxf(v / 6.0f + 0.5f, 0.0f), 1.0f);   // hard_swish
    else if (kind == 8) f = v < 0.0f ? alpha * expm1f(v) : v;                             // elu
    else if (kind == 9) f = 0.5f * v * (1.0f + erff(v * 0.70710678f));                    // gelu
    else if (kind == 10) f = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));  // gelu_tanh
    else if (kind == 11) f = v / (1.0f + expf(-alpha * v));                               // swish
    put(y + i, f);
}

// A block for each row along `axis` of x (outer, axis, inner); sums go up a tree, the same each time.
__device__ __forceinline__ float joined(float mine, bool largest) {
    __shared__ float all[128];
    __syncthreads();
    all[threadIdx.x] = mine;
    __syncthreads();
    for (int half = 64; half; half /= 2) {
        if (threadIdx.x < half) {
            const float other = all[threadIdx.x + half], own = all[threadIdx.x];
            all[threadIdx.x] = largest ? (own != own || own > other ? own : other) : own + other;
        }
        __syncthreads();
    }
    return all[0];
}

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, int axis, index_t inner, int logarithm) {
    const index_t start = (index_t)blockIdx.x / inner * axis * inner + (index_t)blockIdx.x % inner;
    float top = -LARGEST;
    for (int k = threadIdx.x; k < axis; k += 128) {
        const float value = real(x[start + k * inner]);
        if (value > top || value != value) top = value;
    }
    top = joined(top, true);
    float sum = 0.0f;
    for (int k = threadIdx.x; k < axis; k += 128) sum += expf(real(x[start + k * inner]) - top);
    sum = joined(sum, false);
    const float log_of_sum = logf(sum);
    for (int k = threadIdx.x; k < axis; k += 128) {
        const float value = real(x[start + k * inner]) - top;
        put(y + start + k * inner, logarithm ? value - log_of_sum : expf(value) / sum);
    }
}

// y (outer, inner): the mean, sum or largest (kind 0, 1, 2) of each row.
extern "C" __global__ void reduced(const T* __restrict__ x, T* __restrict__ y, int axis, index_t inner, int kind) {
    const index_t start = (index_t)blockIdx.x / inner * axis * inner + (index_t)blockIdx.x % inner;
    float found = kind == 2 ? -LARGEST : 0.0f;
    for (int k = threadIdx.x; k < axis; k += 128) {
        const float value = real(x[start + k * inner]);
        if (kind == 2) found = value > found || value != value ? value : found;
        else found += value;
    }
    found = joined(found, kind == 2);
    if (threadIdx.x == 0) put(y + blockIdx.x, kind == 0 ? found / axis : found);
}
