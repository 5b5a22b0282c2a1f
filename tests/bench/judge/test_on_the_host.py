"""The host that stands in for a device: what hangs or faults there is told, and blocks after it are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels import arguments, registry
from tests.bench.judge import on_the_host

pytestmark = pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")

HEADER = '/*\nop = "unary"\nrung = 9\nname = "mine"\nidea = "A test."\nlaunch = "one_thread_an_output"\n*/\n'
# kind: 7, threads of a warp wait in different places; 8, an address of nobody's.
TEXT = """extern "C" __global__ void unary(const float* x, float* y, const UnaryParams p) {
    __shared__ float first[1];
    const int kind = p.kind;
    const long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (kind == 7 && threadIdx.x % 2) __syncwarp();
    else {
        if (threadIdx.x == 0) first[0] = kind == 8 ? *(const float*)nullptr : x[0];
        __syncthreads();
        if (i < p.size) y[i] = first[0] + kind;
    }
}"""


PARAMETERS = (np.float32(0), np.float32(0))  # which this kernel does not read


def test_what_hangs_or_faults_is_told_and_costs_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "09_mine.cu").write_text(HEADER + TEXT)
    rung = registry.find("cuda", "unary", 9, [tmp_path])
    hosted = on_the_host.Hosted(tmp_path, turns=True)
    unary = hosted.RawModule(path=str(hosted.compiled(rung, "sm_90"))).get_function("unary")
    x = np.ones(1, np.float32)

    def answer(kind: int, threads: int = 64) -> np.ndarray:
        y = np.zeros(100, np.float32)
        addresses = [np.uint64(array.ctypes.data) for array in (x, y)]
        unary(
            (-(-100 // threads),),
            (threads,),
            (*addresses, arguments.packed("unary", (np.int64(y.size), np.int32(kind), *PARAMETERS))),
        )
        hosted.device.synchronize()
        return y

    for kind, threads in ((1, 64), (2, 128), (3, 32)):
        assert (answer(kind, threads) == kind + 1).all()
        with pytest.raises(AssertionError, match="nobody lets them go on"):
            answer(7)
        assert (answer(kind, threads) == kind + 1).all()
        with pytest.raises(AssertionError, match="not its own"):
            answer(8)
