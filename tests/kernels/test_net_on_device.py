"""A net in one kernel on a GPU: right in every way of sharing it out, twice the same, within its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from engine.backends.engine_cuda import BACKEND
from engine.cuda.runtime import import_cupy
from engine.cuda.stages import kernel_of
from kernels import nvrtc
from kernels.net.layers import layers
from kernels.net.plan import block_nbytes, room
from kernels.net.records import Way
from kernels.net.text import one_kernel
from kernels.ops import Params
from kernels.precision import PRECISIONS
from tests.kernels import nets

WAYS = [
    Way(1, 1, 96), Way(1, 1, 512), Way(2, 1, 128), Way(4, 1, 64), Way(8, 1, 256), Way(1, 4, 128, 2),
    Way(1, 4, 512), Way(1, 8, 256, 2), Way(1, 8, 512), Way(1, 16, 256), Way(1, 20, 512),
    Way(4, 4, 256), Way(2, 2, 256), Way(3, 8, 96), Way(1, 8, 256, 2, tensor=True),
    Way(1, 8, 512, tensor=True), Way(1, 16, 512, tensor=True), Way(1, 24, 96, tensor=True),
    Way(2, 2, 512), Way(4, 4, 512), Way(2, 8, 256, 2, tensor=True), Way(2, 16, 512, tensor=True),
    Way(4, 8, 512, tensor=True), Way(8, 8, 256, tensor=True), Way(8, 8, 512, tensor=True),
    Way(3, 8, 96, tensor=True), Way(1, 8, 256, 2, tensor=True, half="float16"),
    Way(1, 16, 512, tensor=True, half="float16"), Way(8, 8, 512, tensor=True, half="float16"),
    Way(8, 1, 128, sent=True), Way(4, 1, 128, sent=True), Way(3, 1, 96, sent=True), Way(4, 4, 512, sent=True),
    Way(1, 20, 512, 1, 8, beside=2), Way(1, 8, 512, 1, 4, beside=4), Way(1, 8, 256, 2, 8, beside=2),
    Way(8, 8, 512, sent=True), Way(8, 8, 256, tensor=True, half="float16", sent=True),
    Way(8, 1, 256, sent=True), Way(8, 1, 128, tensor=True, sent=True),
    Way(1, 8, 512, tensor=True, half="bfloat16"),
    Way(8, 8, 512, tensor=True, half="bfloat16"), Way(1, 1, 512, tensor=True, half="bfloat16"),
    Way(4, 1, 256, tensor=True, half="float16", sent=True),
    Way(1, 1, 512, tensor=True), Way(1, 1, 256, 2, tensor=True, half="float16"), Way(3, 1, 96, tensor=True),
    Way(1, 1, 512, tensor=True, half="float16"), Way(1, 8, 512, tensor=True, half="float16"),
]  # fmt: skip
OF_WAY = {"": "tf32", "float16": "fp16", "bfloat16": "bf16"}
MADE = nets.EVERY
_GUARD = 256

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module", autouse=True)
def _device() -> None:
    if reason := BACKEND.unavailable():
        pytest.skip(reason)


@cache
def _drawn(make: Callable[[int], Sequence[Params]], batch: int) -> nets.Drawn:
    return nets.drawn(make(batch))


@pytest.mark.parametrize("batch", [1, 3, 7, 130])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("make", MADE, ids=lambda made: made.__name__)
def test_a_net_gives_the_right_answer(make: Callable[[int], Sequence[Params]], way: Way, batch: int) -> None:
    cupy = import_cupy()
    digits = str(cupy.cuda.Device().compute_capability)
    capability = int(digits[:-1]), int(digits[-1])
    if way.ranks > 1 and capability < (9, 0):
        pytest.skip("this device has no clusters")
    if way.tensor and capability < (8, 0):
        pytest.skip("its tensor cores know no TF32")
    case = _drawn(make, batch)
    found = layers(case.steps, batch)
    lies = room(found, way, block_nbytes(capability, way))
    if lies is None:
        pytest.skip("not in this device's shared memory")
    kernel = one_kernel(found, way, lies, batch, 20)  # so few that blocks take several groups
    path = nvrtc.compile_rung(kernel.rung(), f"sm_{digits}", kernel.defines)
    function = kernel_of(cupy.RawModule(path=str(path)), kernel.rung(), kernel.stage)
    x, weights = cupy.asarray(case.x), cupy.asarray(kernel.packed(case.weights))
    answers = []
    for _ in range(2):
        y = cupy.full(case.expected.size + 2 * _GUARD, np.nan, np.float32)
        ends = (np.uint64(x.data.ptr), np.uint64(weights.data.ptr), np.uint64(y.data.ptr + 4 * _GUARD))
        function(kernel.stage.grid, kernel.stage.block, (*ends, np.int32(batch)), shared_mem=lies.nbytes)
        back = cupy.asnumpy(y)
        assert np.isnan(back[:_GUARD]).all()
        assert np.isnan(back[-_GUARD:]).all()
        answers.append(back[_GUARD:-_GUARD])
    assert answers[0].tobytes() == answers[1].tobytes()
    error = answers[0] - case.expected.reshape(-1)
    bound = PRECISIONS[OF_WAY[way.half] if way.tensor else "fp32"].bound
    assert np.linalg.norm(error) <= bound * np.linalg.norm(case.expected)


@pytest.mark.parametrize(
    "way", [Way(1, 1, 96), Way(4, 1, 64), Way(1, 8, 256, 2), Way(1, 8, 256, 2, tensor=True)], ids=str
)
def test_what_keeps_clock_stamps_gives_the_same_bits_and_accounts_for_each_block_s_life(way: Way) -> None:
    cupy, batch = import_cupy(), 130
    digits = str(cupy.cuda.Device().compute_capability)
    capability = int(digits[:-1]), int(digits[-1])
    if way.ranks > 1 and capability < (9, 0):
        pytest.skip("this device has no clusters")
    case = _drawn(MADE[0], batch)
    found = layers(case.steps, batch)
    lies = room(found, way, block_nbytes(capability, way))
    assert lies is not None
    kernel = one_kernel(found, way, lies, batch, 20)
    x, weights = cupy.asarray(case.x), cupy.asarray(kernel.packed(case.weights))
    answers = []
    for defines in (kernel.defines, kernel.stamped()):
        path = nvrtc.compile_rung(kernel.rung(), f"sm_{digits}", defines)
        module = cupy.RawModule(path=str(path))
        function = kernel_of(module, kernel.rung(), kernel.stage)
        y = cupy.full(case.expected.size, np.nan, np.float32)
        ends = tuple(np.uint64(array.data.ptr) for array in (x, weights, y))
        function(kernel.stage.grid, kernel.stage.block, (*ends, np.int32(batch)), shared_mem=lies.nbytes)
        answers.append(cupy.asnumpy(y).tobytes())
    assert answers[0] == answers[1]
    held = module.get_global("stamps")
    stamps = np.empty(kernel.stamps_shape, np.int64)
    cupy.cuda.runtime.memcpyAsync(stamps.ctypes.data, int(held.ptr), stamps.nbytes, 2, 0)
    cupy.cuda.Device().synchronize()
    cycles, lives_ns = stamps[:, :-2].sum(axis=1), stamps[:, -1] - stamps[:, -2]
    assert (stamps[:, :-2] >= 0).all()
    gigahertz = cycles.sum() / lives_ns.sum()  # a multiprocessor's clock
    assert 0.2 < gigahertz < 5
