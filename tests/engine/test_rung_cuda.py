"""A rung's session on the device: what it launches and how it is timed, with a stand-in for the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import rung_cuda
from engine.rung_cuda import CudaRungSession
from engine.rung_session import GUARD, input_shapes
from kernels import nvrtc, registry
from kernels.params import Gemm
from tests.engine.fake_cupy import FakeCupy

pytestmark = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
PRODUCT = Gemm(5, 7, 3000, trans_b=True)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CudaRungSession]:
    def prepare(cupy: FakeCupy, rung: str = "split_sum") -> CudaRungSession:
        monkeypatch.setattr(rung_cuda, "import_cupy", lambda: cupy)
        inputs = [np.ones(shape, np.float32) for shape in input_shapes(PRODUCT)]
        return CudaRungSession(registry.find("cuda", "gemm", rung), PRODUCT, inputs)

    return prepare


@pytest.mark.parametrize("broken", ["", "operation not permitted when stream is capturing"])
def test_as_many_launches_are_timed_as_were_asked_for(prepared, broken: str) -> None:
    cupy = FakeCupy(cost_us=lambda launches, i: 3.0, broken=broken)
    session = prepared(cupy)
    for count in (1, 5, 300, 5):
        cupy.ran.clear()
        assert session.time_runs(count) == pytest.approx(2 * count * 3_000)
        assert [launched.function for launched in cupy.ran] == ["gemm", "gemm_reduce"] * count
    cupy.ran.clear()
    assert session.time_runs(1, cold=True) == pytest.approx(6_000)
    with pytest.raises(ValueError, match="a cold run is timed on its own, not 2"):
        session.time_runs(2, cold=True)
    session.close()
    session.close()


def test_what_is_written_beside_the_answer_is_found(prepared) -> None:
    session = prepared(FakeCupy())
    session.poison(0xFF)
    session.run()
    assert np.isnan(session.output()).all(), "these kernels write nothing"
    assert session.strays() == ()
    places, arena = session._memory.layout.places, session._memory.arena.array
    offset, size = places["output"]
    arena[offset + size] = GUARD ^ 0xFF
    arena[places["input 1"][0] + 8] ^= 0xFF
    assert [stray.buffer for stray in session.strays()] == ["output", "input 1"]
    assert session.facts["compute_capability"] == "9.0"
