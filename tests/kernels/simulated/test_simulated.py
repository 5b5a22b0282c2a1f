"""CUDA kernels run without a GPU: shipped rungs answer right and nothing is found in them; what is wrong
with a kernel is found, at its line."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from engine.cuda import stirring
from engine.cuda.simulated import SimulatedRungSession
from kernels import launch, numba_support, nvrtc, registry
from kernels.ops.gemm import Gemm
from kernels.ptx import reader
from kernels.ptx.program import Device, Program, packed
from kernels.registry import Rung
from tests.kernels.simulated import check, fuzz, manual, planted
from tests.kernels.simulated.planted import Planted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("rung", check.RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_a_rung_is_right_and_nothing_is_found_in_it(rung: Rung) -> None:
    assert check.missing_of(rung) == ()
    outcome = check.ran(rung, check.case_of(rung))
    assert outcome.wrong == ""
    assert [finding.words for finding in outcome.findings] == []


@pytest.mark.sampled(18)
@pytest.mark.parametrize("mistake", list(planted.planted()), ids=lambda mistake: mistake.name)
def test_a_mistake_is_found_at_its_line_and_only_there(mistake: Planted, tmp_path: Path) -> None:
    found = check.findings(tmp_path, mistake, mistake.wrong)
    assert check.told(mistake, found), [finding.words for finding in found]
    assert check.findings(tmp_path, mistake, mistake.right) == []


SUM = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<3>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.f32 %f1, [%rd4];
    INSTRUCTION
    add.s64 %rd5, %rd2, %rd3;
    st.global.f32 [%rd5], %f2;
    ret;
}
"""


@pytest.mark.sampled(4, "long")
def test_instructions_do_what_the_manual_says() -> None:
    """All rows of the table in one kernel."""
    rows, given = manual.rows(), manual.inputs()
    device = Device(Program(manual.text(rows)))
    x = device.buffer("x", np.array(given, np.uint32), 4)
    nothing = np.zeros((len(rows), manual.BLOCKS, manual.THREADS), np.uint64)
    y = device.buffer("y", nothing, 8, writable=True, written=False)
    arguments = packed([np.uint64(x.address), np.uint64(y.address)])
    device.launch("rows", (manual.BLOCKS,), (manual.THREADS,), arguments)
    assert device.report.findings == []
    assert manual.wrong(rows, y.bytes.view(np.uint64).reshape(nothing.shape), given) == []
    shaken = y.bytes.view(np.uint64).reshape(nothing.shape) ^ np.uint64(1)
    assert len(manual.wrong(rows, shaken, given)) > 0.9 * len(rows)  # but those that may be off by a bit


