"""Weights fetched ahead of their steps: how much, from where, and only where that makes a pass faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backend import Options
from engine.cuda import session as cuda_session
from engine.cuda.replays import ahead
from engine.cuda.session import EngineCudaSession
from engine.machine import driver as cuda_driver
from kernels import nvrtc
from tests.engine.backends.nets import small_net
from tests.engine.fake_cupy import FakeCupy, Launched

pytestmark = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))


@given(
    st.lists(st.integers(1, 1 << 26), max_size=8).map(
        lambda sizes: [(256 * i, n) for i, n in enumerate(sizes)]
    ),
    st.integers(0, 1 << 26),
)
def test_no_more_is_fetched_than_asked_for_and_first_things_first(
    ranges: list[ahead.Range], nbytes: int
) -> None:
    rows = ahead.rows(ranges, nbytes)
    assert [(at, size) for at, size, _ in rows] == ranges[: len(rows)]
    whole = [size for _, size, part in rows if part == ahead.STRIDE]
    in_part = [(size, part) for _, size, part in rows if part < ahead.STRIDE]
    assert len(in_part) <= 1
    assert (
        sum(whole) + sum(-(-size // ahead.STRIDE) * part for size, part in in_part) <= nbytes + ahead.STRIDE
    )
    assert all(part % 16 == 0 for _, part in in_part)
    assert rows[len(whole) :] == [row for row in rows if row[2] < ahead.STRIDE], "in part is the last alone"


def test_what_is_tried_is_less_than_the_cache_and_than_all_weights() -> None:
    tried = list(ahead.worth([(0, 100 << 20)], 50 << 20))
    assert {how.nbytes < 50 << 20 for how in tried} == {True}
    assert len(set(tried)) == len(tried) == 18
    assert not list(ahead.worth([(0, 1 << 20)], 50 << 20)), "so few bytes lie in the cache anyway"


def gains(saved_us: float) -> Callable[[Sequence[Launched], int], float]:
    """Kernels of a pass in front of which weights are fetched take so much less."""

    def cost(launches: Sequence[Launched], index: int) -> float:
        if launches[index].function == ahead.FUNCTION:
            return 1.0
        fetched = any(one.function == ahead.FUNCTION for one in list(launches)[:index])
        return 20.0 - saved_us * fetched

    return cost


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[FakeCupy], EngineCudaSession]:
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(cuda_driver, "device", lambda: cuda_driver.CudaDevice("a GPU", (9, 0)))
    monkeypatch.setattr(ahead, "LEAST_NBYTES", 0)
    monkeypatch.setattr(ahead, "worth", lambda *_: [ahead.Fetched(nbytes=512), ahead.Fetched(nbytes=1024)])

    def prepare(cupy: FakeCupy, **options: bool) -> EngineCudaSession:
        monkeypatch.setattr(cuda_session, "import_cupy", lambda: cupy)
        return EngineCudaSession(small_net(), 2, "fp32", Options(one_kernel=False, early=False, **options))

    return prepare


def functions(cupy: FakeCupy, session: EngineCudaSession) -> list[str]:
    cupy.ran.clear()
    session.run()
    session.synchronize()
    return [launched.function for launched in cupy.ran]


def test_weights_are_fetched_where_a_pass_is_faster_for_it_and_that_is_kept(
    prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy = FakeCupy(cost_us=gains(5.0))
    session = prepared(cupy)
    own = [name for _, name in session.launch_order()]
    assert functions(cupy, session) == [ahead.FUNCTION, *own]
    assert "MiB of weights" in session.facts["ahead"]
    assert session.time_runs(3) > 0
    session.close()
    monkeypatch.setattr(ahead.overlap, "beside", lambda *_: pytest.fail("timed again"))
    again = prepared(cupy)
    assert functions(cupy, again) == [ahead.FUNCTION, *own]
    assert functions(cupy, prepared(cupy, ahead=False)) == own
    assert functions(cupy, prepared(cupy, tuned=False)) == own


def test_nothing_is_fetched_where_that_gains_nothing_and_that_is_kept(
    prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy = FakeCupy(cost_us=gains(0.0))
    session = prepared(cupy)
    assert ahead.FUNCTION not in functions(cupy, session)
    assert "ahead" not in session.facts
    monkeypatch.setattr(ahead.overlap, "beside", lambda *_: pytest.fail("timed again"))
    assert ahead.FUNCTION not in functions(cupy, prepared(cupy))


def test_a_way_that_cannot_be_captured_is_not_taken(prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = FakeCupy(cost_us=gains(5.0))
    monkeypatch.setattr(ahead.Ahead, "with_it", lambda self, calls, ranges, how: [Unjoined(), *calls])
    session = prepared(cupy)
    assert ahead.FUNCTION not in functions(cupy, session)
    assert session.facts["cuda_graph"] == "yes"
    image = np.ones((2, 3, 12, 12), np.float32)
    session.bind({"x": image})
    session.run()
    assert session.fetch()["y"].shape == (2, 5)


class Unjoined:
    def start(self) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")
