"""Kernels of the corpus that cheat on a GPU, judged on the CPU: none of a sample is let through.
`python -m tests.bench.judge.simulated` takes all."""

from __future__ import annotations

import pytest

from kernels import numba_support, nvrtc
from tests.bench.judge import corpus, simulated
from tests.bench.judge.corpus import Cheat

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable())),
    pytest.mark.skipif(numba_support.unavailable() is not None, reason=str(numba_support.unavailable())),
]
PLANTED = [cheat for cheat in corpus.planted("cuda") if not cheat.rung.language]


@pytest.mark.sampled(86)
@pytest.mark.parametrize("cheat", PLANTED, ids=lambda cheat: cheat.name)
def test_a_cheat_is_not_let_through_without_a_gpu(cheat: Cheat) -> None:
    measured = simulated.judged(cheat)
    if (what := simulated.became(cheat, measured)) == simulated.NOT_RUN:
        pytest.skip(measured.reason)
    assert what != simulated.THROUGH
