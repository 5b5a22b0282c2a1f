"""What CUDA kernels use of the language, each in a small kernel of its own (corpus), and products of matrices
in the types that the shipped rungs do not need: right by NumPy, and nothing is found in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kernels import numba_support, nvrtc
from kernels.net.layers import layers
from kernels.net.plan import room
from kernels.net.records import Way
from kernels.net.text import one_kernel
from kernels.ops import Params
from kernels.precision import PRECISIONS
from kernels.ptx.program import Device, Program, packed
from kernels.ptx.reader import PtxError
from tests.kernels import nets
from tests.kernels.simulated import check, corpus, forms
from tests.kernels.simulated.corpus import Case

GROUPS = "#include <cooperative_groups.h>"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("case", "arch"),
    [(c, a) for c in corpus.CASES for a in c.arches],
    ids=lambda v: str(getattr(v, "name", v)),
)
def test_a_kernel_answers_as_numpy_does(case: Case, arch: str, tmp_path: Path) -> None:
    device = Device(check.program(tmp_path, corpus.text(case), arch))
    x, f = corpus.inputs()
    given = [device.buffer("x", x, 4), device.buffer("f", f, 4)]
    given.append(device.buffer("y", np.zeros(2 * corpus.N, np.int32), 4, writable=True, written=False))
    given.append(device.buffer("z", np.zeros(corpus.N, np.float32), 4, writable=True))
    arguments = packed([np.uint64(b.address) for b in given] + [np.int32(corpus.N)])
    blocks = corpus.N // corpus.THREADS
    device.launch("mine", (blocks,), (corpus.THREADS,), arguments, shared_nbytes=1024, seconds=10)
    assert [finding.words for finding in device.report.findings] == []
    right = case.right(x, f)
    got = given[2].bytes.view(right.dtype)[: corpus.N]
    assert (np.abs(got - right) <= case.off * np.abs(right)).all() if case.off else (got == right).all()


def test_what_goes_astray_is_ended_and_told(tmp_path: Path) -> None:
    deep = "__device__ __noinline__ int deep(int v) { return v < 0 ? v : deep(v + 1) + v % 7; }"
    chosen = "__device__ int (*chosen[2])(int);"
    for head, body, kind, words in (
        (deep, "y[i] = deep(t);", "endless", "until its stack is full"),
        (chosen, "y[i] = chosen[t & 1](t);", "outside", "calls a function at 0x0, where there is none"),
        ("", "while (n) __syncthreads();", "endless", "does not end"),
        (
            "",
            "int* p = (int*)malloc(4 * n); p[n] = t; y[i] = p[n];",
            "outside",
            "of what malloc gave, which has",
        ),
        (
            "",
            "int* p = (int*)malloc(4 * n); y[i] = *p; free(p);",
            "uninitialised",
            "which nobody has written",
        ),
        ("", "int* p = new int[n]; *p = 0; delete[] p; y[i] = *p;", "outside", "malloc gave, which is freed"),
        ("", "int* p = new int[n]; free(p); free(p); y[i] = 0;", "outside", "or which is freed already"),
    ):
        text = corpus.text(Case("astray", body, lambda x, f: x, head))
        device = Device(check.program(tmp_path, text))
        y = device.buffer("y", np.zeros(256, np.int32), 4, writable=True, written=False)
        arguments = packed([np.uint64(0), np.uint64(0), np.uint64(y.address), np.uint64(0), np.int32(1)])
        # What never ends is ended so soon; the others end by themselves.
        limit_s = 0.2 if words == "does not end" else 20.0
        device.launch("mine", (1,), (64,), arguments, seconds=limit_s)
        found = [finding for finding in device.report.findings if finding.kind == kind]
        assert found, [finding.words for finding in device.report.findings]
        assert words in found[0].words
        assert found[0].place is not None


def test_what_is_missing_is_told_at_the_kernels_line_with_what_works(tmp_path: Path) -> None:
    sparse = (
        'asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 '
        '{%0, %1, %2, %3}, {%4, %4}, {%4, %4}, {%0, %1, %2, %3}, %4, 0x0;" '
        ': "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "r"(t));'
    )
    for body, words in (
        (f"unsigned r[4] = {{}}; {sparse} y[i] = r[0];", "mma without .sp, of the whole matrix, works"),
        ("y[i] = (int)tex2D<float>((cudaTextureObject_t)n, 1.0f, 2.0f);", "reading the array itself works"),
        ("surf2Dwrite(1.0f, (cudaSurfaceObject_t)n, 4, 0);", "an array in global memory works"),
    ):
        text = corpus.text(Case("lacking", body, lambda x, f: x)).replace(body, f"\n#line 70\n{body}")
        program = check.program(tmp_path, text)
        with pytest.raises(PtxError, match=r"09_mine.cu:70\).* is missing; ") as told:
            program.translated("mine")
        assert words in str(told.value)
    text = corpus.text(Case("grid", "cooperative_groups::this_grid().sync();", lambda x, f: x, GROUPS))
    device = Device(check.program(tmp_path, text))
    device.launch("mine", (2,), (64,), packed([np.uint64(0)] * 4 + [np.int32(1)]), seconds=20)
    assert "take a cooperative launch, which is none here" in device.report.findings[0].words


def test_the_page_says_what_is_missing() -> None:
    """`python -m tests.kernels.simulated.forms` writes it."""
    missing = forms.missing()
    assert 0 < len(missing) < len(forms.FORMS)
    assert forms.page() == forms.PAGE.read_text(encoding="utf-8")


TOGETHER = """
#define WAIT(on, parity) \\
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; " \\
                 "@!p bra again; }" ::"r"(on), "r"(parity) : "memory")
