"""How parameters become grids, blocks and scalars; none of it needs a GPU or a compiler."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import arguments, launch, registry
from kernels.errors import KernelError
from kernels.estimates import tiles
from kernels.launch import products, sliced
from kernels.ops import ITEMSIZE, OPS, Params, code, codes
from kernels.ops._axes import merge_axes
from kernels.ops.attention import Attention
from kernels.ops.binary import Binary
from kernels.ops.cast import Cast
from kernels.ops.compare import Compare
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d
from kernels.ops.conv_pool import ConvPool
from kernels.ops.conv_transpose import ConvTranspose
from kernels.ops.gather import Gather
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.lrn_pool import LrnPool
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.normalize import Normalize
from kernels.ops.pad import Pad
from kernels.ops.pool import Pool
from kernels.ops.pool_index import PoolIndex
from kernels.ops.qadd import QAdd
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.ops.quantize import Quantize
from kernels.ops.reduce import Reduce
from kernels.ops.resize import Resize
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from kernels.ops.where import Where
from tests.kernels import drawn_sequences

RUNGS = [rung for op in OPS for rung in registry.rungs("cuda", op) if not rung.language]
EXAMPLES: dict[str, Params] = {
    "conv": Conv(2, 4, 9, 9, 6, 3, 3, 7, 7, group=2, bias=True),
    "gemm": Gemm(3, 5, 7, trans_b=True),
    "pool": Pool("max", 1, 2, 4, 4, 2, 2, 2, 2, 2, 2),
    "lrn": Lrn(2, 3, 4, 5),
    "lrn_pool": LrnPool(5, "max", 2, 3, 8, 9, 3, 3, 3, 4, 2, 2),
    "conv_pool": ConvPool(
        Conv(2, 4, 9, 9, 6, 3, 3, 7, 7, group=2, bias=True),
        Pool("max", 2, 6, 7, 7, 2, 2, 3, 3, 2, 2),
    ),
    "conv_transpose": ConvTranspose(2, 4, 3, 3, 6, 3, 3, 7, 7, 2, 2, group=2, bias=True),
    "conv3d": Conv3d(2, 4, (4, 5, 6), 6, (2, 3, 2), (3, 3, 5), group=2, bias=True),
    "pool_index": PoolIndex(Pool("max", 1, 2, 4, 4, 2, 2, 2, 2, 2, 2)),
    "softmax": Softmax(2, 3, 4),
    "unary": Unary("relu", 7),
    "binary": Binary("add", (2, 3), (3, 1), (0, 1)),
    "compare": Compare("less", (2, 3), (3, 1), (0, 1)),
    "where": Where((2, 3), (3, 1), (0, 1), (1, 0)),
    "concat": Concat(2, (3, 4)),
    "multiply_add": MultiplyAdd((2, 3), (3, 1), (0, 1), (1, 0)),
    "transpose": Transpose((2, 3), (1, 0)),
    "pad": Pad((2, 3), (0, 1), (1, 0)),
    "cast": Cast(3, "int64", "float32"),
    "resize": Resize(2, 3, 4, 6, 8, 2.0, 2.0, mode="linear"),
    "reduce": Reduce("mean", 2, 3, 4),
    "quantize": Quantize(2, 3, 4, "int8"),
    "qadd": QAdd(7, 0.5, 3, 0.25, -4, 0.125, 5, other="int8"),
    "qconv": QConv(Conv(2, 4, 9, 9, 6, 3, 3, 7, 7, group=2), to="uint8", shifted=True),
    "qgemm": QGemm(Gemm(3, 5, 7, trans_b=True), weight_zeros=5),
    "gather": Gather(2, 3, 4, 5),
    "normalize": Normalize(6, 20, 5, 3, affine=True),
    **drawn_sequences.PLAIN,
    "attention": Attention(2, 4, 5, 7, 8, 8, 2, mask=(2, 1, 5, 7), latest=0),
}


def _parameters(rung: registry.Rung, function: str = "") -> list[str]:
    text = "\n".join([rung.source, *(header.text for header in registry.headers(rung))])
    kernels = text[text.index('extern "C"') :]
    found = re.search(rf"\b{function or rung.op}\((.*?)\)\s*\{{", kernels, re.S)
    assert found
    # A struct may be a constant of the grid, and be called otherwise: it is passed alike.
    told = re.sub(r"const (?:__grid_constant__ )?(\w+Params) \w+", r"const \1 p", found[1])
    told = re.sub(r"\b(?:element|unit)\b", "float", told)  # of whichever type: the launch compiles it in
    return [" ".join(part.split()) for part in told.split(",")]


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.label.replace(" ", "-"))
def test_a_kernel_takes_its_pointers_and_the_struct_of_its_operator(rung: registry.Rung) -> None:
    how = launch.launch(EXAMPLES[rung.op], rung)
    declared = _parameters(rung)
    pointers = OPS[rung.op].most_inputs + 1 + (how.workspace_nbytes is not None)
    assert all("*" in part or "cudaTextureObject_t" in part for part in declared[:pointers])
    assert declared[pointers:] == [arguments.parameter(OPS[rung.op])]
    *addresses, struct = how.arguments([1], 2, 3, rung)
    assert len(addresses) == pointers
    assert arguments.unpacked(rung.op, struct.tobytes()) == [value.item() for value in how.scalars]


def test_every_operator_has_a_plain_kernel() -> None:
    assert {rung.op for rung in RUNGS if rung.number == 1} == set(OPS)


@pytest.mark.parametrize("op", list(OPS))
def test_rungs_of_an_operator_take_the_same_parameters(op: str) -> None:
    taken = [_parameters(rung) for rung in RUNGS if rung.op == op]
    # A texture stands in its input's place.
    texture, pointer = "const cudaTextureObject_t ", "const float* __restrict__ "
    taken = [[part.replace(texture, pointer) for part in parts if "workspace" not in part] for parts in taken]
    assert len(set(map(tuple, taken))) == 1


@pytest.mark.parametrize("rung", [r for r in RUNGS if r.launch.endswith("_split")], ids=lambda r: r.op)
def test_a_sum_in_parts_has_room_and_a_second_stage(
    rung: registry.Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    tile = next(iter(launch.TILES[rung.launch]))
    monkeypatch.setattr(products, "fit", lambda *_: (tile, 5))
    how = launch.launch(EXAMPLES[rung.op], rung)
    outputs = 3 * 5 if rung.op == "gemm" else 2 * 6 * 7 * 7
    assert how.workspace_nbytes == 5 * 4 * outputs
    first, second = how.stages(rung.op)
    assert first.function == rung.op
    assert second.grid[0] * second.block[0] >= outputs
    assert _parameters(rung, second.function) == _parameters(rung)
    given = how.arguments([1, 2], 3, 4, rung)
    assert [int(v) for v in given[:5]] == [1, 2, 0, 3, 4], "an absent bias is a null pointer"
    monkeypatch.setattr(products, "fit", lambda *_: (tile, 1))
    alone = launch.launch(EXAMPLES[rung.op], rung)
    assert len(alone.stages(rung.op)) == 1
    assert int(alone.arguments([1, 2], 3, 4, rung)[4]) == 0


def test_a_sliced_sum_fills_the_device_and_fits_its_weights_into_whole_tiles() -> None:
    rung = registry.find("cuda", "gemm", "sliced_sum")
    product = Gemm(100, 128, 7200, trans_b=True, bias=True)
    how = launch.launch(product, rung)
    assert how.grid[0] * how.grid[1] > 100
    assert how.workspace_nbytes == 4 * how.grid[1] * 100 * 128
    assert _parameters(rung, "gemm_reduce") == _parameters(rung)
    weights = np.random.default_rng(1).standard_normal((128, 7200)).astype(np.float32)
    for b, trans_b in ((weights, True), (weights.T, False)):
        packed = launch.launch(replace(product, trans_b=trans_b), rung).packed[1](b[None])
        assert packed.shape[0] % 64 == 0
        assert packed.shape[1] % 16 == 0
        np.testing.assert_array_equal(packed[:128, :7200], weights)
        assert not packed[:, 7200:].any()
    assert "k" in str(rung.refusal(replace(product, k=7202)))
    tile, parts = sliced.fit(128, 4096, 4096)
    assert (tile.m, tile.n, parts) == (64, 64, 1), "many outputs need no parts"


def test_codes_cover_every_word_of_the_parameters() -> None:
    known = codes()
    assert known["ACTIVATION_NONE"] == code("ACTIVATION", None) == 0
    assert len({v for k, v in known.items() if k.startswith("DTYPE_")}) == len(ITEMSIZE)
    assert code("PAD", "edge") == known["PAD_EDGE"]


@given(st.data())
def test_merged_axes_walk_the_same_elements(data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    strides = [data.draw(st.sampled_from([0, math.prod(dims[i + 1 :])])) for i in range(len(dims))]
    other = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    merged, (a, b) = merge_axes(dims, (strides, other))

    def offsets(sizes: list[int], steps: list[int]) -> list[int]:
        places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), int)
        return (np.asarray(steps, int)[:, None] * places).sum(axis=0).tolist()

    assert offsets(merged, a) == offsets(dims, strides)
    assert offsets(merged, b) == offsets(dims, other)
    assert 1 not in merged


@given(st.integers(1, 5000), st.integers(1, 10**7), st.integers(1, 64))
def test_a_fitted_tile_is_never_far_too_large(m: int, n: int, batch: int) -> None:
    for choices in launch.TILES.values():
        tile, parts = tiles.fit(choices, m, n, 300, batch, tiles.PARTS)
        assert tile in choices
        assert tile.m <= 8 * max(m, min(t.m for t in choices))
        assert parts == 1 or 4 * parts * m * n * batch <= 64 << 20


def test_a_long_sum_of_few_outputs_is_cut_and_a_large_product_is_not() -> None:
    _, few = tiles.fit(tiles.LARGE_GEMM_TILES, 16, 4096, 9216, 1, tiles.PARTS)
    assert few > 1
    tile, many = tiles.fit(tiles.LARGE_GEMM_TILES, 4096, 4096, 4096, 1, tiles.PARTS)
    assert (tile.m, tile.n, many) == (128, 128, 1)


def test_constant_weights_are_copied_before_and_refused_beyond_64_kb() -> None:
    rung = registry.find("cuda", "conv", "constant_weights")
    small = Conv(2, 4, 9, 9, 6, 3, 3, 7, 7, group=2)
    assert launch.launch(small, rung).constant == ("filters", 1, 4 * 6 * 2 * 9)
    large = replace(small, c=384, m=384)
    assert "takes weights up to 16384, not 663552" in str(rung.refusal(large))


def test_a_window_larger_than_shared_memory_is_refused_in_words() -> None:
    wide = Conv(1, 1, 300, 300, 1, 150, 150, 151, 151)
    with pytest.raises(KernelError, match="keeps a window in 48 KB of shared memory"):
        launch.launch(wide, registry.find("cuda", "conv", "shared_image"))


def test_grids_stay_within_what_cuda_launches() -> None:
    rung = registry.find("cuda", "gemm", 2)
    how = launch.launch(Gemm(5, 6, 7, batch=10**6, stride_a=35, stride_b=42), rung)
    assert how.grid[2] == 65535
    big = launch.launch(Unary("relu", 2**45), registry.find("cuda", "unary", 1))
    assert big.grid[0] * big.block[0] < 2**31
    with pytest.raises(KernelError, match="32 bits"):
        launch.launch(replace(EXAMPLES["conv"], n=2**26), registry.find("cuda", "conv", "register_tiles"))
    wide = Conv(1, 70_000, 3, 3, 70_000, 3, 3, 1, 1, group=70_000)
    with pytest.raises(KernelError, match="more than CUDA launches"):
        launch.launch(wide, registry.find("cuda", "conv", "shared_tiles"))


def test_too_many_axes_are_refused_in_words() -> None:
    shape = (2,) * 8
    with pytest.raises(KernelError, match="8 axes after merging"):
        launch.launch(Transpose(shape, tuple(range(7, -1, -1))), registry.find("cuda", "transpose", 1))


def test_an_unknown_launch_shape_names_the_file(tmp_path: Path) -> None:
    text = '/*\nop = "unary"\nrung = 9\nname = "x"\nidea = "x"\nlaunch = "spiral"\n*/\n'
    (tmp_path / "09_x.cu").write_text(text)
    rung = registry.find("cuda", "unary", 9, [tmp_path])
    with pytest.raises(KernelError, match=r"09_x\.cu: no launch shape 'spiral'"):
        launch.launch(EXAMPLES["unary"], rung)
