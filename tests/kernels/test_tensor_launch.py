"""How products on tensor cores are launched: tiles, parts, what a header may ask of the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import launch, registry
from kernels.errors import KernelError
from kernels.estimates import tensor_tiles
from kernels.launch import tensor
from kernels.ops import OPS
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.precision import NAMES

TENSOR = [rung for op in OPS for rung in registry.rungs("cuda", op) if tensor.tiles(rung)]
ALONE = [rung for rung in TENSOR if len(rung.reads) == 1]  # with no stage in front
CONV = Conv(2, 64, 9, 9, 6, 3, 3, 7, 7, group=2, bias=True)
GEMM = Gemm(33, 50, 400, trans_b=True)


@pytest.mark.parametrize("rung", ALONE, ids=lambda rung: rung.label.replace(" ", "-"))
def test_a_sum_in_parts_has_room_and_a_second_stage(
    rung: registry.Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = CONV if rung.op == "conv" else GEMM
    outputs = 2 * 6 * 49 if rung.op == "conv" else 33 * 50
    tile = tensor.tiles(rung)[-1]
    monkeypatch.setattr(tensor_tiles, "fit", lambda *_: (tile, 3))
    how = launch.launch(given, rung)
    assert how.workspace_nbytes == 3 * 4 * outputs
    first, second = how.stages(rung.op)
    assert (first.function, second.function) == (rung.op, f"{rung.op}_reduce")
    assert second.grid[0] * second.block[0] >= outputs
    assert first.grid[1] * first.grid[2] == 3 * (2 if rung.op == "conv" else 1)
    assert how.defines["PARTS"] == 3
    monkeypatch.setattr(tensor_tiles, "fit", lambda *_: (tile, 1))
    alone = launch.launch(given, rung)
    assert len(alone.stages(rung.op)) == 1
    assert int(alone.arguments([1, 2], 3, 4, rung)[4]) == 0


@given(st.integers(1, 5000), st.integers(1, 10**6), st.integers(1, 600), st.integers(1, 8))
def test_a_fitted_tile_wastes_little_and_its_parts_have_work(
    columns: int, rows: int, slabs: int, batch: int
) -> None:
    for tiles in (tensor_tiles.CONV_TILES, tensor_tiles.SPLIT_GEMM_TILES):
        for precision in ("tf32", "fp32-tc", "fp16"):
            tile, parts = tensor_tiles.fit(tiles, precision, rows, columns, slabs, batch)
            assert tile in tiles
            assert tile.columns <= 8 * max(columns, min(t.columns for t in tiles))
            assert parts == 1 or slabs >= 2 * parts
            assert parts == 1 or 4 * parts * rows * columns * batch <= 64 << 20


def test_a_long_sum_of_few_outputs_is_cut_and_a_large_product_is_not() -> None:
    _, few = tensor_tiles.fit(tensor_tiles.GEMM_TILES, "tf32", 16, 4096, 576, 1)
    assert few > 1
    tile, one = tensor_tiles.fit(tensor_tiles.GEMM_TILES, "tf32", 8192, 8192, 512, 1)
    assert (tile.rows * tile.columns, one) == (128 * 128, 1)


def test_few_rows_of_a_product_are_left_to_float32() -> None:
    rung = registry.find("cuda", "gemm", "tensor_tf32")
    assert "takes m from 9 up, not 8" in str(rung.refusal(replace(GEMM, m=8)))
    assert rung.refusal(replace(GEMM, m=9)) is None
    assert registry.default("cuda", replace(GEMM, m=8), (9, 0), "tf32").precision == "fp32"
    assert registry.default("cuda", GEMM, (9, 0), "tf32") == rung


def test_a_device_without_the_instructions_falls_back_to_float32() -> None:
    for precision in NAMES[1:]:
        assert registry.default("cuda", CONV, (7, 5), precision).precision == "fp32"
        assert registry.default("cuda", CONV, (8, 0), precision).precision == precision
        assert registry.default("cuda", CONV, (8, 0), precision, weights_known=False).precision == "fp32"


def test_what_32_bits_cannot_count_is_refused_in_words() -> None:
    with pytest.raises(KernelError, match="32 bits"):
        launch.launch(replace(CONV, n=2**27), registry.find("cuda", "conv", "tensor_fp16"))
    with pytest.raises(KernelError, match="32 bits"):
        launch.launch(replace(GEMM, m=2**31 - 1), registry.find("cuda", "gemm", "tensor_fp16"))


def test_few_columns_are_streamed_by_narrower_blocks_with_as_many_bytes_under_way() -> None:
    rung = registry.find("cuda", "gemm", "streamed_scaled")
    wide = launch.launch(Gemm(8, 4096, 9216, trans_b=True), rung)
    few = launch.launch(Gemm(8, 1000, 4096, trans_b=True), rung)
    assert (wide.grid[0], wide.defines["TILE_COLUMNS"], wide.defines["AHEAD"]) == (128, 32, 2)
    assert (few.grid[0], few.defines["TILE_COLUMNS"], few.defines["AHEAD"]) == (63, 16, 4)
    odd = launch.launch(Gemm(8, 1000, 4099, trans_b=True), rung)
    assert (wide.defines["VECTOR"], odd.defines["VECTOR"]) == (4, 1)
    longer = registry.find("cuda", "gemm", "streamed_24_bits")
    ahead = [launch.launch(Gemm(m, 4096, 9216, trans_b=True), longer).defines["AHEAD"] for m in (8, 16)]
    assert ahead == [2, 1], "registers hold no more"
