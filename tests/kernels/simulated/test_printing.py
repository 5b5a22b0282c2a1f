"""printf, assert and trap in a kernel that runs without a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels import numba_support, nvrtc
from kernels.ptx import machine, printing
from kernels.ptx.program import Device, Report, packed
from tests.kernels.simulated import check

TEXT = """
extern "C" __global__ void mine(const float* x, float* y, float* z, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) printf("%d: %5.2f |%-6s| %c %lld %u%% %x", i, x[i], "abc", 'q', -5ll * i, 7u, 255);
    assert(x[i] < 9);
    y[i] = x[i];
    if (i == 3 && z[0] == 1) __trap();
}
""".strip("\n")


@pytest.mark.slow
@pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
@pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable()))
def test_a_kernel_prints_and_gives_up(tmp_path: Path) -> None:
    program = check.program(tmp_path, TEXT)

    def ran(x: np.ndarray, flag: float, n: int, blocks: int = 1) -> Report:
        device = Device(program)
        given = device.buffer("x", x, 4)
        y = device.buffer("y", x, 4, writable=True, written=False)
        z = device.buffer("z", np.full(1, flag, np.float32), 4, writable=True)
        arguments = packed([np.uint64(b.address) for b in (given, y, z)] + [np.int32(n)])
        device.launch("mine", (blocks,), (64,), arguments)
        return device.report

    x = np.arange(1280, dtype=np.float32) % 7
    report = ran(x, 0, 2)
    assert report.findings == []
    assert [said.text for said in report.printed] == [
        "0:  0.00 |abc   | q 0 7% ff",
        "1:  1.00 |abc   | q -5 7% ff",
    ]
    assert report.printed[1].who == "thread 1 of block 0"
    assert [said.place and said.place.line for said in report.printed] == [3, 3]
    many = ran(x, 0, 1280, 20)
    assert (len(many.printed), many.left_out) == (machine.MOST_SAID, 1280 - machine.MOST_SAID)
    (trap,) = ran(x, 1, 0).findings
    assert (trap.kind, trap.place and trap.place.line) == ("trap", 6)
    x[5] = 11
    (failed,) = ran(x, 0, 0).findings
    assert (failed.kind, failed.place and failed.place.line) == ("assert", 4)
    assert "assert(x[i] < 9) does not hold for thread 5 of block 0" in failed.words


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("%d %i", b"\xff\xff\xff\xff\x02\0\0\0", "-1 2"),
        ("%5d|%-5d|%05d|%+d", bytes([7, 0, 0, 0] * 4), "    7|7    |00007|+7"),
        ("%lu %hhd", (1 << 63).to_bytes(8, "little") + b"\xff\0\0\0", f"{1 << 63} -1"),
        ("%*.*f|", b"\x08\0\0\0\x02\0\0\0" + np.float64(1.239).tobytes(), "    1.24|"),
        ("%e %g", np.array([1e-9, 0.5]).tobytes(), "1.000000e-09 0.5"),
        ("100%% %y %", b"", "100% %y %"),
        ("%s %p", (5).to_bytes(8, "little") + (255).to_bytes(8, "little"), "at 5 0xff"),
        ("%d", b"", "0"),
        ("%999999999d|", b"\x01\0\0\0", " " * 199 + "1|"),
    ],
)
def test_values_are_written_as_c_writes_them(text: str, values: bytes, said: str) -> None:
    assert printing.formatted(text, values, lambda address: f"at {address}") == said