extern "C" __global__ void __cluster_dims__(2) mine(const float* x, float* y) {
    __shared__ alignas(16) float s[64];
    __shared__ unsigned long long full, empty;
    const int t = threadIdx.x, rank = blockIdx.x % 2;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&full);
    const unsigned off = (unsigned)__cvta_generic_to_shared(&empty);
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(on) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(off) : "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    float sum = 0;
    for (int k = 0; k < 3; ++k) {
        if (t == 0) asm volatile("{ .reg .b64 u; mbarrier.arrive.expect_tx.shared::cta.b64 u, [%0], 256; }"
                                 ::"r"(on) : "memory");
        if (rank == 0 && t == 0) {
            if (k) WAIT(off, k - 1 & 1);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1], 256, [%2], %3;"
                         ::"r"(to), "l"(x + 64 * k), "r"(on), "h"((short)3) : "memory");
        }
        «|WAIT(on, k & 1);»
        sum += s[63 - t] * (k + 1);
        asm volatile("{ .reg .b32 u; mapa.shared::cluster.u32 u, %0, 0; "
                     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [u]; }" ::"r"(off) : "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    y[blockIdx.x * 64 + t] = sum + rank;
}
"""


@pytest.mark.sampled(4, "long")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_copy_comes_to_all_blocks_of_a_cluster(seed: int, tmp_path: Path) -> None:
    x = np.arange(192, dtype=np.float32) % 23
    for waits in (True, False):
        text = TOGETHER.replace("«|", "" if waits else "//").replace("»", "")
        device = Device(check.program(tmp_path, text, "sm_90"))
        given = device.buffer("x", x, 4)
        y = device.buffer("y", np.zeros(256, np.float32), 4, writable=True, written=False)
        arguments = packed([np.uint64(given.address), np.uint64(y.address)])
        device.launch("mine", (4,), (64,), arguments, seed=seed, seconds=5)
        if not waits:
            assert {finding.kind for finding in device.report.findings} & {"race", "uninitialised"}
            continue
        assert [finding.words for finding in device.report.findings] == []
        once = (x.reshape(3, 64)[:, ::-1] * [[1], [2], [3]]).sum(0)
        assert (y.bytes.view(np.float32).reshape(4, 64) == once + (np.arange(4) % 2)[:, None]).all()


COMBINED = {  # of cp.reduce.async.bulk the words, the type, and what they do
    "add.f32": (np.float32, np.add),
    "add.u32": (np.uint32, np.add),
    "min.s32": (np.int32, np.minimum),
    "max.u32": (np.uint32, np.maximum),
    "xor.b32": (np.uint32, np.bitwise_xor),
    "inc.u32": (np.uint32, lambda old, b: np.where(old >= b, 0, old + 1).astype(np.uint32)),
    "add.noftz.f16": (np.float16, np.add),
    "max.u64": (np.uint64, np.maximum),
    "add.f64": (np.float64, np.add),
}
REDUCING = """
#define EACH(at, words) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." words \\
                                     " [%0], [%1], 256;" ::"l"(y + 64 * at), "r"(to + 256 * at) : "memory");
