"""A net in one kernel, compiled for the host, its threads in turns: its answers are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kernels.net.layers import layers
from kernels.net.plan import room
from kernels.net.records import Way
from kernels.net.text import one_kernel
from kernels.ops import Params
from kernels.precision import PRECISIONS
from tests.bench.judge import on_the_host
from tests.kernels import nets

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host"),
]
NBYTES = 227 << 10


@pytest.mark.sampled(20)
@pytest.mark.parametrize("make", nets.EVERY, ids=lambda made: made.__name__)
@pytest.mark.parametrize(
    ("way", "batch", "nbytes"),
    [
        (Way(1, 1, 96), 2, NBYTES),
        (Way(1, 4, 128), 7, NBYTES),
        (Way(1, 8, 64), 3, 150 << 10),
        (Way(4, 1, 64), 2, NBYTES),
        (Way(3, 4, 96), 5, NBYTES),
        (Way(1, 8, 96, 2, 8, beside=2), 11, NBYTES),
        (Way(1, 12, 128, 1, 4, beside=4), 130, NBYTES),
        (Way(2, 6, 64, beside=2), 7, NBYTES),
        (Way(8, 1, 64, sent=True), 3, NBYTES),
        (Way(3, 1, 96, sent=True), 1, NBYTES),
        (Way(8, 8, 64, sent=True), 11, NBYTES),
        (Way(4, 4, 96, sent=True), 7, NBYTES),
    ],
    ids=str,
)
def test_a_net_gives_the_right_answer(
    make: Callable[[int], Sequence[Params]], way: Way, batch: int, nbytes: int, hosted: on_the_host.Hosted
) -> None:
    _is_right(make, way, batch, nbytes, hosted, 1e-5)


@pytest.mark.sampled(48)
@pytest.mark.parametrize("make", nets.EVERY, ids=lambda made: made.__name__)
@pytest.mark.parametrize(
    ("way", "batch"),
    [
        (Way(1, 8, 64, tensor=True), 11),
        (Way(1, 16, 128, 2, tensor=True), 5),
        (Way(2, 8, 256, tensor=True), 3),
        (Way(2, 8, 64, 1, tensor=True), 19),
        (Way(8, 8, 128, tensor=True), 11),
        (Way(3, 16, 96, tensor=True), 17),
        (Way(1, 8, 64, tensor=True, half="float16"), 11),
        (Way(4, 16, 128, tensor=True, half="float16"), 17),
        (Way(1, 16, 256, tensor=True, half="float16"), 130),
        (Way(8, 8, 96, tensor=True, half="float16", sent=True), 7),
        (Way(1, 1, 96, tensor=True), 3),
        (Way(1, 1, 512, tensor=True, half="float16"), 7),
        (Way(1, 8, 64, tensor=True, half="bfloat16"), 11),
        (Way(8, 8, 96, tensor=True, half="bfloat16", sent=True), 7),
        (Way(1, 1, 512, tensor=True, half="bfloat16"), 3),
        (Way(8, 1, 64, tensor=True, sent=True), 1),
        (Way(4, 1, 256, tensor=True, half="float16", sent=True), 3),
        (Way(3, 1, 96, tensor=True, half="float16"), 2),
        (Way(1, 3, 64, tensor=True, half="float16"), 7),
        (Way(2, 4, 64, tensor=True), 7),
    ],
    ids=str,
)
def test_on_tensor_cores_it_is_as_right_as_their_precision(
    make: Callable[[int], Sequence[Params]], way: Way, batch: int, hosted: on_the_host.Hosted
) -> None:
    of = "bf16" if way.half == "bfloat16" else "tf32"
    _is_right(make, way, batch, NBYTES, hosted, PRECISIONS[of].bound)


def _is_right(
    make: Callable[[int], Sequence[Params]],
    way: Way,
    batch: int,
    nbytes: int,
    hosted: on_the_host.Hosted,
    bound: float,
) -> None:
    case = nets.drawn(make(batch))
    found = layers(case.steps, batch)
    lies = room(found, way, nbytes)
    assert lies is not None
    kernel = one_kernel(found, way, lies, batch, multiprocessors=1)
    module = hosted.RawModule(path=str(hosted.compiled(kernel.rung(), "sm_90", kernel.defines)))
    x, weights = hosted.asarray(case.x), hosted.asarray(kernel.packed(case.weights))
    guard = 64
    y = hosted.asarray(np.full(case.expected.size + guard, np.nan, np.float32))
    alone = way.ranks > 1 or way.images >= batch
    assert alone or kernel.stage.grid[0] < batch, "a block takes several groups"
    addresses = [np.uint64(int(array.data.ptr)) for array in (x, weights, y)]
    module.get_function("net")(kernel.stage.grid, kernel.stage.block, (*addresses, np.int32(batch)))
    got = y.on_host()
    assert np.isnan(got[case.expected.size :]).all(), "nothing is written beyond the images that there are"
    error = got[: case.expected.size] - case.expected.reshape(-1)
    assert np.linalg.norm(error) <= bound * np.linalg.norm(case.expected)


def test_a_pool_beside_its_convolution_is_part_of_it_whether_one_step_or_two() -> None:
    first, second = layers(nets.two_steps(3), 3)
    assert (first.step, second.step) == (0, 2)
    assert first.pool is not None
    assert second.pool is not None
    assert len(layers(nets.odd(3), 3)) == 7, "windows that overlap are a layer of their own"
