// What every rung shares: index types and the functions that ONNX calls activations.
//
// The numbers behind ACTIVATION_*, UNARY_*, BINARY_*, COMPARE_*, POOL_*, PAD_* and DTYPE_* come as defines from
// kernels/nvrtc.py, which derives them from kernels/ops. Strict float32: expf, tanhf and division are the
// library's, accurate to the last bits, and NaN passes through everything.
#pragma once

typedef long long index_t;  // offsets of elements: a batch of activations passes 2^31 of them

__device__ __forceinline__ float relu(float v) { return v < 0.0f ? 0.0f : v; }
__device__ __forceinline__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

#ifdef GELU
// The same functions as in functions.cuh in a third of their instructions, for a product does them for every output: right to
// some 1e-7 of the larger of 1 and |v|. erf is the quotient of polynomials of Eigen and XLA; v · (1 + tanh u) / 2 is
// v / (1 + exp(−2u)).
__device__ __forceinline__ float gelu_behind(float v) {
    const float scaled = 0.70710678118654752f * v;
    const float c = scaled < -4.0f ? -4.0f : scaled > 4.0f ? 4.0f : scaled, s = c * c;
    float top = -2.72614225801306e-10f;
    top = top * s + 2.77068142495902e-08f;
    top = top * s - 2.10102402082508e-06f;
    top = top * s - 5.69250639462346e-05f;
    top = top * s - 7.34990630326855e-04f;
    top = top * s - 2.95459980854025e-03f;
    top = top * s - 1.60960333262415e-02f;
    float bottom = -1.45660718464996e-05f;
    bottom = bottom * s - 2.13374055278905e-04f;
    bottom = bottom * s - 1.68282697438203e-03f;
    bottom = bottom * s - 7.37332916720468e-03f;
    bottom = bottom * s - 1.42647390514189e-02f;
    return c <= -4.0f ? 0.0f * v : v * (0.5f + 0.5f * __fdividef(c * top, bottom));
}

__device__ __forceinline__ float gelu_tanh_behind(float v) {
    const float twice = 1.59576912160573072f * (v + 0.044715f * v * v * v);
    return __fdividef(v, 1.0f + exp2f(-1.4426950408889634f * twice));
}
#endif

__device__ __forceinline__ float activate(float v, int kind) {
    if (kind == ACTIVATION_RELU || kind == ACTIVATION_RELU6) {
        v = relu(v);
        return kind == ACTIVATION_RELU6 && v > 6.0f ? 6.0f : v;
    }
    if (kind == ACTIVATION_TANH) return tanhf(v);
    if (kind == ACTIVATION_SIGMOID) return sigmoid(v);
#ifdef GELU
    if (kind == ACTIVATION_GELU) return gelu_behind(v);
    if (kind == ACTIVATION_GELU_TANH) return gelu_tanh_behind(v);
#endif
    return v;
}

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// The larger of two, NaN where either is.
__device__ __forceinline__ float larger(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return b > a || b != b ? b : a;
#endif
}

// The first element of this thread and the distance to its next, for a grid-stride loop.
__device__ __forceinline__ index_t first_element() { return (index_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ index_t grid_stride() { return (index_t)gridDim.x * blockDim.x; }

// Elements from one row in scratch memory to the next, so that each begins on a sector of memory, 32 bytes.
__device__ __forceinline__ index_t row_length(int elements) { return ((index_t)elements + 7) / 8 * 8; }
