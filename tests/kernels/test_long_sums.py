"""Sums of many terms keep their digits: beside ONNX Runtime, on data that shows how a kernel adds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kernels import launch, numba_support, registry
from kernels.ops import Params
from kernels.registry import Rung
from tests import sampling
from tests.bench.judge import on_the_host
from tests.kernels import hosted, long_sums
from tests.kernels.cuda_cases import Case
from tests.kernels.long_sums import KINDS, LENGTHS, OPS, Inputs, held, measured

pytestmark = pytest.mark.slow

LONGEST = 9216  # on the host, where a GPU's threads take turns
MOST_FLOPS = 450_000  # there: some products of the longest


def _rungs(device: str, op: str) -> list[Rung]:
    found = [rung for rung in registry.rungs(device, op) if held(rung) and not rung.language]
    return [rung for rung in found if not (rung.compiled and numba_support.unavailable())]


def _beyond(rungs: Sequence[Rung], answer: long_sums.Answer, lengths: Sequence[int], seed: int) -> list[str]:
    """What is off by more than it may be, in words."""
    return [
        f"{rungs[0].op} {name}: {error:.1e} on {one.kind} {one.params.words}, {one.allowed:.1e} is allowed"
        for one in measured(rungs, answer, lengths, seed=seed, draws=1)
        for name, error in one.errors.items()
        if error > one.allowed
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", OPS)
def test_long_sums_on_the_cpu_are_as_exact_as_onnx_runtimes(op: str) -> None:
    seed = sampling.number(f"long sums of {op}")
    lengths = LENGTHS if sampling.whole() else random.Random(seed).sample(LENGTHS[:-1], 2)
    assert not _beyond(_rungs("cpu", op), long_sums.on_the_cpu, lengths, seed)


@pytest.mark.sampled(2)
@pytest.mark.skipif(on_the_host.COMPILER is None, reason="no compiler for the host")
@pytest.mark.parametrize("op", OPS)
def test_long_sums_of_cuda_kernels_are_as_exact(op: str, tmp_path: Path) -> None:
    """Compiled for the host, of as many multiplications as its threads manage in turns; however far off ONNX
    Runtime's are, which on some processors adds term after term."""
    seed = sampling.number(f"long sums of {op} on CUDA")
    drawn = random.Random(seed)
    rungs = _rungs("cuda", op)
    if not sampling.whole():
        rungs = drawn.sample(rungs, min(2, len(rungs)))
    host = on_the_host.Hosted(tmp_path, turns=True)

    def answer(rung: Rung, p: Params, inputs: Inputs) -> np.ndarray:
        return hosted.answer(host, rung, Case(p, inputs, np.empty(p.output_shape, np.float32)))

    wrong = []
    lengths = [n for n in LENGTHS if n <= LONGEST]
    for length in lengths if sampling.whole() else [drawn.choice(lengths)]:
        for p in long_sums.shapes(op, length):
            if p.flops <= MOST_FLOPS:
                wrong += [
                    (rung.label, kind, p.words, error)
                    for kind in KINDS[:2]
                    for rung in rungs
                    if long_sums.takes(rung, p, (9, 0)) and _runs_on_the_host(rung, p)
                    for one in [long_sums.case(p, kind, seed)]
                    if (error := one.error(answer(rung, p, one.inputs))) > long_sums.of_pieces(kind, length)
                ]
    assert not wrong


def _runs_on_the_host(rung: Rung, p: Params) -> bool:
    """Not where the blocks of a cluster read each other's sums."""
    return rung.launch != "gemm_cluster" or launch.launch(p, rung).defines["PARTS"] == 1
