// What every rung shares: index types and the functions that ONNX calls activations.
//
// The numbers behind ACTIVATION_*, UNARY_*, BINARY_*, COMPARE_*, POOL_*, PAD_* and DTYPE_* come as defines from
// kernels/nvrtc.py, which derives them from kernels/ops. Strict float32: expf, tanhf and division are the
// library's, accurate to the last bits, and NaN passes through everything.
#pragma once

typedef long long index_t;  // offsets of elements: a batch of activations passes 2^31 of them

__device__ __forceinline__ float relu(float v) { return v < 0.0f ? 0.0f : v; }
__device__ __forceinline__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

// Half of v, times 1 + erf(v / √2); erfc keeps the digits that the sum loses for v ≪ 0.
__device__ __forceinline__ float gelu(float v) { return 0.5f * v * erfcf(-0.70710678118654752f * v); }

__device__ __forceinline__ float gelu_tanh(float v) {
    return 0.5f * v * (1.0f + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)));
}

__device__ __forceinline__ float activate(float v, int kind) {
    if (kind == ACTIVATION_RELU || kind == ACTIVATION_RELU6) {
        v = relu(v);
        return kind == ACTIVATION_RELU6 && v > 6.0f ? 6.0f : v;
    }
    if (kind == ACTIVATION_TANH) return tanhf(v);
    if (kind == ACTIVATION_SIGMOID) return sigmoid(v);
#ifdef GELU
    if (kind == ACTIVATION_GELU) return gelu(v);
    if (kind == ACTIVATION_GELU_TANH) return gelu_tanh(v);
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
