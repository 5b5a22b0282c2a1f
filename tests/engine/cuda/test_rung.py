"""A rung's session on the device: what it launches and how it is timed, with a stand-in for the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import rung_session
from engine.cuda import rung as rung_cuda
from engine.cuda.rung import CudaRungSession
from engine.cuda.runtime import ON_DEVICE
from engine.rung_rows import Rows
from engine.rung_session import GUARD
from kernels import launch, nvrtc, registry
from kernels.ops.gemm import Gemm
from tests.engine.fake_cupy import FakeCupy

pytestmark = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
PRODUCT = Gemm(5, 7, 3000, trans_b=True)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CudaRungSession]:
    def prepare(cupy: FakeCupy, rung: str = "split_sum") -> CudaRungSession:
        monkeypatch.setattr(rung_cuda, "import_cupy", lambda: cupy)
        inputs = [np.ones(shape, np.float32) for shape in PRODUCT.input_shapes]
        return CudaRungSession(registry.find("cuda", "gemm", rung), PRODUCT, inputs)

    return prepare


@pytest.mark.parametrize("broken", ["", "operation not permitted when stream is capturing"])
def test_as_many_launches_are_timed_as_were_asked_for(prepared, broken: str) -> None:
    cupy = FakeCupy(cost_us=lambda launches, i: 3.0, broken=broken)
    session = prepared(cupy)
    session.time_runs(1)
    assert session.stirring_ns == pytest.approx(3_000)
    for count in (1, 5, 300, 5):
        cupy.ran.clear()
        assert session.time_runs(count) == pytest.approx(2 * count * 3_000), "what stirs is taken off"
        ran = [launched.function for launched in cupy.ran]
        assert ran == ["stir", "gemm", "gemm_reduce"] * count + ["stir"]
    cupy.ran.clear()
    assert session.time_runs(1, cold=True) == pytest.approx(6_000)
    assert [launched.function for launched in cupy.ran] == ["stir", "gemm", "gemm_reduce", "stir"]
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
    places, arena = session._layout.places, session._arena.array
    offset, size = places["output"]
    arena[offset + size] = GUARD ^ 0xFF
    arena[places["input 1"][0] + 8] ^= 0xFF
    assert [stray.buffer for stray in session.strays()] == ["output", "input 1"]
    assert session.facts["compute_capability"] == "9.0"


FEW = np.arange(3 * 3000, dtype=np.float32).reshape(3, 3000)
INDEX = np.array([0, 1, 2, 1, 1])


def repeating(monkeypatch, cupy: FakeCupy) -> tuple[CudaRungSession, list[tuple[int, int]]]:
    """A session of five rows that are three, and what was copied: (kind, bytes)."""
    copied: list[tuple[int, int]] = []
    copy = cupy.cuda.runtime.memcpyAsync

    def memcpy(to: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        copied.append((kind, nbytes))
        copy(to, source, nbytes, kind, stream)

    cupy.cuda.runtime.memcpyAsync = memcpy
    monkeypatch.setattr(rung_cuda, "import_cupy", lambda: cupy)
    inputs = [Rows(FEW, INDEX, (1, 5, 3000)), np.ones((1, 7, 3000), np.float32)]
    session = CudaRungSession(
        registry.find("cuda", "gemm", "split_sum"), Gemm(5, 7, 3000, trans_b=True), inputs
    )
    return session, copied


def test_rows_that_repeat_go_to_the_device_once_each(monkeypatch) -> None:
    session, copied = repeating(monkeypatch, FakeCupy())
    assert copied == [(1, 12_000)] * 3 + [(ON_DEVICE, 12_000)] * 2 + [(1, 84_000)]
    offset, size = session._layout.places["input 0"]
    held = session._arena.array[offset : offset + size].view(np.float32).reshape(5, 3000)
    assert np.array_equal(held, FEW[INDEX])
    copied.clear()
    session.bind({"input 0": Rows(FEW + 1, INDEX[::-1].copy(), (1, 5, 3000))})
    assert np.array_equal(held, FEW[INDEX[::-1]] + 1)
    assert [kind for kind, _ in copied] == [1, ON_DEVICE, 1, ON_DEVICE, 1]
    assert session.strays() == session.strays(whole=False) == ()


def test_rows_of_the_output_are_gathered_and_come_in_one_piece(monkeypatch) -> None:
    session, copied = repeating(monkeypatch, FakeCupy())
    offset, size = session._layout.places["output"]
    written = np.arange(35, dtype=np.float32)
    session._arena.array[offset : offset + size] = written.view(np.uint8)
    copied.clear()
    assert np.array_equal(session.output([0, 1, 4]), written.reshape(5, 7)[[0, 1, 4]])
    assert copied == [(ON_DEVICE, 56), (ON_DEVICE, 28), (2, 84)], "neighbours in one"
    assert np.array_equal(session.output(slice(2, 4)), written.reshape(5, 7)[2:4])
    assert np.array_equal(session.output(), written.reshape(1, 5, 7))
    monkeypatch.setattr(rung_cuda, "PIECE_NBYTES", 60)
    assert np.array_equal(session.output([4, 0, 1, 3]), written.reshape(5, 7)[[4, 0, 1, 3]])


def test_a_write_into_a_repeated_row_is_found_where_it_is(monkeypatch) -> None:
    session, _ = repeating(monkeypatch, FakeCupy())
    start = session._layout.places["input 0"][0]
    session._arena.array[start + 3 * 12_000 + 40 : start + 3 * 12_000 + 43] ^= 0xFF
    assert [(s.buffer, s.offset, s.nbytes) for s in session.strays()] == [("input 0", 36_040, 3)]
    monkeypatch.setattr(rung_session, "READ_NBYTES", 36_041)
    assert [(s.buffer, s.offset, s.nbytes) for s in session.strays()] == [("input 0", 36_040, 3)]
    monkeypatch.setattr(rung_session, "BLOCK_NBYTES", 16)
    assert () in [session.strays(whole=False) for _ in range(9)], "and may be missed where not all is"
    session._arena.array[start] ^= 0xFF
    assert session.strays(whole=False)[0].offset == 0


def test_a_weight_is_packed_once_for_the_sessions_that_ask_for_it_alike(monkeypatch) -> None:
    packs = []

    def double(array: np.ndarray, by: int) -> np.ndarray:
        packs.append(by)
        return array * by

    weights = [np.ones(9, np.float32) for _ in range(3)]
    pack, other = launch.Pack(double, (2,)), launch.Pack(double, (3,))
    assert rung_cuda.packed(pack, weights[0]) is rung_cuda.packed(launch.Pack(double, (2,)), weights[0])
    assert rung_cuda.packed(other, weights[0])[0] == 3
    assert rung_cuda.packed(pack, weights[1])[0] == 2
    assert packs == [2, 3, 2]
    monkeypatch.setattr(rung_cuda, "PACKED_NBYTES", 1)
    rung_cuda.packed(pack, weights[2])
    assert len(rung_cuda._packed) == 1