ATOMIC = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<3>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.b32 %r2, [%rd4];
    INSTRUCTION
    ret;
}
"""
VALUES = [5, 3, 0xFFFFFFF0, 12, 7, 0, 255]


@pytest.mark.parametrize(
    ("operation", "first", "work"),
    [
        ("add.u32", 2, lambda old, b: old + b & 0xFFFFFFFF),
        ("min.u32", 9, min),
        ("max.u32", 9, max),
        ("min.s32", 9, lambda old, b: min(old, b, key=lambda v: v ^ 0x80000000)),
        ("max.s32", 9, lambda old, b: max(old, b, key=lambda v: v ^ 0x80000000)),
        ("and.b32", 0xFF, lambda old, b: old & b),
        ("or.b32", 1, lambda old, b: old | b),
        ("xor.b32", 1, lambda old, b: old ^ b),
        ("exch.b32", 1, lambda old, b: b),
        ("inc.u32", 4, lambda old, b: 0 if old >= b else old + 1),
        ("dec.u32", 4, lambda old, b: b if old == 0 or old > b else old - 1),
    ],
)
def test_atomics_are_done_one_after_another(operation: str, first: int, work: object) -> None:
    assert callable(work)
    device = Device(Program(ATOMIC.replace("INSTRUCTION", f"red.global.{operation} [%rd2], %r2;")))
    given = device.buffer("x", np.array(VALUES, np.uint32), 4)
    y = device.buffer("y", np.array([first], np.uint32), 4, writable=True)
    device.launch("sum", (1,), (len(VALUES),), packed([np.uint64(given.address), np.uint64(y.address)]))
    assert device.report.findings == []
    right = first
    for value in VALUES:
        right = work(right, value)
    assert int(y.bytes.view(np.uint32)[0]) == right


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SUM.replace("INSTRUCTION", "frobnicate.f32 %f2, %f1;"), "line 14: frobnicate.f32 is missing"),
        (SUM.replace("INSTRUCTION", "add.f32 %f2, %f1, %f9;"), "line 14: %f9 is not declared"),
        (SUM.replace("INSTRUCTION", "bra nowhere;"), "line 14: the label nowhere is nowhere"),
        (SUM.replace("INSTRUCTION", "add.f32 %f2, %f1"), "line 15"),
        (SUM[: len(SUM) // 2], "ends in the middle"),
        ("\x00\x01", "is no PTX"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_with_its_line(text: str, words: str) -> None:
    with pytest.raises(reader.PtxError, match=words.replace(".", r"\.")):
        Program(text).translated("sum")


SQUARES = """
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda;
extern "C" __global__ void mine(const float* x, float* y, float* z, int n) {
    __shared__ __align__(128) half a[256], b[256];
    __shared__ __align__(128) float sums[256];
    for (int i = threadIdx.x; i < 256; i += 32) {
        a[i] = __float2half(x[i % n] + i % 5), b[i] = __float2half(x[(3 * i + 1) % n] - 4), sums[i] = i;
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::A_ORDER> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::B_ORDER> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, SUM> total;
    #if BEGINS
    wmma::load_matrix_sync(total, sums, 16, wmma::mem_row_major);
    #else
    wmma::fill_fragment(total, 0.0f);
    #endif
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(total, left, right, total);
    for (int i = 0; i < total.num_elements; ++i) total.x[i] = total.x[i] * (SUM)2;
    SUM* into = reinterpret_cast<SUM*>(y);
    wmma::store_matrix_sync(into, total, 16, wmma::STORED);
}
"""


@pytest.mark.sampled(4, "long")
def test_products_of_wmma_are_right_in_every_order(tmp_path: Path) -> None:
    x = np.arange(32, dtype=np.float32) % 7
    i = np.arange(256)
    left, right = x[i % 32] + i % 5, x[(3 * i + 1) % 32] - 4
    for a_order, b_order, stored, kind, sums in (
        ("row_major", "col_major", "mem_row_major", "float", 1),
        ("col_major", "row_major", "mem_col_major", "float", 0),
        ("row_major", "row_major", "mem_row_major", "half", 0),
    ):
        words = {
            "A_ORDER": a_order,
            "B_ORDER": b_order,
            "STORED": stored,
            "SUM": kind,
            "BEGINS": str(sums),
        }
        text = SQUARES
        for name, word in words.items():
            text = text.replace(name, word)
        device = Device(check.program(tmp_path, text))
        given = device.buffer("x", x, 4)
        y = device.buffer("y", np.zeros(256, np.float32), 4, writable=True, written=False)
        arguments = packed([np.uint64(given.address), np.uint64(y.address), np.uint64(0), np.int32(32)])
        device.launch("mine", (1,), (32,), arguments, seconds=5)
        assert device.report.findings == []
        a, b = left.reshape(16, 16), right.reshape(16, 16)
        expected = (a if a_order == "row_major" else a.T) @ (b if b_order == "row_major" else b.T)
        expected = 2 * (expected + i.reshape(16, 16) * sums)
        got = y.bytes.view(np.float32 if kind == "float" else np.float16)[:256].astype(np.float64)
        got = got.reshape(16, 16)
        got = got if stored == "mem_row_major" else got.T
        assert np.abs(got - expected).max() <= np.abs(expected).max() * (0 if kind == "float" else 2**-10)


BYTES = """
extern "C" __global__ void mine(const float* x, float* y, float* z, int n) {
    const unsigned* a = (const unsigned*)x + threadIdx.x * 10;
    int* to = (int*)y + threadIdx.x * 4;
    int sum[4] = {(int)a[6], (int)a[7], (int)a[8], (int)a[9]};
    asm("mma.sync.aligned.m16n8k32.row.col.s32.KINDS.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
    for (int e = 0; e < 4; ++e) to[e] = sum[e];
}
"""


def test_products_of_bytes_wrap_around(tmp_path: Path) -> None:
    """Which lane has what: PTX ISA, "Matrix Fragments for mma.m16n8k32"."""
    random, lane = np.random.default_rng(0), np.arange(32)
    group, within = lane // 4, lane % 4
    for kinds in ("s8.s8", "s8.u8", "u8.s8", "u8.u8"):
        types = [np.int8 if kind == "s8" else np.uint8 for kind in kinds.split(".")]
        a, b = (random.integers(0, 256, shape).astype(np.uint8) for shape in ((16, 32), (32, 8)))
        a[0], b[:, 0] = 255, 127  # of ends
        c = random.integers(-(2**31), 2**31, (16, 8)).astype(np.int32)
        words = np.zeros((32, 10), np.uint32)
        for n in range(4):
            row, first = group + 8 * (n % 2), 4 * within + 16 * (n // 2)
            words[:, n] = np.stack([a[row, first + i] for i in range(4)], 1).copy().view(np.uint32)[:, 0]
        for n in range(2):
            first = 4 * within + 16 * n
            words[:, 4 + n] = (
                np.stack([b[first + i, group] for i in range(4)], 1).copy().view(np.uint32)[:, 0]
            )
        places = [(group + 8 * (e // 2), 2 * within + e % 2) for e in range(4)]
        for e, place in enumerate(places):
            words[:, 6 + e] = c[place].view(np.uint32)
        device = Device(check.program(tmp_path, BYTES.replace("KINDS", kinds)))
        given = device.buffer("x", words.view(np.float32).reshape(-1), 4)
        y = device.buffer("y", np.zeros(128, np.float32), 4, writable=True, written=False)
        arguments = packed([np.uint64(given.address), np.uint64(y.address), np.uint64(0), np.int32(32)])
        device.launch("mine", (1,), (32,), arguments, seconds=5)
        assert device.report.findings == []
        left, right = (of.view(kind).astype(np.int64) for of, kind in zip((a, b), types, strict=True))
        expected = (c + left @ right).astype(np.int32)  # the low 32 bits
        got = y.bytes.view(np.int32)[:128].reshape(32, 4)
        for e, place in enumerate(places):
            np.testing.assert_array_equal(got[:, e], expected[place])


STORED = """
extern "C" __global__ void mine(const float* x, float* y, float* z, int n) {
    __shared__ __align__(16) unsigned short tile[256];
    unsigned from = (unsigned)__cvta_generic_to_shared(tile) + threadIdx.x * 16, r[4], back[4];
    for (int i = 0; i < 4; ++i) r[i] = (threadIdx.x * 4 + i) * 65536 + threadIdx.x;
    asm volatile("stmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(from),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(back[0]),
                 "=r"(back[1]), "=r"(back[2]), "=r"(back[3]) : "r"(from) : "memory");
    bool same = true;
    for (int i = 0; i < 4; ++i) same = same && back[i] == r[i];
    for (int i = 0; i < 8; ++i) y[threadIdx.x * 8 + i] = same ? tile[threadIdx.x * 8 + i] : -1;
}
"""


@pytest.mark.sampled(4, "long")
def test_stmatrix_writes_what_ldmatrix_reads(tmp_path: Path) -> None:
    matrix, row, column = np.unravel_index(np.arange(256), (4, 8, 8))
    for word in ("", ".trans"):
        device = Device(check.program(tmp_path, STORED.replace("TRANS", word), "sm_90"))
        y = device.buffer("y", np.zeros(256, np.float32), 4, writable=True, written=False)
        arguments = packed([np.uint64(0), np.uint64(y.address), np.uint64(0), np.int32(0)])
        device.launch("mine", (1,), (32,), arguments, seconds=5)
        assert device.report.findings == []
        r, c = (column, row) if word else (row, column)
        lane = r * 4 + c // 2  # PTX ISA, "stmatrix": two numbers of a row each
        assert (y.bytes.view(np.float32) == np.where(c % 2, lane * 4 + matrix, lane)).all()


def test_damaged_ptx_is_refused_or_translated() -> None:
    outcomes = [fuzz.read(fuzz.damaged(random.Random(f"7 {number}"))) for number in range(150)]
    assert fuzz.read(fuzz.TEXT) == "translated"
    assert {"refused", "translated"} == set(outcomes)


@pytest.mark.parametrize("seed", [0, 1])
def test_blocks_of_a_cluster_add_up_out_of_each_others_memory(seed: int) -> None:
    rung = registry.find("cuda", "gemm", 9)
    params = Gemm(m=4, n=8, k=2048, trans_b=True)
    assert int(launch.launch(params, rung).defines["PARTS"]) > 1
    draw = np.random.default_rng(3)
    a, b = (draw.standard_normal(shape).astype(np.float32) for shape in params.input_shapes)
    session = SimulatedRungSession(rung, params, [a, b], seed)
    session.poison(0xFF)
    session.run()
    right = a.reshape(4, 2048).astype(np.float64) @ b.reshape(8, 2048).T.astype(np.float64)
    assert np.abs(session.output().reshape(4, 8) - right).max() < 1e-4
    assert session.report.findings == []


LEAVES = """
__device__ __noinline__ int deep(int v) { return v <= 0 ? v : deep(v - 1) + v % 7; }
extern "C" __global__ void mine(const float* x, float* y, int what) {
    __shared__ __align__(128) float s[12];  // 16 bytes that are nobody's lie behind it
    __shared__ __align__(16) float last[4];
    __shared__ unsigned long long full;
    const int t = threadIdx.x;
    const unsigned to = (unsigned)__cvta_generic_to_shared(s);
    const unsigned on = (unsigned)__cvta_generic_to_shared(&full);
    const int size = what == COPY ? 64 : 48;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(on) : "memory");
        asm volatile("{ .reg .b64 u; mbarrier.arrive.expect_tx.shared::cta.b64 u, [%0], %1; }"
                     ::"r"(on), "r"(size) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(to), "l"(x), "r"(size), "r"(on) : "memory");
    }
    if (t < 4 && what != UNWRITTEN) last[t] = 0;
    const int depth = deep(what == CALLS ? 5000 : t % 5);
    if (what == TRAP && t == 40) asm volatile("trap;");
    if (what == BARRIER && t > 40) asm volatile("bar.sync 1, 64;" ::: "memory");
    if (what == OUTSIDE) s[12 + t % 4] = 1;
    __syncthreads();
    if (what != COPY)
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; "
                     "@!p bra again; }" ::"r"(on) : "memory");
    y[t] = s[t % 12] + depth + last[t % 4];
}
"""


def test_what_a_launch_leaves_is_nothing_to_the_next(tmp_path: Path) -> None:
    """Whether or not it went wrong, in the memory of warps and blocks that launches share."""
    modes = ["RIGHT", "CALLS", "COPY", "TRAP", "BARRIER", "OUTSIDE", "UNWRITTEN"]
    defines = "".join(f"#define {name} {number}\n" for number, name in enumerate(modes))
    program = check.program(tmp_path, defines + LEAVES, "sm_90")
    x = np.arange(16, dtype=np.float32)

    def said(device: Device, what: str) -> list[str]:
        y = device.named("y")
        device.forget(y)
        arguments = packed([np.uint64(device.named("x").address), np.uint64(y.address)])
        arguments += packed([np.int32(modes.index(what))])
        report = device.launch("mine", (2,), (64,), arguments, seconds=20)
        if what == "RIGHT":
            t = np.arange(64)
            assert (y.bytes.view(np.float32) == t % 12 + np.array([0, 1, 3, 6, 10])[t % 5]).all()
        return [finding.words for finding in report.findings]

    def made() -> Device:
        device = Device(program)
        device.buffer("x", x, 4)
        device.buffer("y", np.zeros(64, np.float32), 4, writable=True, written=False)
        return device

    shared = made()
    alone = {what: said(made(), what) for what in modes}
    assert [what for what in modes if not alone[what]] == ["RIGHT"]
    for what in modes[1:]:
        assert said(shared, what) == alone[what]
        assert said(shared, "RIGHT") == alone["RIGHT"] == []


def test_what_stirs_inputs_has_no_race() -> None:
    """Each block reads the state that the last one writes anew; the fence makes that no race."""
    text = nvrtc.ptx(stirring.source(), "sm_80")
    for wrong in (text, re.sub(r"(membar|fence)[.\w]+;", "", text)):
        device = Device(Program(wrong))
        state = device.buffer("state", np.array([5, *[0] * 7], np.uint64), 8, writable=True)
        x = device.buffer("x", np.arange(1000, dtype=np.float32), 4, writable=True)
        values = device.buffer("values", np.arange(64, dtype=np.float32), 4)
        held = device.buffer("held", np.zeros(1000, np.float32), 4, writable=True)
        row = (x.address, 4, 1000, 500, 0, values.address, 64, held.address)
        table = device.buffer("tensors", np.array(row, np.uint64), 8)
        given = packed([np.uint64(state.address), np.uint64(table.address), np.uint64(0), np.int32(1)])
        for _ in range(2):
            device.launch("stir", (2, 1), (256,), given, seconds=5)
        assert state.bytes.view(np.uint64)[1] == 2
        assert bool(device.report.findings) == (wrong is not text)
