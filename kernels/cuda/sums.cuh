// Long sums are blocked: one that adds a term after the other loses digits with every term (of n equal terms up to
// n / 3 · 2⁻²⁴ of the sum). PIECE terms are added up, and then such sums: n terms are off by at most
// (PIECE + n / PIECE + 1) · 2⁻²⁴ of Σ|a·b|. N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
// section 4.2.
#pragma once

#define PIECE 64

// One sum, term by term: add to `part`, and say how many terms that were.
struct LongSum {
    float part = 0.0f, before = 0.0f;
    int terms = 0;

    __device__ __forceinline__ void added(int count) {
        terms += count;
        if (terms < PIECE) return;
        before += part;
        part = 0.0f;
        terms = 0;
    }
    __device__ __forceinline__ float total() const { return before + part; }
};

// What COUNT sums of a thread came to before the piece that it is adding up. More than a few lie in memory of the
// thread's own, which the caches hold, and are touched half as often: the registers are full of the sums themselves.
// The compiler would keep them in registers all the same, did it know where they lie: `place` is 0, and only a launch
// knows that.
template <int COUNT>
struct Wholes {
    static constexpr bool MANY = COUNT > 8;
    static constexpr int TERMS = MANY ? 2 * PIECE : PIECE;  // of a piece
    static constexpr int FOURS = (COUNT + 3) / 4;
    float4 held[FOURS];
    const int place;

    // size: of the problem, any that is not negative.
    __device__ __forceinline__ explicit Wholes(int size) : place(MANY ? (int)((unsigned)size >> 31) : 0) {}

    // Takes the sums of a piece, and makes them zeros. first: there was none before.
    __device__ __forceinline__ void take(float* sum, bool first) {
        if (!first) give(sum, true);
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            float four[4] = {};
#pragma unroll
            for (int e = 0; e < 4 && 4 * i + e < COUNT; ++e) four[e] = sum[4 * i + e], sum[4 * i + e] = 0.0f;
            held[place + i] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }
    // Adds what was taken, if anything was, to the sums of the last piece.
    __device__ __forceinline__ void give(float* sum, bool any) {
        if (!any) return;
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            const float4 v = held[place + i];
            const float four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int e = 0; e < 4 && 4 * i + e < COUNT; ++e) sum[4 * i + e] += four[e];
        }
    }
};
