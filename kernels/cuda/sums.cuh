// Long sums are blocked: one that adds a term after the other loses digits with every term (of n equal terms up to
// n / 3 · 2⁻²⁴ of the sum). A piece of few terms is added up by itself; pieces are added up, or a few of them are, and
// what is added to those is added exactly: what rounding took from the sum is kept beside it. So however many terms there
// are, a sum is off by at most (T + G + 2) · 2⁻²⁴ of Σ|a·b|, of equal terms by a third of that: T terms in a piece
// and G pieces, 32 and 1 in LongSum, 32 or 48 and 16 in Wholes. N. J. Higham, "Accuracy and Stability of Numerical
// Algorithms", 2002, sections 4.2 and 4.3.
#pragma once

#define PIECE 32

// How what is done seldom is compiled: a kernel that needs fewer registers with a call says so before it includes this.
#ifndef SELDOM
#define SELDOM __forceinline__
#endif

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

// What COUNT sums of a thread came to before the piece that it is adding up. It lies in memory of the thread's own, which
// the caches hold: the registers are full of the sums themselves. The compiler would keep it in registers all the same,
// did it know where it lies: `place` is 0, and only a launch knows that. MOST: pieces that there can be.
template <int COUNT, int MOST = 1 << 30>
struct Wholes {
    static constexpr int TERMS = COUNT > 8 ? 48 : PIECE;  // of a piece: more where more sums have to be moved
    static constexpr int TOGETHER = 16;                   // pieces that are added up before they are added exactly
    static constexpr bool LONG = MOST >= TOGETHER;
    static constexpr int FOURS = (COUNT + 3) / 4, EXACT = LONG ? FOURS : 1;
    float4 held[FOURS], whole[EXACT], lost[EXACT];
    const int place;

    // size: of the problem, any that is not negative.
    __device__ __forceinline__ explicit Wholes(int size) : place((int)((unsigned)size >> 31)) {}

    // Takes the sums of a piece, and makes them zeros. pieces: that were taken before.
    __device__ __forceinline__ void take(float* sum, int pieces) {
        hold(sum, pieces % TOGETHER != 0);
        if (LONG && pieces % TOGETHER == TOGETHER - 1) add_held(pieces >= TOGETHER);
    }
    // Adds what was taken to the sums of the last piece.
    __device__ __forceinline__ void give(float* sum, int pieces) {
        if (LONG && pieces >= TOGETHER) {
            hold(sum, pieces % TOGETHER != 0);
            add_held(true);
            give_exact(sum);
        } else if (pieces % TOGETHER) {
            add(sum);
        }
    }

    // Holds the sums, with what was held (`more`) or instead, and makes them zeros.
    __device__ __forceinline__ void hold(float* sum, bool more) {
        if (more) add(sum);
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            float four[4] = {};
#pragma unroll
            for (int e = 0; e < 4 && 4 * i + e < COUNT; ++e) four[e] = sum[4 * i + e], sum[4 * i + e] = 0.0f;
            held[place + i] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }
    // What is held to what was so added before, if anything was, which the factors shrink first. This is done seldom: in
    // few instructions and registers.
    __device__ SELDOM void add_held(bool any, float4 factor = make_float4(1.0f, 1.0f, 1.0f, 1.0f)) {
#pragma unroll 1
        for (int i = place; i < FOURS; ++i) {
            const float4 v = held[i], zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            float4 sum = any ? whole[i] : zero, beside = any ? lost[i] : zero;
            sum = make_float4(sum.x * factor.x, sum.y * factor.y, sum.z * factor.z, sum.w * factor.w);
            beside = make_float4(beside.x * factor.x, beside.y * factor.y, beside.z * factor.z, beside.w * factor.w);
            add_exactly(sum.x, beside.x, v.x);
            add_exactly(sum.y, beside.y, v.y);
            add_exactly(sum.z, beside.z, v.z);
            add_exactly(sum.w, beside.w, v.w);
            whole[i] = sum;
            lost[i] = beside;
        }
    }
    // Instead of the sums what was added exactly.
    __device__ __forceinline__ void give_exact(float* sum) const {
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            const float4 v = whole[place + i], w = lost[place + i];
            const float four[4] = {with_lost(v.x, w.x), with_lost(v.y, w.y), with_lost(v.z, w.z), with_lost(v.w, w.w)};
#pragma unroll
            for (int e = 0; e < 4 && 4 * i + e < COUNT; ++e) sum[4 * i + e] = four[e];
        }
    }

  private:
    __device__ __forceinline__ void add(float* sum) const {
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            const float4 v = held[place + i];
            const float four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int e = 0; e < 4 && 4 * i + e < COUNT; ++e) sum[4 * i + e] += four[e];
        }
    }
};