#define MEET asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
extern "C" __global__ void __cluster_dims__(2) mine(const unsigned* x, unsigned* y, unsigned* z) {
    __shared__ alignas(16) unsigned s[64 * COUNT], r[64];
    __shared__ unsigned long long full;
    const int t = threadIdx.x;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s), by = (unsigned)__cvta_generic_to_shared(r);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&full);
    for (int k = 0; k < COUNT; ++k) s[64 * k + t] = x[64 * k + t];
    r[t] = 100 * t;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(on) : "memory");
        asm volatile("{ .reg .b64 u; mbarrier.arrive_drop.shared::cta.b64 u, [%0]; }" ::"r"(on) : "memory");
        asm volatile("{ .reg .b64 u; mbarrier.arrive.expect_tx.shared::cta.b64 u, [%0], 272; }"
                     ::"r"(on) : "memory");
        asm volatile("mbarrier.complete_tx.shared::cta.relaxed.cta.b64 [%0], 16;" ::"r"(on) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    MEET;
    if (t == 0) {
        ALL
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("{ .reg .b32 u, v, o; xor.b32 o, %2, 1; mapa.shared::cluster.u32 u, %0, o; "
                     "mapa.shared::cluster.u32 v, %3, o; cp.reduce.async.bulk.shared::cluster.shared::cta"
                     ".mbarrier::complete_tx::bytes.add.u32 [u], [%1], 256, [v]; }"
                     ::"r"(by), "r"(to + 256), "r"(blockIdx.x % 2), "r"(on) : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 256;" ::"l"(x));
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    WAIT
    z[64 * blockIdx.x + t] = r[t];
    MEET;
}
"""


def test_bulk_copies_combine_as_numpy_does(tmp_path: Path) -> None:
    """In global memory, where two blocks do, and in the shared memory of another block."""
    wait = TOGETHER.split("extern", 1)[0]
    each = " ".join(f'EACH({n}, "{words}")' for n, words in enumerate(COMBINED))
    text = wait + REDUCING.replace("ALL", each).replace("WAIT\n", "WAIT(on, 0);\n")
    text = text.replace("COUNT", str(len(COMBINED)))
    draw = np.random.default_rng(8)
    x, y = (
        np.concatenate(
            [draw.integers(0, 100, 256 // np.dtype(of).itemsize).astype(of).view(np.uint32)
             for of, _ in COMBINED.values()]
        )
        for _ in range(2)
    )  # fmt: skip
    device = Device(check.program(tmp_path, text, "sm_90"))
    given = device.buffer("x", x, 4)
    to = device.buffer("y", y, 4, writable=True)
    z = device.buffer("z", np.zeros(128, np.uint32), 4, writable=True, written=False)
    device.launch("mine", (2,), (64,), packed([np.uint64(b.address) for b in (given, to, z)]), seconds=5)
    assert [finding.words for finding in device.report.findings] == []
    got = to.bytes.view(np.uint32).reshape(-1, 64)
    for n, (words, (of, do)) in enumerate(COMBINED.items()):
        old, b = (each.reshape(-1, 64)[n].view(of) for each in (y, x))
        assert (got[n].view(of) == do(do(old, b), b)).all(), words
    assert (z.bytes.view(np.uint32).reshape(2, 64) == 100 * np.arange(64) + x[64:128]).all()
    assert device.report.total.kinds["global", "async"] == 2 * 8 * len(COMBINED)


TELLING = """
#define MEET asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
#define TELL(words, at, form, ...) \\
    asm volatile("{ .reg .b32 u, v; mapa.shared::cluster.u32 u, %0, %2; " \\
                 "mapa.shared::cluster.u32 v, %1, %2; " words " [u], " form ", [v]; }" \\
                 ::"r"(to + 4 * (at)), "r"(on), "r"(blockIdx.x % 2 ^ 1), __VA_ARGS__ : "memory")
#define STORE "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes."
#define ADD "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
extern "C" __global__ void __cluster_dims__(2) mine(const unsigned* x, unsigned* y) {
    __shared__ alignas(16) unsigned s[1024];
    __shared__ unsigned long long full;
    const unsigned t = threadIdx.x, i = blockIdx.x * 64 + t;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s), on = (unsigned)__cvta_generic_to_shared(&full);
    for (int k = 0; k < 16; ++k) s[64 * k + t] = t + k;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(on) : "memory");
        asm volatile("{ .reg .b64 u; mbarrier.arrive.expect_tx.shared::cta.b64 u, [%0], 4608; }"
                     ::"r"(on) : "memory");
    }
    MEET;
    const unsigned v = x[i];
    TELL(STORE "u32", 63 - t, "%3", "r"(v));
    TELL(STORE "v2.f32", 64 + 2 * t, "{%3, %4}", "f"(1.0f * v), "f"(-2.0f * v));
    TELL(STORE "v4.b32", 192 + 4 * t, "{%3, %4, %5, %6}", "r"(v), "r"(v + 1), "r"(v + 2), "r"(v + 3));
    TELL(STORE "v2.s64", 448 + 4 * t, "{%3, %4}", "l"((long long)v << 32), "l"(-(long long)v));
    TELL(ADD "add.u32", 704 + t / 2, "%3", "r"(v));
    TELL(ADD "min.s32", 736 + t / 2, "%3", "r"(v - 50));
    TELL(ADD "max.u32", 768 + t / 2, "%3", "r"(v - 50));
    TELL(ADD "xor.b32", 800 + t / 2, "%3", "r"(v));
    TELL(ADD "inc.u32", 832 + t / 2, "%3", "r"(1000));
    TELL(ADD "add.u64", 864 + t / 2 * 2, "%3", "l"((long long)v << 30));
    «|WAIT(on, 0);»
    for (int k = 0; k < 16; ++k) y[blockIdx.x * 1024 + 64 * k + t] = s[64 * k + t];
    MEET;
}
"""


def test_what_is_told_to_another_block_counts_itself_in(tmp_path: Path) -> None:
    """Stores and atomics that are done when an mbarrier of that block says so."""
    x = np.random.default_rng(3).integers(0, 100, 128).astype(np.uint32)
    expected = (np.arange(64) + np.arange(16)[:, None]).astype(np.uint32).reshape(1, 1024).repeat(2, 0)
    for to, v in zip(expected, x.reshape(2, 64)[::-1], strict=True):
        pairs, wide = v.reshape(32, 2), v.astype(np.int64)
        to[:64] = v[::-1]
        to[64:192] = np.stack([1.0 * v, -2.0 * v], 1).astype(np.float32).view(np.uint32).reshape(-1)
        to[192:448] = (v[:, None] + np.arange(4, dtype=np.uint32)).reshape(-1)
        to[448:704] = np.stack([wide << 32, -wide], 1).view(np.uint32).reshape(-1)
        to[704:736] += pairs.sum(1, dtype=np.uint32)
        less = pairs - np.uint32(50)
        to[736:768] = np.minimum(to[736:768].view(np.int32), less.view(np.int32).min(1)).view(np.uint32)
        to[768:800] = np.maximum(to[768:800], less.max(1))
        to[800:832] ^= pairs[:, 0] ^ pairs[:, 1]
        to[832:864] += 2
        to[864:928].view(np.uint64)[:] += (wide << 30).reshape(32, 2).sum(1).astype(np.uint64)
    for seed, waits in ((0, True), (1, True), (0, False)):
        text = TOGETHER.split("extern", 1)[0] + TELLING
        text = text.replace("«|", "" if waits else "//").replace("»", "")
        device = Device(check.program(tmp_path, text, "sm_90"))
        given = device.buffer("x", x, 4)
        y = device.buffer("y", np.zeros(2048, np.uint32), 4, writable=True, written=False)
        arguments = packed([np.uint64(given.address), np.uint64(y.address)])
        device.launch("mine", (2,), (64,), arguments, seed=seed, seconds=20)
        found = [finding.words for finding in device.report.findings]
        assert (found == []) == waits
        if waits:
            assert (y.bytes.view(np.uint32).reshape(2, 1024) == expected).all()
        else:
            assert "that copy is not waited for" in found[0]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("make", [nets.odd, nets.overlapping, nets.two_steps], ids=lambda made: made.__name__)
@pytest.mark.parametrize(
    "way",
    [
        *(Way(1, 4, 128), Way(4, 1, 64), Way(3, 1, 96, tensor=True)),
        *(Way(8, 1, 64, sent=True), Way(4, 4, 96, sent=True), Way(8, 1, 64, tensor=True, sent=True)),
    ],
    ids=str,
)
def test_a_net_in_one_kernel_is_right_and_nothing_is_found(
    make: Callable[[int], Sequence[Params]], way: Way
) -> None:
    batch = way.images + 1
    case = nets.drawn(make(batch))
    found = layers(case.steps, batch)
    lies = room(found, way, 227 << 10)
    assert lies is not None
    kernel = one_kernel(found, way, lies, batch, multiprocessors=1)
    device = Device(Program(nvrtc.ptx(kernel.rung(), "sm_90", kernel.defines)))
    given = [device.buffer(*each, 4) for each in (("x", case.x), ("weights", kernel.packed(case.weights)))]
    y = device.buffer("y", np.zeros(case.expected.size, np.float32), 4, writable=True, written=False)
    arguments = packed([*(np.uint64(b.address) for b in (*given, y)), np.int32(batch)])
    stage = kernel.stage
    device.launch("net", stage.grid, stage.block, arguments, stage.shared_nbytes, seconds=120)
    assert [finding.words for finding in device.report.findings] == []
    error = y.bytes.view(np.float32) - case.expected.reshape(-1)
    bound = PRECISIONS["tf32" if way.tensor else "fp32"].bound
    assert np.linalg.norm(error) <= bound * np.linalg.norm(case.expected)


# A row of a, and a column of b, lies beside each other in memory. Of any type a register is four bytes of it
# (PTX ISA, "Matrix Fragments for mma.m16n8k32").
PRODUCT = """
extern "C" __global__ void mine(const unsigned* x, unsigned* y) {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
    const unsigned* b = x + 16 * WORDS;
    unsigned a[4], e[2], d[4];
    for (int r = 0; r < 2 * REGISTERS; ++r) a[r] = x[(g + 8 * (r & 1)) * WORDS + t + 4 * (r >> 1)];
    for (int r = 0; r < REGISTERS; ++r) e[r] = b[g * WORDS + t + 4 * r];
    for (int r = 0; r < SUMS; ++r) d[r] = b[8 * WORDS + (g + 8 * (r * 2 / SUMS)) * (2 * SUMS) + t * (SUMS / 2)
                                             + (r & SUMS / 2 - 1)];
    asm volatile("mma.sync.aligned.INSTRUCTION {D}, {A}, {B}, {D};" OUTPUTS);
    for (int r = 0; r < SUMS; ++r)
        y[(g + 8 * (r * 2 / SUMS)) * (2 * SUMS) + t * (SUMS / 2) + (r & SUMS / 2 - 1)] = d[r];
}
"""


def _drawn(kind: str, count: int, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(what lies in memory as bytes, its values)."""
    if kind in ("s8", "u8"):
        bits = draw.integers(0, 256, count).astype(np.uint8)
        return bits, bits.view(np.int8 if kind == "s8" else np.uint8).astype(np.float64)
    if kind in ("s4", "u4"):
        bits = draw.integers(0, 256, count // 2).astype(np.uint8)
        both = np.stack([bits & 15, bits >> 4], 1).reshape(-1).astype(np.int64)
        return bits, np.where((both > 7) & (kind == "s4"), both - 16, both).astype(np.float64)
    if kind in ("e4m3", "e5m2"):
        signs = draw.integers(0, 2, count) * 128
        bits = (draw.integers(0, 0x70, count) + signs).astype(np.uint8)
        digits, bias = (3, 7) if kind == "e4m3" else (2, 15)
        exponent, rest = (bits & 0x7F) >> digits, (bits & (1 << digits) - 1) / (1 << digits)
        size = np.where(exponent, (1 + rest) * 2.0 ** (exponent - float(bias)), rest * 2.0 ** (1 - bias))
        return bits, np.where(bits & 0x80, -size, size)
    values = draw.integers(-8, 9, count) / 4
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8), values
    return values.astype(np.float16 if kind == "f16" else np.float32).view(np.uint8), values


