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

// Threads are fewer than 2^31, so that they are told apart in 32 bits: a division of 64 takes as long as all else here.
__device__ __forceinline__ unsigned here() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The channel of the first of a thread's values, of which thread i has the i-th V of an image's memory.
__device__ __forceinline__ int channel(unsigned i, int C, int P, int pitch) {
#if NHWC
    return (int)(i % (unsigned)(pitch / V)) * V;
#else
    return (int)(i / (unsigned)P % (unsigned)C);
#endif
}

__device__ __forceinline__ index_t at(int n, int c, int p, int C, int P, int pitch) {
#if NHWC
    return ((index_t)n * P + p) * pitch + c;
#else
    return ((index_t)n * C + c) * P + p;
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
__device__ void into(const From* __restrict__ x, T* __restrict__ y, int items, int C, int P, int pitch) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned rest = i / (unsigned)P, chunks = NHWC ? pitch / V : C;
    const int p = (int)(i - rest * P), n = (int)(rest / chunks), c = (int)(rest % chunks) * V;
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        put(&made.v[j], c + j < C ? real(x[((index_t)n * C + c + j) * P + p]) : 0.0f);
    }
    *(Pack*)(y + at(n, c, p, C, P, pitch)) = made;
}

extern "C" __global__ void into_of_float(const float* x, T* y, int items, int C, int P, int pitch) {
    into(x, y, items, C, P, pitch);
}
extern "C" __global__ void into_of_own(const T* x, T* y, int items, int C, int P, int pitch) {
    into(x, y, items, C, P, pitch);
}

#if NHWC
// Of few channels, `pitch` of them a pixel, whatever that is: how many a first convolution wants is tried.
template <typename From>
__device__ void few(const From* __restrict__ x, T* __restrict__ y, int items, int C, int P, int pitch) {
    const unsigned i = here();
    if (i >= items) return;
    const int n = (int)(i / (unsigned)P), p = (int)(i - (unsigned)n * P);
    for (int c = 0; c < pitch; c++) {
        put(y + (index_t)i * pitch + c, c < C ? real(x[((index_t)n * C + c) * P + p]) : 0.0f);
    }
}

extern "C" __global__ void few_of_float(const float* x, T* y, int items, int C, int P, int pitch) {
    few(x, y, items, C, P, pitch);
}
extern "C" __global__ void few_of_own(const T* x, T* y, int items, int C, int P, int pitch) {
    few(x, y, items, C, P, pitch);
}

// Squares of `side` pixels as one pixel of side · side · C channels (`pitch` of them), so that a convolution whose step
// is `side` has step 1 over it: H × W such pixels, the first of which begins `top` and `left` before the image.
template <typename From>
__device__ void deep(const From* __restrict__ x, T* __restrict__ y, int items, int C, int h, int w, int H, int W, int top,
                     int left, int side, int pitch) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned chunks = pitch / V, pixel = i / chunks, line = pixel / (unsigned)W, n = line / (unsigned)H;
    const int first = (int)(i - pixel * chunks) * V, r = (int)(line - n * H) * side - top;
    const int q = (int)(pixel - line * W) * side - left;
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        const int k = first + j, place = k / C, c = k - place * C, row = r + place / side, column = q + place % side;
        const bool there = place < side * side && row >= 0 && row < h && column >= 0 && column < w;
        put(&made.v[j], there ? real(x[(((index_t)n * C + c) * h + row) * w + column]) : 0.0f);
    }
    *(Pack*)(y + (index_t)i * V) = made;
}

extern "C" __global__ void deep_of_float(const float* x, T* y, int items, int C, int h, int w, int H, int W, int top,
                                         int left, int side, int pitch) {
    deep(x, y, items, C, h, w, H, W, top, left, side, pitch);
}
extern "C" __global__ void deep_of_own(const T* x, T* y, int items, int C, int h, int w, int H, int W, int top, int left,
                                       int side, int pitch) {
    deep(x, y, items, C, h, w, H, W, top, left, side, pitch);
}
#endif

