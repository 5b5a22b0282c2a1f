"""CUDA kernels run without a GPU: shipped rungs answer right and nothing is found in them; what is wrong
with a kernel is found, at its line."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from kernels import numba_support, nvrtc
from kernels.ptx import reader
from kernels.ptx.program import Device, Program, packed
from kernels.registry import Rung
from tests.kernels.simulated import check, fuzz, planted
from tests.kernels.simulated.planted import Planted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("rung", check.RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_a_rung_is_right_and_nothing_is_found_in_it(rung: Rung) -> None:
    if (missing := check.missing_of(rung)) and check.hopper(rung):
        pytest.skip(f"{', '.join(missing)} is missing")
    assert missing == ()
    outcome = check.ran(rung, check.case_of(rung))
    assert outcome.wrong == ""
    assert [finding.words for finding in outcome.findings] == []


@pytest.mark.sampled(6)
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


def _answer(instruction: str, x: np.ndarray) -> np.ndarray:
    device = Device(Program(SUM.replace("INSTRUCTION", instruction)))
    given = device.buffer("x", x, 4)
    y = device.buffer("y", np.zeros_like(x), 4, writable=True, written=False)
    device.launch("sum", (1,), (x.size,), packed([np.uint64(given.address), np.uint64(y.address)]))
    assert device.report.findings == []
    return y.bytes.view(x.dtype)


FEW = np.array([1.0, 1.5, -2.75, 3e-39, -0.0, 0.1, 16777217.0, 1e38, np.inf, -7.3, 0.3, 2.0], np.float32)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_rounding_goes_where_it_is_told_to(mode: str) -> None:
    """Against exact fractions, of which float32 next to them is known."""
    from fractions import Fraction

    got = _answer(f"fma.{mode}.f32 %f2, %f1, 0f3DCCCCCD, 0f3EAAAAAB;", FEW)
    a, b = (Fraction(float(np.array(bits, np.uint32).view(np.float32))) for bits in (0x3DCCCCCD, 0x3EAAAAAB))
    for x, y in zip(FEW, got, strict=True):
        if not np.isfinite(x):
            assert y == x
            continue
        exact = Fraction(float(x)) * a + b
        step = np.nextafter(y, np.float32(np.inf if mode != "rp" else -np.inf))
        low, high = (y, step) if mode != "rp" else (step, y)
        if mode == "rz" and exact < 0:
            step = np.nextafter(y, np.float32(-np.inf))
            low, high = step, y
            assert Fraction(float(low)) < exact <= Fraction(float(high))
        elif mode == "rp":
            assert Fraction(float(low)) < exact <= Fraction(float(high))
        else:
            assert Fraction(float(low)) <= exact < Fraction(float(high))


@pytest.mark.parametrize(
    ("instruction", "work"),
    [
        ("min.f32 %f2, %f1, 0f40000000;", lambda x: np.fmin(x, 2)),
        ("max.NaN.f32 %f2, %f1, 0f40000000;", lambda x: np.maximum(x, 2)),
        ("cvt.rni.f32.f32 %f2, %f1;", np.rint),
        ("cvt.sat.f32.f32 %f2, %f1;", lambda x: np.clip(x, 0, 1)),
        ("{ .reg .b32 a; cvt.rzi.s32.f32 a, %f1; cvt.rn.f32.s32 %f2, a; }",
         lambda x: np.clip(np.trunc(x.astype(np.float64)), -(2**31), 2**31 - 1)),
        ("{ .reg .b16 h; cvt.rn.f16.f32 h, %f1; cvt.f32.f16 %f2, h; }", lambda x: x.astype(np.float16)),
        ("shfl.sync.bfly.b32 %f2, %f1, 1, 31, -1;", lambda x: x.reshape(-1, 2)[:, ::-1].reshape(-1)),
        ("{ .reg .b32 a; mov.b32 a, %f1; prmt.b32 a, a, 0, 0x123; prmt.b32 a, a, 0, 0x123; mov.b32 %f2, a; }",
         lambda x: x),
    ],
)  # fmt: skip
def test_an_instruction_does_what_its_page_says(instruction: str, work: object) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        assert callable(work)
        np.testing.assert_array_equal(_answer(instruction, FEW), work(FEW).astype(np.float32))


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


def test_damaged_ptx_is_refused_or_translated() -> None:
    outcomes = [fuzz.read(fuzz.damaged(random.Random(f"7 {number}"))) for number in range(150)]
    assert fuzz.read(fuzz.TEXT) == "translated"
    assert {"refused", "translated"} == set(outcomes)