BITS = {"s4": 4, "u4": 4, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16, "tf32": 32}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "words",
    [
        "m16n8k32.row.col.s32.s8.s8.s32",
        "m16n8k16.row.col.s32.u8.s8.s32",
        "m16n8k32.row.col.satfinite.s32.u8.u8.s32",
        "m16n8k64.row.col.s32.s4.s4.s32",
        "m16n8k32.row.col.s32.u4.s4.s32",
        "m16n8k8.row.col.f32.f16.f16.f32",
        "m16n8k8.row.col.f32.bf16.bf16.f32",
        "m16n8k4.row.col.f32.tf32.tf32.f32",
        "m16n8k16.row.col.f16.f16.f16.f16",
        "m16n8k8.row.col.f16.f16.f16.f16",
        "m16n8k32.row.col.f32.e4m3.e5m2.f32",
        "m16n8k32.row.col.f32.e5m2.e4m3.f32",
        "m16n8k16.row.col.f32.f16.f16.f32",
        "m16n8k8.row.col.f32.tf32.tf32.f32",
    ],
)
def test_products_of_each_type_are_numpys(words: str, tmp_path: Path) -> None:
    parts = [part for part in words.split(".") if part != "satfinite"]
    depth, (sums, of_a, of_b) = int(parts[0][6:]), parts[3:6]
    registers, count = depth * BITS[of_a] // 128, 2 if sums == "f16" else 4
    names = {"D": [f"%{n}" for n in range(count)], "A": [f"%{count + n}" for n in range(2 * registers)]}
    names["B"] = [f"%{count + 2 * registers + n}" for n in range(registers)]
    asm = f"mma.sync.aligned.{words}"
    text = PRODUCT.replace("mma.sync.aligned.INSTRUCTION", asm)
    for name, of in names.items():
        text = text.replace("{" + name + "}", "{" + ", ".join(of) + "}")
    outputs = ", ".join(f'"+r"(d[{n}])' for n in range(count))
    given = [f'"r"(a[{n}])' for n in range(2 * registers)] + [f'"r"(e[{n}])' for n in range(registers)]
    text = text.replace("OUTPUTS", f": {outputs} : {', '.join(given)}")
    text = text.replace("REGISTERS", str(registers)).replace("SUMS", str(count))
    text = text.replace("WORDS", str(4 * registers))
    draw = np.random.default_rng(3)
    (a, left), (b, right) = _drawn(of_a, 16 * depth, draw), _drawn(of_b, 8 * depth, draw)
    small = draw.integers(-50, 50, 128)
    begin = np.where(np.arange(128) % 5, small, 2**31 - 90) if "satfinite" in words else small
    dtype = {"s32": np.int32, "f32": np.float32, "f16": np.float16}[sums]
    memory = np.concatenate([a, b, begin.astype(dtype).view(np.uint8)])
    device = Device(check.program(tmp_path, text, "sm_89" if "e4m3" in words else "sm_80"))
    x = device.buffer("x", memory, 4)
    y = device.buffer("y", np.zeros(128, dtype), 4, writable=True, written=False)
    device.launch("mine", (1,), (32,), packed([np.uint64(x.address), np.uint64(y.address)]), seconds=10)
    assert device.report.findings == []
    expected = left.reshape(16, depth) @ right.reshape(8, depth).T + begin.reshape(16, 8)
    if "satfinite" in words:
        assert expected.max() > 2**31
        expected = np.minimum(expected, 2**31 - 1)
    got = y.bytes.view(dtype).reshape(16, 8)
    assert (got == expected.astype(dtype)).all()


