"""Kernels with one mistake of synchronisation, bounds or initialisation each, and the same without it.

In a text, a line that ends in `//!` is where the mistake shows, one in `//?` the other line that has a part
in it, and `«wrong|right»` is what differs between the two. THREADS threads a block; BLOCKS blocks; x has N
elements, all written, and y has N that nobody has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WRONG = re.compile(r"«(.*?)\|(.*?)»", re.S)


@dataclass(frozen=True)
class Planted:
    """kind: of the finding. threads, blocks: of the launch; sizes of the arrays are made of them. arch: that
    it is compiled for."""

    name: str
    kind: str
    text: str
    threads: int
    blocks: int

    @property
    def arch(self) -> str:
        return "sm_90" if "bulk" in self.text else "sm_80"

    @property
    def wrong(self) -> str:
        return _WRONG.sub(lambda m: m[1], self.text)

    @property
    def right(self) -> str:
        return _WRONG.sub(lambda m: m[2], self.text)

    def lines(self, mark: str) -> set[int]:
        return {n for n, line in enumerate(self.wrong.splitlines(), 1) if line.rstrip().endswith(mark)}


_HEAD = 'extern "C" __global__ void mine(const float* x, float* y, float* z, int n) {\n'
# What CUDA C++ has no words for; put in front of the kernel.
_SIGNALS = """
#define MAKE(on, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(on), "r"(n) : "memory")
#define ARRIVE(on) \\
    asm volatile("{ .reg .b64 u; mbarrier.arrive.shared::cta.b64 u, [%0]; }" ::"r"(on) : "memory")
#define EXPECT_SOME(on, n) \\
    asm volatile("{ .reg .b64 u; mbarrier.arrive.expect_tx.shared::cta.b64 u, [%0], %1; }" \\
                 ::"r"(on), "r"(n) : "memory")
#define EXPECT(on) EXPECT_SOME(on, 4 * THREADS)
#define WAIT_FOR(on) \\
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; " \\
                 "@!p bra again; }" ::"r"(on) : "memory")
#define FETCH(to, of, on) FETCH_SOME(to, of, on, 4 * THREADS)
#define FETCH_SOME(to, of, on, n) \\
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \\
                 ::"r"(to), "l"(of), "r"(n), "r"(on) : "memory")
#define SUM(to, of) \\
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" \\
                 ::"l"(to), "r"(of), "r"(4 * THREADS) : "memory")
#define PASS(to, of, on, rank) \\
    asm volatile("{ .reg .b32 u, v; " \\
                 "mapa.shared::cluster.u32 u, %0, %4; mapa.shared::cluster.u32 v, %3, %4; " \\
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes " \\
                 "[u], [%1], %2, [v]; }" \\
                 ::"r"(to), "r"(of), "r"(4 * THREADS), "r"(on), "r"(rank) : "memory")
#define OF_BLOCK(v, place, rank) \\
    asm volatile("{ .reg .b32 u; mapa.shared::cluster.u32 u, %1, %2; ld.shared::cluster.f32 %0, [u]; }" \\
                 : "=f"(v) : "r"(place), "r"(rank) : "memory")
#define TELL(to, v, on, rank) \\
    asm volatile("{ .reg .b32 u, v; " \\
                 "mapa.shared::cluster.u32 u, %0, %3; mapa.shared::cluster.u32 v, %2, %3; " \\
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [u], %1, [v]; }" \\
                 ::"r"(to), "f"(v), "r"(on), "r"(rank) : "memory")
#define ARRIVE_AT(on, rank) \\
    asm volatile("{ .reg .b32 u; mapa.shared::cluster.u32 u, %0, %1; " \\
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [u]; }" \\
                 ::"r"(on), "r"(rank) : "memory")
#define WAIT_FOR_BLOCK(on) \\
    asm volatile("{ .reg .pred p; again: " \\
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra again; }" \\
                 ::"r"(on) : "memory")
#define MEET(on) asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
#define SEND(to, of) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" \\
                                  ::"l"(to), "r"(of), "r"(4 * THREADS) : "memory")