extern "C" __global__ void cast(const float* __restrict__ x, T* __restrict__ y, int items) {
    const unsigned i = here();
    if (i < items) put(y + i, x[i]);
}

extern "C" __global__ void widen(const T* __restrict__ x, float* __restrict__ y, int items) {
    const unsigned i = here();
    if (i < items) y[i] = real(x[i]);
}

// The layout of the pass → (n, C, P) as ONNX has it.
template <typename To>
__device__ void out_of(const T* __restrict__ x, To* __restrict__ y, int items, int C, int P, int pitch) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned plane = i / (unsigned)P;
    put(y + i, real(x[at((int)(plane / (unsigned)C), (int)(plane % (unsigned)C), (int)(i - plane * P), C, P, pitch)]));
}

extern "C" __global__ void out_to_float(const T* x, float* y, int items, int C, int P, int pitch) {
    out_of(x, y, items, C, P, pitch);
}
extern "C" __global__ void out_to_own(const T* x, T* y, int items, int C, int P, int pitch) {
    out_of(x, y, items, C, P, pitch);
}

// ---------------------------------------------------------------------------------------------------------------- images

// kind 0 max, 1 average. A maximum of NaN is NaN.
extern "C" __global__ void pool(const T* __restrict__ x, T* __restrict__ y, int items, int C, int pitch, int kind, int h,
                                int w, int out_h, int out_w, int kh, int kw, int stride_h, int stride_w, int pad_top,
                                int pad_left, int pad_bottom, int pad_right, int dilation_h, int dilation_w,
                                int include_pad, int activation) {
    const unsigned i = here();
    if (i >= items) return;
    const int P = h * w;
#if NHWC
    const unsigned chunks = pitch / V, pixel = i / chunks;
    const int c = (int)(i - pixel * chunks) * V;
#else
    const unsigned pixel = i;
#endif
    const unsigned line = pixel / (unsigned)out_w, plane = line / (unsigned)out_h;
    const int column = (int)(pixel - line * out_w), row = (int)(line - plane * out_h);
#if NHWC
    const int n = (int)plane;
#else
    const int n = (int)(plane / (unsigned)C), c = (int)(plane % (unsigned)C);
#endif
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
            const Pack read = *(const Pack*)(x + at(n, c, r * w + q, C, P, pitch));
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
        put(&made.v[j], c + j < C ? value : 0.0f);
    }
    *(Pack*)(y + (index_t)i * V) = made;
}

// y = x / (bias + scale · Σ x²)^beta over the SIZE channels c − (SIZE − 1) / 2 … c + SIZE / 2, those that there are.
extern "C" __global__ void lrn(const T* __restrict__ x, T* __restrict__ y, int items, int C, int pitch, int P, float scale,
                               float beta, float bias) {
    const unsigned i = here();
    if (i >= items) return;
    constexpr int before = (SIZE - 1) / 2;
    const int c = channel(i, C, P, pitch);
    const index_t place = (index_t)i * V, step = NHWC ? 1 : P;
    const Pack own = *(const Pack*)(x + place);
    float square[V + SIZE - 1];
#pragma unroll
    for (int k = 0; k < V + SIZE - 1; k++) {
        const int other = c - before + k;
        float value = 0.0f;
        if (k >= before && k < before + V) value = real(own.v[k - before]);
        else if (other >= 0 && other < C) value = real(x[place + (k - before) * step]);
        square[k] = other < C ? value * value : 0.0f;
    }
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
        put(&made.v[j], c + j < C ? real(own.v[j]) * factor : 0.0f);
    }
    *(Pack*)(y + place) = made;
}