WIDE = """
extern "C" __global__ void mine(const uint4* x, unsigned* y) {
    __shared__ __align__(128) uint4 a[128], b[16];
    for (int i = threadIdx.x; i < 144; i += 128) {  // 16 bytes of a row: those of eight lie together
        const int row = i % 128 / 2, half = i & 1;
        (i < 128 ? a : b)[row / 8 * 16 + half * 8 + row % 8] = x[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long more = 8ull << 16 | 16ull << 32;
    const unsigned long long of_a = more | (unsigned)__cvta_generic_to_shared(a) >> 4;
    const unsigned long long of_b = more | (unsigned)__cvta_generic_to_shared(b) >> 4;
    unsigned d[4] = {};
    asm volatile("wgmma.fence.sync.aligned; INSTRUCTION wgmma.commit_group.sync.aligned; "
                 "wgmma.wait_group.sync.aligned 0;" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "l"(of_a), "l"(of_b));
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int r = 0; r < SUMS; ++r)
        y[((row + 8 * (r * 2 / SUMS)) * 4 + t) * SUMS / 2 + (r & SUMS / 2 - 1)] = d[r];
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words", ["f32.e4m3.e4m3", "f32.e5m2.e4m3", "s32.s8.u8", "f16.f16.f16", "f16.e4m3.e4m3", "f32.bf16.bf16"]
)
def test_products_of_a_warpgroup_of_each_type_are_numpys(words: str, tmp_path: Path) -> None:
    sums, of_a, of_b = words.split(".")
    depth, narrow = 32 * 8 // BITS[of_a], sums == "f16"
    signs = "" if sums == "s32" else ", 1, 1, 0, 0" if BITS[of_a] == 16 else ", 1, 1"
    places = "{%0, %1}" if narrow else "{%0, %1, %2, %3}"
    asm = f"wgmma.mma_async.sync.aligned.m64n8k{depth}.{words} {places}, %4, %5, 1{signs};"
    text = WIDE.replace(
        "INSTRUCTION", "{ .reg .pred p; setp.eq.s32 p, 1, 1; " + asm.replace(", 1", ", p", 1) + " }"
    )
    text = text.replace("SUMS", "2" if narrow else "4")
    draw = np.random.default_rng(4)
    (a, left), (b, right) = _drawn(of_a, 64 * depth, draw), _drawn(of_b, 8 * depth, draw)
    dtype = {"s32": np.int32, "f32": np.float32, "f16": np.float16}[sums]
    device = Device(check.program(tmp_path, text, "sm_90a"))
    x = device.buffer("x", np.concatenate([a, b]), 16)
    y = device.buffer("y", np.zeros(512, dtype), 4, writable=True, written=False)
    device.launch("mine", (1,), (128,), packed([np.uint64(x.address), np.uint64(y.address)]), seconds=10)
    assert [finding.words for finding in device.report.findings] == []
    expected = left.reshape(64, depth) @ right.reshape(8, depth).T
    got = y.bytes.view(dtype).reshape(64, 8).astype(np.float64)
    assert np.abs(got - expected).max() <= np.abs(expected).max() * (
        2**-10 if narrow else 0 if sums == "s32" else 2**-22
    )
