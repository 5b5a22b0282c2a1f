"""What a CPU is said to reach. (A GPU's probes: tests/bench/ladder/test_ladder.py.)"""

from __future__ import annotations

import numpy as np
import pytest

from engine import probe
from engine.cpu.steps import Blas
from kernels import numba_support
from kernels.cpu import rates
from kernels.errors import KernelError
from tests.bench import brief

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    brief.shorten_probes(probe, monkeypatch.setattr)
    monkeypatch.setattr(probe, "COPIED_NBYTES", 1 << 20)
    monkeypatch.setattr(probe.host, "last_level_cache_nbytes", lambda: 1 << 18)
    monkeypatch.setattr(probe, "MATRIX", 128)


here = pytest.mark.skipif(numba_support.unavailable() is not None, reason="Numba is not here")


@here
@pytest.mark.parametrize(("rows", "vectors"), rates.SHAPES)
def test_multiply_adds_are_done_and_counted(rows: int, vectors: int) -> None:
    call = rates.chains(rows, vectors, 3)
    call()
    sums = call.workspace[: rows * vectors * rates.LANES]
    assert np.all(sums == np.float32(0.5 + 0.5 * rates.DEPTH)), "each sum once over"
    assert not call.workspace[sums.size :].any()
    assert rates.operations(rows, vectors, 3) == 3 * 2 * sums.size * rates.DEPTH


def test_products_of_bytes_are_all_summed() -> None:
    call = rates.byte_chains(2)
    call()
    sums = call.workspace.view(np.int32)
    assert np.all(sums == rates.QUADS * (1 + 4 + 9 + 16))
    assert 2 * sums.size * rates.QUADS * 4 == rates.DOTS


def test_the_faster_of_two_ways_to_multiply_is_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A BLAS that does not know a processor reaches half of what it can, and kernels beyond its rate would be
    called faster than the machine can be."""
    monkeypatch.setattr(numba_support, "unavailable", lambda: None)
    monkeypatch.setattr(probe, "_chained", lambda threads: 1e18 * threads)
    reached = probe.cpu(2)
    assert reached.flops_per_s == 2e18
    assert reached.multiplied_by == "compiled multiply-adds in vector registers, 2 threads"
    monkeypatch.setattr(probe, "_chained", lambda _: 1.0)
    slow = probe.cpu(1)
    assert 1.0 < slow.flops_per_s < 1e18
    assert slow.multiplied_by.startswith(Blas().words)


def test_without_a_compiler_the_blas_is_asked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> float:
        raise KernelError("does not compile")

    monkeypatch.setattr(probe, "_chained", broken)
    assert probe.cpu(1).multiplied_by.startswith(Blas().words)
    monkeypatch.setattr(numba_support, "unavailable", lambda: "the package numba is not installed")
    monkeypatch.setattr(probe, "_chained", lambda _: 1e18)
    assert probe.cpu(1).multiplied_by.startswith(Blas().words)


@here
def test_threads_multiply_side_by_side() -> None:
    assert probe._chained(1) > 0
    assert probe._chained(2) > 0