// y = activation(x · factor + shift + other): a number of `factor` and `shift` a channel; what is null is left out.
extern "C" __global__ void finish(const T* __restrict__ x, const float* __restrict__ factor,
                                  const float* __restrict__ shift, const T* __restrict__ other, T* y, int items, int C,
                                  int pitch, int P, int activation) {
    const unsigned i = here();
    if (i >= items) return;
    const int first = channel(i, C, P, pitch);
    const index_t place = (index_t)i * V;
    const Pack read = *(const Pack*)(x + place);
    Pack more;
    if (other) more = *(const Pack*)(other + place);
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        const int c = first + j < C ? first + j : C - 1;
        float value = real(read.v[j]);
        if (factor) value *= factor[c];
        if (shift) value += shift[c];
        if (other) value += real(more.v[j]);
        put(&made.v[j], first + j < C ? activated(value, activation) : 0.0f);
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
extern "C" __global__ void to_eight(const T* __restrict__ x, signed char* __restrict__ y, int items, int C, int pitch,
                                    int eight_pitch, float scale, int zero) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned chunks = eight_pitch / 4, pixel = i / chunks;
    const int c = (int)(i - pixel * chunks) * 4;
    Four made;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        made.v[j] = c + j < C ? held_within(real(x[(index_t)pixel * pitch + c + j]) / scale, zero, -128, 127) : 0;
    }
    *(Four*)(y + (index_t)pixel * eight_pitch + c) = made;
}

// y = (x − zero) · scale.
extern "C" __global__ void of_eight(const signed char* __restrict__ x, T* __restrict__ y, int items, int C, int pitch,
                                    int eight_pitch, float scale, int zero) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned chunks = pitch / V, pixel = i / chunks;
    const int c = (int)(i - pixel * chunks) * V;
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) put(&made.v[j], c + j < C ? (x[(index_t)pixel * eight_pitch + c + j] - zero) * scale : 0.0f);
    *(Pack*)(y + (index_t)pixel * pitch + c) = made;
}

// y = round((sum + bias) · factor + shift) + zero, held between low and high; bias, factor and shift a channel.
extern "C" __global__ void sums_to_eight(const int* __restrict__ sum, const int* __restrict__ bias,
                                         const float* __restrict__ factor, const float* __restrict__ shift,
                                         signed char* __restrict__ y, int items, int C, int eight_pitch, int zero,
                                         int low, int high) {
    const unsigned i = here();
    if (i >= items) return;
    const int c = (int)(i % (unsigned)(eight_pitch / 4)) * 4;
    Four made;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int k = c + j < C ? c + j : 0;
        const float value = (float)(sum[(index_t)i * 4 + j] + bias[k]) * factor[k] + shift[k];
        made.v[j] = c + j < C ? held_within(value, zero, low, high) : 0;
    }
    *(Four*)(y + (index_t)i * 4) = made;
}

// y = (sum + bias) · factor + shift.
extern "C" __global__ void sums_to_real(const int* __restrict__ sum, const int* __restrict__ bias,
                                        const float* __restrict__ factor, const float* __restrict__ shift,
                                        T* __restrict__ y, int items, int C, int pitch, int eight_pitch) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned chunks = pitch / V, pixel = i / chunks;
    const int c = (int)(i - pixel * chunks) * V;
    Pack made;
#pragma unroll
    for (int j = 0; j < V; j++) {
        const int k = c + j < C ? c + j : 0;
        const float value = (float)(sum[(index_t)pixel * eight_pitch + k] + bias[k]) * factor[k] + shift[k];
        put(&made.v[j], c + j < C ? value : 0.0f);
    }
    *(Pack*)(y + (index_t)pixel * pitch + c) = made;
}

