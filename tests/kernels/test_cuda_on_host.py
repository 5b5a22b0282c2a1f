"""Kernels that have many modes, and launches, compiled for the host, their threads in turns. Each rung runs
as PTX, too (tests/kernels/simulated).

So the texts are held to what they compute, launches to what they pass, and both to their own memory, on a
machine without a GPU; what only a device does (its caches, clusters, warps at once) is not seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from kernels import arguments, launch, registry
from kernels.header import OF_DEVICES, Define
from kernels.launch import direct
from kernels.ops import OPS
from kernels.registry import Rung
from tests.bench.judge import on_the_host
from tests.kernels import cuda_cases
from tests.kernels.cuda_cases import Case
from tests.kernels.hosted import MOST_FLOPS, answer, small

OURS = [rung for op in OPS for rung in registry.rungs("cuda", op)]
RUNGS = [rung for rung in OURS if not (rung.yardstick or rung.language)]
MOST_OUTPUTS = 4_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host"),
]

Answers = Callable[[Rung, Case], np.ndarray]


@pytest.fixture(scope="module")
def answers(hosted: on_the_host.Hosted) -> Answers:
    def of(rung: Rung, case: Case) -> np.ndarray:
        return answer(hosted, rung, case)

    return of


@pytest.mark.parametrize("op", ["cast", "resize", "conv_transpose", "conv3d", "pool_index"])
def test_every_mode_of_a_kernel_that_has_many_is_right(op: str, answers: Answers) -> None:
    rung = registry.find("cuda", op, 1)
    for case in cuda_cases.cases(op):
        assert cuda_cases.differs(answers(rung, case), case) == "", case.params.words


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "rung",  # no instruction of tensor cores is known to the host
    [r for r in RUNGS if r.op in ("qconv", "qgemm", "qadd") and r.needs.keys().isdisjoint(OF_DEVICES)],
    ids=lambda r: r.label,
)
def test_every_pair_of_types_is_right(rung: Rung, answers: Answers) -> None:
    for case in (c for c in small(rung.op, MOST_OUTPUTS) if cuda_cases.takes(rung, c.params)):
        assert cuda_cases.differs(answers(rung, case), case) == "", case.params.words


@pytest.mark.sampled(4, "long")
def test_every_way_of_sharing_out_planes_is_right(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several planes a block, tiles of one, outputs below each other, strides, several maps a channel."""
    rung = registry.find("cuda", "conv", "depthwise")
    of_all = [case for case in small("conv") if rung.refusal(case.params) is None]
    smallest = [case for case in of_all if case.params.flops <= MOST_FLOPS // 4]
    ways: list[Mapping[str, Define]] = []
    for enough, count in ((direct._ENOUGH_WARPS, 3), (0, None)):  # as if there were outputs enough
        monkeypatch.setattr(direct, "_ENOUGH_WARPS", enough)
        for case in smallest[:count]:
            ways.append(launch.launch(case.params, rung).defines)
            assert cuda_cases.differs(answers(rung, case), case) == "", case.params.words
    for many, few in (("PLANES", ""), ("DOWN", ""), ("OUT_W", "TILE_W"), ("OUT_H", "TILE_H"), ("M", "C")):
        found = {int(way[many]) > int(way[few] if few else 1) for way in ways}
        assert found == {True, False}, many


def test_a_struct_laid_out_otherwise_gives_a_wrong_answer(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung = registry.find("cuda", "softmax", 1)
    packed = arguments.packed

    def without_padding(op: str, scalars: object) -> np.ndarray:
        whole = packed(op, scalars)  # type: ignore[arg-type]
        close = np.dtype([(name, whole.dtype[name]) for name in whole.dtype.names or ()])
        return np.frombuffer(whole.astype(close).tobytes().ljust(whole.nbytes, b"\0"), whole.dtype)

    monkeypatch.setattr(arguments, "packed", without_padding)
    case = next(c for c in cuda_cases.cases("softmax") if c.params.words and c.expected.size <= MOST_OUTPUTS)
    assert cuda_cases.differs(answers(rung, case), case) != ""
