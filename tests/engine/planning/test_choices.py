"""A choice that was timed holds as long as nothing has changed that makes a rung's time."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from engine.planning import choices
from kernels import registry
from kernels.cache import Store
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm


@pytest.mark.parametrize("device", registry.SUFFIX)
def test_what_rungs_stand_on_is_there(device: str) -> None:
    for pattern in choices._SHARED[device]:
        assert list(registry.ROOT.glob(pattern)), pattern


@pytest.mark.parametrize("device", registry.SUFFIX)
def test_a_change_of_any_of_it_makes_another_choice(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "ROOT", tmp_path)
    digest = choices._shared.__wrapped__
    found = {digest(device)}
    for count, pattern in enumerate(choices._SHARED[device]):
        file = tmp_path / pattern.replace("*", "conv")
        file.parent.mkdir(parents=True, exist_ok=True)
        for text in ("as it was", "otherwise"):
            file.write_text(text, encoding="utf-8")
            found.add(digest(device))
        assert len(found) == 2 * count + 3, pattern


def test_how_an_operator_divides_is_part_of_a_choice_on_the_cpu() -> None:
    files = {path for pattern in choices._SHARED["cpu"] for path in registry.ROOT.glob(pattern)}
    assert registry.ROOT / "ops" / "conv.py" in files


@pytest.mark.parametrize(
    ("precision", "m", "among"),
    [
        ("tf32", 1, {"scaled_columns", "streamed_scaled"}),
        ("tf32", 8, {"scaled_columns", "streamed_scaled"}),
        ("tf32", 16, {"streamed_scaled", "wgmma_scaled"}),
        ("tf32", 64, {"wgmma_scaled"}),
        ("fp32-tc", 1, {"columns_24_bits", "streamed_24_bits"}),
        ("fp32-tc", 8, {"columns_24_bits", "streamed_24_bits"}),
    ],
)
def test_products_of_few_rows_are_timed_with_shorter_weights_too(
    precision: str, m: int, among: set[str]
) -> None:
    product = Gemm(m, 4096, 9216, trans_b=True, bias=True, activation="relu")
    rungs = choices.candidates("cuda", product, precision, weights_known=True, capability=(9, 0))
    # Early, so that no row of slow ones ends the search before them.
    assert among <= {rung.name for rung in rungs[:4]}
    assert rungs[0].name not in among, "of itself an engine takes what it did"
    none = choices.candidates("cuda", product, precision, weights_known=False, capability=(9, 0))
    assert among.isdisjoint(rung.name for rung in none)


def test_convolutions_are_timed_in_scaled_halves_too() -> None:
    conv = Conv(8, 96, 27, 27, 256, 5, 5, 27, 27, 1, 1, 2, 2, 2, 2, group=2, bias=True)
    rungs = choices.candidates("cuda", conv, "tf32", weights_known=True, capability=(9, 0))
    assert "wgmma_scaled" in [rung.name for rung in rungs[:6]]


def test_what_two_write_at_the_same_moment_is_kept_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has read the file before the other writes it, where nothing keeps them apart."""
    monkeypatch.setenv("KERNELSCOPE_CACHE", str(tmp_path))
    both = threading.Barrier(2)
    read = Store.read

    def slowly(self, *given):  # type: ignore[no-untyped-def]
        found = read(self, *given)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.2)
        return found

    monkeypatch.setattr(Store, "read", slowly)
    case = {"device": "a device", "params": "one case"}
    parts = [choices.Part[int](name, int) for name in ("one", "other")]
    threads = [threading.Thread(target=part.write, args=(case, {}, 7)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.setattr(Store, "read", read)
    assert [part.read(case, {}) for part in parts] == [7, 7]