// An image (h, w) within a larger one (H, W), `zero` around it: cuDNN knows no other zero than 0.
extern "C" __global__ void framed(const signed char* __restrict__ x, signed char* __restrict__ y, int items,
                                  int eight_pitch, int h, int w, int H, int W, int top, int left, int zero) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned chunks = eight_pitch / 4, pixel = i / chunks, line = pixel / (unsigned)W, image = line / (unsigned)H;
    const int r = (int)(line - image * H) - top, q = (int)(pixel - line * W) - left, c = (int)(i - pixel * chunks) * 4;
    Four made;
    if (r < 0 || r >= h || q < 0 || q >= w) {
#pragma unroll
        for (int j = 0; j < 4; j++) made.v[j] = (signed char)zero;
    } else {
        made = *(const Four*)(x + (((index_t)image * h + r) * w + q) * eight_pitch + c);
    }
    *(Four*)(y + (index_t)i * 4) = made;
}

extern "C" __global__ void largest_of_eight(const signed char* __restrict__ x, signed char* __restrict__ y, int items,
                                            int eight_pitch, int h, int w, int out_h, int out_w, int kh, int kw,
                                            int stride_h, int stride_w, int pad_top, int pad_left, int dilation_h,
                                            int dilation_w) {
    const unsigned i = here();
    if (i >= items) return;
    const unsigned chunks = eight_pitch / 4, pixel = i / chunks, line = pixel / (unsigned)out_w;
    const unsigned image = line / (unsigned)out_h;
    const int row = (int)(line - image * out_h), column = (int)(pixel - line * out_w);
    const int c = (int)(i - pixel * chunks) * 4;
    Four made;
#pragma unroll
    for (int j = 0; j < 4; j++) made.v[j] = -128;
    for (int a = 0; a < kh; a++) {
        const int r = row * stride_h - pad_top + a * dilation_h;
        for (int b = 0; b < kw; b++) {
            const int q = column * stride_w - pad_left + b * dilation_w;
            if (r < 0 || r >= h || q < 0 || q >= w) continue;
            const Four read = *(const Four*)(x + (((index_t)image * h + r) * w + q) * eight_pitch + c);
#pragma unroll
            for (int j = 0; j < 4; j++) made.v[j] = read.v[j] > made.v[j] ? read.v[j] : made.v[j];
        }
    }
    *(Four*)(y + (index_t)i * 4) = made;
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
    const unsigned i = here();
    if (i >= items) return;
    unsigned rest = i;
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
extern "C" __global__ void one(const T* __restrict__ x, T* __restrict__ y, int items, int kind, float alpha, float beta) {
    const unsigned i = here();
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

extern "C" __global__ void softmax(const T* __restrict__ x, T* __restrict__ y, int axis, int inner, int logarithm) {
    const int outer = blockIdx.x / inner;
    const index_t start = (index_t)outer * axis * inner + (blockIdx.x - outer * inner);
    float top = -LARGEST;
    for (int k = threadIdx.x; k < axis; k += 128) {
        const float value = real(x[start + (index_t)k * inner]);
        if (value > top || value != value) top = value;
    }
    top = joined(top, true);
    float sum = 0.0f;
    for (int k = threadIdx.x; k < axis; k += 128) sum += expf(real(x[start + (index_t)k * inner]) - top);
    sum = joined(sum, false);
    const float log_of_sum = logf(sum);
    for (int k = threadIdx.x; k < axis; k += 128) {
        const float value = real(x[start + (index_t)k * inner]) - top;
        put(y + start + (index_t)k * inner, logarithm ? value - log_of_sum : expf(value) / sum);
    }
}

// y (outer, inner): the mean, sum or largest (kind 0, 1, 2) of each row.
extern "C" __global__ void reduced(const T* __restrict__ x, T* __restrict__ y, int axis, int inner, int kind) {
    const int outer = blockIdx.x / inner;
    const index_t start = (index_t)outer * axis * inner + (blockIdx.x - outer * inner);
    float found = kind == 2 ? -LARGEST : 0.0f;
    for (int k = threadIdx.x; k < axis; k += 128) {
        const float value = real(x[start + (index_t)k * inner]);
        if (kind == 2) found = value > found || value != value ? value : found;
        else found += value;
    }
    found = joined(found, kind == 2);
    if (threadIdx.x == 0) put(y + blockIdx.x, kind == 0 ? found / axis : found);
}