"""
# Name, kind, body.
_BODIES = {
    "reversed without a barrier": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];  //?
    «|__syncthreads();»
    y[i] = s[THREADS - 1 - t];  //!
}"""),
    "the next tile is loaded too early": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
        s[t] = x[i] + k;  //!
        __syncthreads();
        sum += s[(t + 33) % THREADS];  //?
        «|__syncthreads();»
    }
    y[i] = sum;
}"""),
    "a tree of sums without its barrier": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if (t < half) s[t] += s[t + half];  //! //?
        «|__syncthreads();»
    }
    __syncthreads();
    y[i] = s[0];
}"""),
    "sums within a warp without __syncwarp": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t, lane = t % 32;
    s[t] = x[i];  //?
    «|__syncwarp();»
    const float other = s[t ^ 1];  //!
    __syncwarp();
    y[i] = lane + other;
}"""),
    "a histogram without atomics": ("race", """
    __shared__ int count[8];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t < 8) count[t] = 0;
    __syncthreads();
    «count[t % 8] += 1;|atomicAdd(&count[t % 8], 1);»  //! //?
    __syncthreads();
    y[i] = count[t % 8];
}"""),
    "all blocks add to one element": ("race", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    y[i] = x[i];
    if (t == 0) { «z[0] = z[0] + x[i];|atomicAdd(&z[0], x[i]);» }  //! //?
}"""),
    "blocks write one element over": ("race", """
    const int t = threadIdx.x, i = blockIdx.x * «(THREADS - 1)|THREADS» + t;
    y[i] = x[i] + blockIdx.x;  //! //?
}"""),
    "what another thread wrote to global memory": ("race", """
    const int t = threadIdx.x, first = blockIdx.x * THREADS;
    y[first + t] = x[first + t];  //?
    «|__syncthreads();»
    const float there = y[first + (t + 40) % THREADS];  //!
    __syncthreads();
    y[first + t] = 2 * there;
}"""),
    "what another block wrote": ("race", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    y[i] = x[i];  //?
    __syncthreads();
    const int there = «(i + THREADS) % n|i»;
    z[i] = y[there];  //!
}"""),
    "two threads write different values": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = 0;
    __syncthreads();
    s[«t / 2|t»] = x[i] + t;  //! //?
    __syncthreads();
    y[i] = s[t];
}"""),
    "reads one element behind the input": ("outside", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i «+ 1|»];  //!
}"""),
    "reads in front of the input": ("outside", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = «x[i - 1]|(i ? x[i - 1] : 0)»;  //!
}"""),
    "writes behind the output": ("outside", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i];
    if (i == n - 1) y[«n|i»] = 1;  //!
}"""),
    "the edge of a tile": ("outside", """
    __shared__ float s[THREADS + «1|2»];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t + 1] = x[i];
    if (t == 0) s[0] = 0;
    if (t == THREADS - 1) s[THREADS + 1] = 0;  //!
    __syncthreads();
    y[i] = s[t] + s[t + 1];
}"""),
    "a tile's row in front of it": ("outside", """
    __shared__ float s[THREADS / 8][8];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t, row = t / 8;
    s[row][t % 8] = x[i];
    __syncthreads();
    y[i] = «s[row - 1][t % 8]|s[row ? row - 1 : 0][t % 8]»;  //!
}"""),
    "an address of nobody's": ("outside", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const float* from = x + «(i == 5 ? n * 1099511627ll : 0)|0»;
    y[i] = from[i];  //!
}"""),
    "four at once from a place that is none": ("misaligned", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    float4 four = make_float4(0, 0, 0, 0);
    if (i < n / 4) four = *(const float4*)(x + 4 * i «+ (i + 1 < n / 4)|»);  //!
    y[i] = four.x + four.w;
}"""),
    "a border that nobody has filled": ("uninitialised", """
    __shared__ float s[THREADS + 2];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t + 1] = x[i];
    if (t == 0) s[0] = 0;
    «|if (t == 0) s[THREADS + 1] = 0;»
    __syncthreads();
    y[i] = s[t] + s[t + 2];  //!
}"""),
    "a sum that begins with nothing": ("uninitialised", """
    __shared__ float s;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    «|if (t == 0) s = 0;»
    __syncthreads();
    atomicAdd(&s, x[i]);  //!
    __syncthreads();
    y[i] = s;
}"""),
    "adds to an output that nobody has written": ("uninitialised", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] «+=|=» x[i];  //!
}"""),
    "an array of a thread's own": ("uninitialised", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    float own[16];
    for (int k = «1|0»; k < 16; ++k) own[k] = x[i] * k;
    y[i] = own[(int)x[i] & 15] + own[i & 15];  //!
}"""),
    "the last tile is only half there": ("uninitialised", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if («i + 7 < n|true») s[t] = x[i];
    __syncthreads();
    y[i] = s[THREADS - 1 - t];  //!
}"""),
    "a barrier for some lanes": ("divergent_barrier", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    «if (t % 2)|» __syncthreads();  //!
    «else y[i] = 2;|»
    y[i] = x[i] + t % 2;
    __syncthreads();
}"""),
    "a barrier in a loop that threads leave": ("divergent_barrier", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float sum = 0;
    for (int k = 0; k < «1 + t % 3|3»; ++k) {
        sum += x[i] * k;
        __syncthreads();  //!
    }
    y[i] = sum;
    __syncthreads();  //?
}"""),
    "two barriers for two halves": ("barrier_mismatch", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    «if (t < 32) {
        y[i] = x[i];
        __syncthreads();  //! //?
    } else {
        y[i] = 2 * x[i];
        __syncthreads();  //! //?
    }|y[i] = x[i]; __syncthreads();»
}"""),
    "a barrier of more threads than come": ("stuck", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    y[i] = x[i];
    if (t < 32) asm volatile("bar.sync 1, «64|32»;" ::: "memory");  //!
    __syncthreads();
}"""),
    "a shuffle that names lanes which do not come": ("divergent_barrier", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float v = x[i];
    if (t % 32 < 16) v += __shfl_xor_sync(«0xffffffffu|0xffffu», v, 1);  //!
    y[i] = v;
    __syncwarp();
}"""),
    "a copy that nobody waits for": ("uninitialised", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    «|asm volatile("cp.async.wait_group 0;" ::: "memory");»
    __syncthreads();
    y[i] = s[t];  //!
}"""),
    "a copy that others do not wait for": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i) : "memory");  //?
    asm volatile("cp.async.wait_all;" ::: "memory");
    «|__syncthreads();»
    y[i] = s[(t + 1) % THREADS];  //!
}"""),
    "the last block reads what others wrote": ("race", """
    __shared__ bool last;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    y[i] = x[i];  //?
    «|__threadfence();»
    __syncthreads();
    if (t == 0) last = atomicAdd((unsigned*)z, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && t < gridDim.x) z[1 + t] = y[t * THREADS];  //!
}"""),
    "each block waits for the one in front": ("race", """
    const int t = threadIdx.x, b = blockIdx.x;
    if (t) return;
    float before = 0;
    if (b) {
        while (((volatile float*)z)[b - 1] == 0) { }
        before = y[(b - 1) * THREADS];  //!
    }
    y[b * THREADS] = before + x[b];  //?
    «|__threadfence();»
    ((volatile float*)z)[b] = 1;
}"""),
    "a flag in shared memory without a fence": ("race", """
    __shared__ float s[32];
    __shared__ volatile int ready;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t == 0) {
        s[0] = x[i];  //?
        «|__threadfence_block();»
        ready = 1;
    }
    if (t == 32) {
        while (!ready) { }
        y[i] = s[0];  //!
    }
}"""),
    "one thread's fence for all of them": ("race", """
    __shared__ bool last;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    y[i] = x[i];  //?
    «|__syncthreads();»
    if (t == 0) {
        __threadfence();
        last = atomicAdd((unsigned*)z, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t < gridDim.x) z[1 + t] = y[t * THREADS + 40];  //!
}"""),
    "a named barrier of one warp": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];  //?
    asm volatile("bar.sync 1, «32|THREADS»;" ::: "memory");
    y[i] = s[(t + 32) % THREADS];  //!
}"""),
    "who produces arrives too early": ("race", """
    __shared__ float s[32];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t < 32) {
        «asm volatile("bar.arrive 1, 64;" ::: "memory");|»
        s[t] = x[i];  //! //?
        «|asm volatile("bar.arrive 1, 64;" ::: "memory");»
    } else if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[i] = s[63 - t];  //! //?
    }
}"""),
    "two named barriers taken for one": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];  //?
    if (t < 32) asm volatile("bar.sync 1, «32|64»;" ::: "memory");
    else if (t < 64) asm volatile("bar.sync «2, 32|1, 64»;" ::: "memory");
    if (t < 64) y[i] = s[t ^ 32];  //!
}"""),
    "two stages that are one": ("race", """
    __shared__ float s[2][THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
        s[«0|k & 1»][t] = x[i] * k;  //!
        __syncthreads();
        sum += s[«0|k & 1»][(t + 37) % THREADS];  //?
    }
    y[i] = sum;
}"""),
    "a pipeline that waits for too few": ("uninitialised", """
    __shared__ float s[2][THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    for (int k = 0; k < 2; ++k) {
        const unsigned to = (unsigned)__cvta_generic_to_shared(&s[k][t]);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.wait_group «1|0»;" ::: "memory");
    __syncthreads();
    y[i] = s[1][t];  //!
}"""),
    "a copy over what others still read": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i) : "memory");  //!
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        sum += s[THREADS - 1 - t];  //?
        «|__syncthreads();»
    }
    y[i] = sum;
}"""),
    "sums of warps without a barrier": ("race", """
    __shared__ float s[THREADS / 32];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float v = x[i];
    for (int apart = 16; apart; apart /= 2) v += __shfl_xor_sync(0xffffffffu, v, apart);
    if (t % 32 == 0) s[t / 32] = v;  //?
    «|__syncthreads();»
    float sum = 0;
    for (int w = 0; w < THREADS / 32; ++w) sum += s[w];  //!
    y[i] = sum;
}"""),
    "one thread's answer for all": ("race", """
    __shared__ float s;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t == 0) s = x[i] * 3;  //! //?
    «|__syncthreads();»
    y[i] = s + t;  //! //?
}"""),
    "a scan that looks back at atomics": ("race", """
    const int t = threadIdx.x, b = blockIdx.x;
    if (t) return;
    float before = 0;
    if (b) {
        while (atomicAdd((unsigned*)&z[b - 1], 0u) == 0) { }
        before = y[(b - 1) * THREADS];  //!
    }
    y[b * THREADS] = before + x[b];  //?
    «|__threadfence();»
    atomicExch((unsigned*)&z[b], 1u);
}"""),
    "a lock given back without a fence": ("race", """
    if (threadIdx.x) return;
    while (atomicCAS((unsigned*)z, 0u, 1u)) { }
    z[1] = z[1] + x[blockIdx.x];  //! //?
    «|__threadfence();»
    atomicExch((unsigned*)z, 0u);
}"""),
    "a lock that is not taken": ("race", """
    if (threadIdx.x) return;
    «|while (atomicCAS((unsigned*)z, 0u, 1u)) { }»
    z[1] = z[1] + x[blockIdx.x];  //! //?
    __threadfence();
    «|atomicExch((unsigned*)z, 0u);»
}"""),
    "a barrier of all blocks without a fence": ("race", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    y[i] = x[i];  //! //?
    __syncthreads();
    if (t == 0) {
        «|__threadfence();»
        atomicAdd((unsigned*)z, 1u);
        while (*(volatile unsigned*)z < gridDim.x) { }
    }
    __syncthreads();
    if (i) z[i] = y[(i + THREADS) % n];  //! //?
}"""),
    "a counter that is set back too early": ("race", """
    __shared__ int s;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    int sum = 0;
    for (int k = 0; k < 2; ++k) {
        if (t == 0) s = 0;  //! //?
        __syncthreads();
        atomicAdd(&s, t);
        __syncthreads();
        sum += s;  //! //?
        «|__syncthreads();»
    }
    y[i] = sum;
}"""),
    "a transposed tile and a warp's barrier": ("race", """
    __shared__ float s[8][THREADS / 8 + 1];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t / (THREADS / 8)][t % (THREADS / 8)] = x[i];  //?
    «__syncwarp();|__syncthreads();»
    y[i] = s[t % 8][t / 8];  //!
}"""),
    "a stencil in its own place": ("race", """
    __shared__ float s[THREADS + 1];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];
    if (t == 0) s[THREADS] = 0;
    __syncthreads();
    const float v = s[t] + s[t + 1];  //! //?
    «|__syncthreads();»
    s[t] = v;  //! //?
    __syncthreads();
    y[i] = s[THREADS - 1 - t];
}"""),
    "counts of blocks added without atomics": ("race", """
    __shared__ int s[4];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t < 4) s[t] = 0;
    __syncthreads();
    atomicAdd(&s[t % 4], 1);
    __syncthreads();
    y[i] = s[t % 4];
    if (t < 4) { «z[t] = z[t] + s[t];|atomicAdd(&z[t], (float)s[t]);» }  //! //?
}"""),
    "a sum of atomics read too early": ("race", """
    __shared__ int s;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, t);  //! //?
    «|__syncthreads();»
    y[i] = s;  //! //?
}"""),
    "a warp that trusts its lanes": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];
    __syncthreads();
    if (t < 16) {
        for (int apart = 16; apart; apart /= 2) {
            const float v = s[t + apart];  //! //?
            «|__syncwarp(0xffff);»
            s[t] += v;  //! //?
            «|__syncwarp(0xffff);»
        }
    }
    __syncthreads();
    y[i] = s[0];
}"""),
    "room that is used for two things": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];
    __syncthreads();
    const float v = s[(t + 32) % THREADS];  //?
    «|__syncthreads();»
    s[t] = 2 * v;  //!
    __syncthreads();
    y[i] = s[(t + 1) % THREADS];
}"""),
    "some lanes' barrier for all of a warp": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i];  //?
    if (t % 32 < 16) __syncwarp(0xffff);
    else __syncwarp(0xffff0000);
    y[i] = s[t ^ «16|1»];  //!
}"""),
    "an mbarrier that is not waited for": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS);
    __syncthreads();
    s[t] = x[i];  //?
    ARRIVE(on);
    «|WAIT_FOR(on);»
    y[i] = s[THREADS - 1 - t];  //!
}"""),
    "an mbarrier that is waited for before it is made": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS);  //! //?
    «|__syncthreads();»
    s[t] = x[i];
    ARRIVE(on);  //! //?
    WAIT_FOR(on);
    y[i] = s[THREADS - 1 - t];
}"""),
    "an mbarrier of too many": ("endless", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS + «1|0»);
    __syncthreads();
    s[t] = x[i];
    ARRIVE(on);
    WAIT_FOR(on);  //!
    y[i] = s[THREADS - 1 - t];
}"""),
    "a bulk copy that is not waited for": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH(to, x + blockIdx.x * THREADS, on);  //?
    }
    __syncthreads();
    «|WAIT_FOR(on);»
    y[i] = s[THREADS - 1 - t];  //!
}"""),
    "a bulk copy over what others still read": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = 0;
    if (t == 0) MAKE(on, 1);
    __syncthreads();
    const float v = s[(t + 40) % THREADS];  //?
    «|__syncthreads();»
    if (t == 0) {
        EXPECT(on);
        FETCH(to, x + blockIdx.x * THREADS, on);  //!
    }
    WAIT_FOR(on);
    y[i] = s[THREADS - 1 - t] + v;
}"""),
    "a bulk store that nobody was shown": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = x[i];  //?
    «|asm volatile("fence.proxy.async.shared::cta;" ::: "memory");»
    __syncthreads();
    if (t == 0) {
        SEND(y + blockIdx.x * THREADS, to);  //!
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}"""),
    "a bulk store that is overtaken": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = x[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        SEND(y + blockIdx.x * THREADS, to);  //!
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        «|asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");»
        s[1] = 7;  //?
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}"""),
    "a bulk copy of which more is awaited": ("endless", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH_SOME(to, x + blockIdx.x * THREADS, on, «2|4» * THREADS);
    }
    __syncthreads();
    WAIT_FOR(on);  //!
    y[i] = s[THREADS - 1 - t];
}"""),
    "a bulk copy that brings more than is awaited": ("endless", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH_SOME(to, x + blockIdx.x * THREADS, on, 2 * THREADS);
        FETCH_SOME(to + 2 * THREADS, x + blockIdx.x * THREADS + THREADS / 2, on, 2 * THREADS);
        «FETCH_SOME(to, x + blockIdx.x * THREADS, on, 16);|»
    }
    __syncthreads();
    WAIT_FOR(on);  //!
    y[i] = s[THREADS - 1 - t];
}"""),
    "a bulk copy to a place that is none": ("misaligned", """
    __shared__ alignas(16) float s[THREADS + 4];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH(to + «4|16», x + blockIdx.x * THREADS, on);  //!
    }
    __syncthreads();
    WAIT_FOR(on);
    y[i] = s[4 + t];
}"""),
    "a bulk copy from a place that is none": ("misaligned", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH(to, x + blockIdx.x * (THREADS - 4) + «1|4», on);  //!
    }
    __syncthreads();
    WAIT_FOR(on);
    y[i] = s[t];
}"""),
    "a bulk copy of 8 bytes too many": ("misaligned", """
    __shared__ alignas(16) float s[THREADS + 4];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT_SOME(on, 4 * THREADS «+ 8|»);
        FETCH_SOME(to, x, on, 4 * THREADS «+ 8|»);  //!
    }
    __syncthreads();
    WAIT_FOR(on);
    y[i] = s[t];
}"""),
    "a bulk copy behind its array": ("outside", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH(to «+ 16|», x, on);  //!
    }
    __syncthreads();
    WAIT_FOR(on);
    y[i] = s[t];
}"""),
    "a bulk copy of more than there is": ("outside", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH(to, x + blockIdx.x * THREADS «+ 4|», on);  //!
    }
    __syncthreads();
    WAIT_FOR(on);
    y[i] = s[t];
}"""),
    "a bulk copy that the block leaves behind": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) {
        MAKE(on, 1);
        EXPECT(on);
        FETCH(to, x + blockIdx.x * THREADS, on);  //!
    }
    __syncthreads();
    «|WAIT_FOR(on);»
    y[i] = x[i];
}"""),
    "a bulk store that the block leaves behind": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = x[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        SEND(y + blockIdx.x * THREADS, to);  //!
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        «|asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");»
    }
}"""),
    "a bulk store of no group": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = x[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        SEND(y + blockIdx.x * THREADS, to);  //!
        «|asm volatile("cp.async.bulk.commit_group;" ::: "memory");»
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}"""),
    "a bulk store that has only been read": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = x[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        SEND(y + blockIdx.x * THREADS, to);  //?
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group«.read|» 0;" ::: "memory");
    }
    __syncthreads();
    z[i] = y[i];  //!
}"""),
    "a bulk store to where others still write": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = x[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    y[i] = 0;  //! //?
    «|asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();»
    if (t == 0) {
        SEND(y + blockIdx.x * THREADS, to);  //! //?
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}"""),
    "a bulk sum into what nobody has written": ("uninitialised", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = x[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        SUM(«y|z», to);  //!
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}"""),
    "a bulk copy to another block, not waited for": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    __shared__ alignas(16) float r[THREADS];
    if (t == 0) { MAKE(on, 1); EXPECT(on); }
    s[t] = x[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    MEET(on);
    if (t == 0) PASS((unsigned)__cvta_generic_to_shared(r), to, on, (blockIdx.x + 1) % gridDim.x);  //! //?
    «__syncthreads();|WAIT_FOR(on);»
    y[i] = r[t];  //! //?
    WAIT_FOR(on);
    MEET(on);
}"""),
    "what all blocks read is written by one that did not wait": ("race", """
    __shared__ bool last;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t, left = gridDim.x == 3;
    if (left && blockIdx.x == 1) return;
    y[i] = x[i] + z[t % 32];  //! //?
    __syncthreads();
    if (t == 0) {
        __threadfence();
        last = atomicAdd((unsigned*)z + n - 1, 1u) == «0|gridDim.x - 1 - left»;
    }
    __syncthreads();
    if (last && t < 32) z[t] = 5;  //! //?
}"""),
    "another block's shared memory, too early": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[THREADS - 1 - t]);
    s[t] = 0;
    MEET(on);
    s[t] = x[i];  //! //?
    «__syncthreads();|MEET(on);»
    float v;
    OF_BLOCK(v, at, (blockIdx.x + 1) % gridDim.x);  //! //?
    MEET(on);
    y[i] = v;
}"""),
    "another block's shared memory that nobody filled": ("uninitialised", """
    __shared__ float s[THREADS + 1];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[t «+ 1|»]);
    s[t] = x[i];
    MEET(on);
    float v;
    OF_BLOCK(v, at, (blockIdx.x + 1) % gridDim.x);  //!
    MEET(on);
    y[i] = v;
}"""),
    "a flag that is set before its data": ("race", """
    const int t = threadIdx.x, b = blockIdx.x;
    if (t) return;
    volatile float* flag = z;
    if (b == 0) {
        «flag[0] = 1;|»
        y[0] = x[0];  //! //?
        __threadfence();
        «|flag[0] = 1;»
    }
    if (b == 1) {
        while (flag[0] == 0) { }
        y[1] = y[0];  //! //?
    }
}"""),
    "another block's shared memory that may be gone": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[t]);
    s[t] = x[i];
    MEET(on);
    float v;
    OF_BLOCK(v, at, (blockIdx.x + 1) % gridDim.x);  //!
    «|MEET(on);»
    y[i] = v;
}"""),
    "a value told to another block, not waited for": ("race", """
    __shared__ float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[THREADS - 1 - t]);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    s[t] = 0;
    if (t == 0) { MAKE(on, 1); EXPECT(on); }
    MEET(on);
    TELL(to, x[i], on, (blockIdx.x + 1) % gridDim.x);  //! //?
    «__syncthreads();|WAIT_FOR(on);»
    y[i] = s[t];  //! //?
    WAIT_FOR(on);
    MEET(on);
}"""),
    "fewer values are told to a block than it awaits": ("endless", """
    __shared__ float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[THREADS - 1 - t]);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) { MAKE(on, 1); EXPECT_SOME(on, 4 * THREADS «+ 4|»); }
    MEET(on);
    TELL(to, x[i], on, (blockIdx.x + 1) % gridDim.x);
    WAIT_FOR(on);  //!
    y[i] = s[t];
    MEET(on);
}"""),
    "one of several consumers lets a place go too early": ("race", """
    __shared__ float s[32];
    __shared__ unsigned long long full, empty;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&full);
    const unsigned off = (unsigned)__cvta_generic_to_shared(&empty);
    if (t == 0) { MAKE(on, 32); MAKE(off, THREADS - 32); }
    __syncthreads();
    float sum = 0;
    if (t < 32) s[t] = x[i];
    if (t < 32) ARRIVE(on); else WAIT_FOR(on);
    if (t < 32) WAIT_FOR(off);
    if (t < 32) s[t] = 5;  //! //?
    if (t >= 32) {
        const bool early = «t >= THREADS - 32|false»;
        if (early) ARRIVE(off);
        sum = s[t % 32] + s[3];  //! //?
        if (!early) ARRIVE(off);
    }
    y[i] = sum;
}"""),
    "one lane arrives at an mbarrier for its warp": ("race", """
    __shared__ float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS / 32);
    __syncthreads();
    s[t] = x[i];  //! //?
    «|__syncwarp();»
    if (t % 32 == 0) ARRIVE(on);
    WAIT_FOR(on);
    y[i] = s[THREADS - 1 - t];  //! //?
}"""),
    "one lane lets a place go that its warp still reads": ("race", """
    __shared__ float s[32];
    __shared__ unsigned long long full, empty;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&full);
    const unsigned off = (unsigned)__cvta_generic_to_shared(&empty);
    if (t == 0) { MAKE(on, 32); MAKE(off, THREADS / 32 - 1); }
    __syncthreads();
    float sum = 0;
    if (t < 32) {
        s[t] = x[i];
        ARRIVE(on);
        WAIT_FOR(off);
        s[t] = 5;  //! //?
    } else {
        WAIT_FOR(on);
        sum = s[t % 32] + s[3];  //! //?
        «|__syncwarp();»
        if (t % 32 == 7) ARRIVE(off);
    }
    y[i] = sum;
}"""),
    "half of a warp arrives at an mbarrier for all of it": ("race", """
    __shared__ float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS / 2);
    __syncthreads();
    s[t] = x[i];  //! //?
    «if (t % 32 < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000);|__syncwarp();»
    if (t % 32 < 16) ARRIVE(on);
    WAIT_FOR(on);
    y[i] = s[(t + 32) % THREADS];  //! //?
}"""),
    "a lane arrives for its warp's part of global memory": ("race", """
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS / 32);
    __syncthreads();
    y[i] = x[i];  //! //?
    «|__syncwarp();»
    if (t % 32 == 31) ARRIVE(on);
    WAIT_FOR(on);
    z[i] = y[blockIdx.x * THREADS + (t + 40) % THREADS];  //! //?
}"""),
    "each time another lane arrives for its warp": ("race", """
    __shared__ float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS / 32);
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
        s[t] = x[i] * k;  //! //?
        «|__syncwarp();»
        if (t % 32 == k) ARRIVE(on);
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
                     "@!p bra again; }" ::"r"(on), "r"(k & 1) : "memory");
        sum += s[THREADS - 1 - t];  //! //?
        __syncthreads();
    }
    y[i] = sum;
}"""),
    "a lane that awaits a bulk copy arrives for its warp": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ float r[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, 1);
    __syncthreads();
    if (t < 32) {
        r[t] = x[i];  //! //?
        «|__syncwarp();»
        if (t == 0) { EXPECT(on); FETCH(to, x + blockIdx.x * THREADS, on); }
    }
    WAIT_FOR(on);
    y[i] = s[THREADS - 1 - t] + r[t % 32];  //! //?
}"""),
    "one lane arrives at another block for its warp": ("race", """
    __shared__ float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t, next = (blockIdx.x + 1) % gridDim.x;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&s[THREADS - 1 - t]);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, THREADS / 32);
    MEET(on);
    s[t] = x[i];  //! //?
    «|__syncwarp();»
    if (t % 32 == 0) ARRIVE_AT(on, next);
    WAIT_FOR_BLOCK(on);
    float v;
    OF_BLOCK(v, at, (blockIdx.x + gridDim.x - 1) % gridDim.x);  //! //?
    MEET(on);
    y[i] = v;
}"""),
    "one lane sets a flag for its warp": ("race", """
    __shared__ float s[32];
    __shared__ volatile int ready;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = x[i];  //! //?
        «|__syncwarp();»
        if (t == 0) { __threadfence_block(); ready = 1; }
    } else if (t < 64) {
        while (!ready) { }
        __threadfence_block();
        y[i] = s[63 - t];  //! //?
    }
}"""),
    "one lane counts its warp in": ("race", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    y[i] = x[i];  //! //?
    __threadfence();
    «|__syncwarp();»
    if (t % 32 == 0) atomicAdd((unsigned*)z, 1u);
    while (*(volatile unsigned*)z < gridDim.x * (THREADS / 32)) { }
    __threadfence();
    if (i) z[i] = y[(i + THREADS + 1) % n];  //! //?
}"""),
    "two warps meet, but not before one writes": ("race", """
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t, at = blockIdx.x * THREADS + 5;
    y[i] = x[i];
    __syncthreads();
    float sum = 0;
    if (t < 64) {
        sum = y[at];  //! //?
        «|asm volatile("bar.sync 1, 64;" ::: "memory");»
        if (t == 0) y[at] = 7;  //! //?
    }
    z[i] = sum;
}"""),
    "what consumers read in global memory is written over too early": ("race", """
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, 64);
    y[i] = x[i];
    __syncthreads();
    float sum = 0;
    const bool early = «t == 40|false»;
    if (t < 64) {
        if (early) ARRIVE(on);
        for (int k = 0; k < 4; ++k) sum += y[blockIdx.x * THREADS + (t + k + 24) % 64];  //! //?
        if (!early) ARRIVE(on);
        if (t < 32) {
            WAIT_FOR(on);
            y[i] = 7;  //! //?
        }
    }
    z[i] = sum;
}"""),
    "a place is let go before its warp has got the sum": ("race", """
    __shared__ float s[32];
    __shared__ unsigned long long full, empty;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned on = (unsigned)__cvta_generic_to_shared(&full);
    const unsigned off = (unsigned)__cvta_generic_to_shared(&empty);
    if (t == 0) { MAKE(on, 32); MAKE(off, THREADS / 32 - 1); }
    __syncthreads();
    float sum = 0;
    if (t < 32) {
        s[t] = x[i];
        ARRIVE(on);
        WAIT_FOR(off);
        s[t] = 5;  //! //?
    } else {
        WAIT_FOR(on);
        sum = s[t % 32];  //! //?
        «if (t % 32 == 0) ARRIVE(off);|»
        for (int far = 16; far; far /= 2) sum += __shfl_xor_sync(~0u, sum, far);
        «|if (t % 32 == 0) ARRIVE(off);»
    }
    y[i] = sum;
}"""),
    "half of a block meets, but not for the next tile": ("race", """
    __shared__ float s[THREADS / 2];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    if (t >= THREADS / 2) { y[i] = x[i]; return; }
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
        s[t] = x[i] + k;  //! //?
        asm volatile("bar.sync 1, %0;" ::"n"(THREADS / 2) : "memory");
        sum += s[THREADS / 2 - 1 - t] + s[5];  //! //?
        «|asm volatile("bar.sync 1, %0;" ::"n"(THREADS / 2) : "memory");»
    }
    y[i] = sum;
}"""),
    "a phase that is never turned": ("race", """
    __shared__ alignas(16) float s[THREADS];
    __shared__ unsigned long long signal;
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&signal);
    if (t == 0) MAKE(on, 1);
    __syncthreads();
    float a = 0;
    for (int k = 0; k < 2; ++k) {
        if (t == 0) { EXPECT(on); FETCH(to, x + blockIdx.x * THREADS, on); }  //! //?
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
                     "@!p bra again; }" ::"r"(on), "r"(«0|k») : "memory");
        a += s[THREADS - 1 - t];  //! //?
        __syncthreads();
    }
    y[i] = a;
}"""),
    "a scan in its own place": ("race", """
    __shared__ float s[THREADS];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i]; __syncthreads();
    for (int far = 1; far < THREADS; far *= 2) {
        const float v = t >= far ? s[t - far] : 0;  //! //?
        «|__syncthreads();»
        s[t] += v;  //! //?
        __syncthreads();
    }
    y[i] = s[t];
}"""),
    "a maximum and a sum in one place": ("race", """
    __shared__ float s[THREADS / 32];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    float v = x[i], m = v;
    for (int far = 16; far; far /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, far));
    if (t % 32 == 0) s[t / 32] = m;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; ++w) m = fmaxf(m, s[w]);  //! //?
    «|__syncthreads();»
    float e = expf(v - m);
    for (int far = 16; far; far /= 2) e += __shfl_xor_sync(~0u, e, far);
    if (t % 32 == 0) s[t / 32] = e;  //! //?
    __syncthreads();
    float sum = 0;
    for (int w = 0; w < THREADS / 32; ++w) sum += s[w];
    y[i] = e / sum;
}"""),
    "a queue's end without atomics": ("race", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    «const int at = ((int*)z)[0]; ((int*)z)[0] = at + 1;|const int at = atomicAdd((int*)z, 1);»  //! //?
    y[at % n] = x[i];  //! //?
}"""),
    "a row of a tile that begins anywhere": ("misaligned", """
    __shared__ alignas(16) float s[THREADS + 4];
    const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = x[i]; if (t < 4) s[THREADS + t] = 0;
    __syncthreads();
    const float4 v = *(const float4*)(s + t / 4 * 4 + «2|0»);  //!
    y[i] = v.x + v.w;
}"""),
    "sums of a thread that begin with nothing": ("uninitialised", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    float bins[4];
    «|for (int k = 0; k < 4; ++k) bins[k] = 0;»
    #pragma unroll 1
    for (int k = 0; k < 8; ++k) bins[(i + k) & 3] += x[i];  //!
    y[i] = bins[i & 3];  //!
}"""),
    "writes its input": ("input_written", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i];
    «((float*)x)|y»[i] = 0;  //!
}"""),
    "waits for what never comes": ("endless", """
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i];
    volatile float* flag = z;
    if (i == 0) z[0] = 1;
    __syncthreads();
    if (i == 0) while (*flag == «1|2») { }  //!
}"""),
}  # fmt: skip


def planted() -> Iterator[Planted]:
    """Every mistake, on blocks of two sizes."""
    for name, (kind, body) in _BODIES.items():
        for threads, blocks in ((64, 3), (128, 2)):
            needed = _SIGNALS.lstrip("\n") if "(on" in body or "SEND(" in body or "SUM(" in body else ""
            head = (
                _HEAD.replace("void mine", f"void __cluster_dims__({blocks}) mine")
                if "MEET(" in body
                else _HEAD
            )
            text = needed + head + body.strip("\n")
            text = text.replace("THREADS", str(threads))
            yield Planted(f"{name}, {threads} threads", kind, text, threads, blocks)
