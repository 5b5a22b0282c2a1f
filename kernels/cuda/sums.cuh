// Long sums are blocked: one that adds a term after the other loses digits with every term (of n equal terms up to
// n / 3 · 2⁻²⁴ of the sum). A piece of T terms is added up by itself; pieces are added up then. In LongSum a piece has 32
// terms, and what it is added to is added exactly: what rounding took from the sum is kept beside it, so that however many
// terms there are the error is at most (T + 3) · 2⁻²⁴ of Σ|a·b|. In Wholes, where a thread has many sums, a piece has 256
// terms, as in ONNX Runtime's products on the CPU, or as many as the kernel says: the error of n terms is at most
// (T + n / T + 1) · 2⁻²⁴. Of equal terms both are a third of that. N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, sections 4.2 and 4.3.
#pragma once

#define PIECE 32

// Adds a term; what rounding takes from the sum is added to `lost`. D. E. Knuth, "The Art of Computer Programming",
// volume 2, 4.2.2, theorem B.
__device__ __forceinline__ void add_exactly(float& sum, float& lost, float term) {
    const float before = sum;
    sum += term;
    const float added = sum - before;
    lost += (before - (sum - added)) + (term - added);
}

// The sum with what it lost, which is NaN where the sum is infinite.
__device__ __forceinline__ float with_lost(float sum, float lost) { return lost == lost ? sum + lost : sum; }

// One sum: say how many terms come, at most PIECE, and add them to `part`.
struct LongSum {
    float part = 0.0f, before = 0.0f, lost = 0.0f;
    int terms = 0;  // of the part

    __device__ __forceinline__ void next(int count) {
        terms += count;
        if (terms <= PIECE) return;
        add_exactly(before, lost, part);
        part = 0.0f;
        terms = count;
    }
    __device__ __forceinline__ void add(float term) {
        next(1);
        part += term;
    }
    __device__ __forceinline__ float total() const {
        float sum = before, beside = lost;
        add_exactly(sum, beside, part);
        return with_lost(sum, beside);
    }
};

// A sum that shrinks by a factor before each term.
struct Scaled {
    float sum = 0.0f, lost = 0.0f;

    __device__ __forceinline__ void add(float factor, float term) {
        sum *= factor;
        lost *= factor;
        add_exactly(sum, lost, term);
    }
    __device__ __forceinline__ float total() const { return with_lost(sum, lost); }
};

// What COUNT sums of a thread came to before the piece that it is adding up. They lie in memory of the thread's own, which
// the caches hold: the registers are full of the sums themselves. The compiler would keep them in registers all the same,
// did it know where they lie: `place` is 0, and only a launch knows that. To move them takes the bandwidth that shared
// memory needs, too: where it was done after every 48 terms a product took a fifth longer.
// MOST: terms of a piece.
template <int COUNT, int MOST = 256>
struct Wholes {
    static constexpr int TERMS = MOST;
    static constexpr int FOURS = (COUNT + 3) / 4;
    float4 held[FOURS];
    const int place;

    // size: of the problem, any that is not negative.
    __device__ __forceinline__ explicit Wholes(int size) : place((int)((unsigned)size >> 31)) {}

    // Takes the sums of a piece, and makes them zeros. pieces: that were taken before. factor: of those, for each of four
    // sums that follow each other.
    __device__ __forceinline__ void take(float* sum, int pieces, float4 factor = make_float4(1.0f, 1.0f, 1.0f, 1.0f)) {
        if (pieces) add(sum, factor);
        hold(sum);
    }
    // Adds what was taken to the sums of the last piece.
    __device__ __forceinline__ void give(float* sum, int pieces, float4 factor = make_float4(1.0f, 1.0f, 1.0f, 1.0f)) const {
        if (pieces) add(sum, factor);
    }

  private:
    __device__ __forceinline__ void hold(float* sum) {
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            float four[4] = {};
#pragma unroll
            for (int e = 0; e < 4 && 4 * i + e < COUNT; ++e) four[e] = sum[4 * i + e], sum[4 * i + e] = 0.0f;
            held[place + i] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }
    __device__ __forceinline__ void add(float* sum, float4 factor) const {
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            const float4 v = held[place + i];
            const float four[4] = {v.x * factor.x, v.y * factor.y, v.z * factor.z, v.w * factor.w};
#pragma unroll
            for (int e = 0; e < 4 && 4 * i + e < COUNT; ++e) sum[4 * i + e] += four[e];
        }
    }
};
