// Fourier transforms of 8, 16 or 32 elements in a thread's registers: radix 2, every index and factor known to the
// compiler.
#pragma once

struct Complex {
    float re, im;
};

// cos(2π k / 32).
__device__ __forceinline__ constexpr float cosine(int k) {
    constexpr float quarter[9] = {1.0f,           0.980785280403f, 0.923879532511f, 0.831469612303f, 0.707106781187f,
                                  0.555570233020f, 0.382683432365f, 0.195090322016f, 0.0f};
    k &= 31;
    return k <= 8 ? quarter[k] : k <= 16 ? -quarter[16 - k] : k <= 24 ? -quarter[k - 16] : quarter[32 - k];
}

// Where element i of n stands with its bits in reverse order.
__device__ __forceinline__ constexpr int reversed(int i, int n) {
    return ((i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | (i & 16) >> 4) / (32 / n);
}

template <int N, int HALF, bool INVERSE>
__device__ __forceinline__ void fft_passes(Complex (&v)[N]) {
    if constexpr (HALF < N) {
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            const int k = i % HALF, a = i / HALF * (2 * HALF) + k, b = a + HALF;
            // exp(∓ 2π i k / (2 HALF)): the sine is the cosine a quarter of the circle earlier.
            const float re = cosine(k * (16 / HALF)), sine = cosine(k * (16 / HALF) - 8);
            const float im = INVERSE ? sine : -sine;
            const Complex t = {v[b].re * re - v[b].im * im, v[b].re * im + v[b].im * re};
            v[b] = {v[a].re - t.re, v[a].im - t.im};
            v[a] = {v[a].re + t.re, v[a].im + t.im};
        }
        fft_passes<N, 2 * HALF, INVERSE>(v);
    }
}

// In place; the inverse is not divided by N.
template <int N, bool INVERSE>
__device__ __forceinline__ void fft(Complex (&v)[N]) {
    Complex turned[N];
#pragma unroll
    for (int i = 0; i < N; ++i) turned[i] = v[reversed(i, N)];
    fft_passes<N, 1, INVERSE>(turned);
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = turned[i];
}
