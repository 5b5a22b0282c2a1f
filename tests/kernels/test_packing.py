"""Weights as the tensor-core rungs read them: all in their places, rounded as on the device, zeros beside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels import launch, packing, registry
from kernels.ops import sized
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.precision import narrow
from kernels.registry import Rung
from tests.standin import unpacking
from tests.standin.code import Module

RUNGS = [rung for op in ("conv", "gemm") for rung in registry.rungs("cuda", op) if rung.packs]
TENSOR = [rung for rung in RUNGS if rung.precision != "fp32"]


def _place(channel: int, step: int, depth: int) -> tuple[int, int]:
    """Where a slab (channels, depth) keeps a channel's step: 16 channels at a time, by instruction, lane and
    register, as mma.sync takes its first operand; a lane has a quarter of the steps."""
    each = depth // 16  # values in a register
    lane = channel % 8 * 4 + step // (depth // 4)
    instruction, word, value = step // (2 * each) % 2, step // each % 2, step % each
    register = 2 * word + channel % 16 // 8
    flat = ((instruction * 32 + lane) * 4 + register) * each + value
    return channel // 16 * 16 + flat // depth, flat % depth


@pytest.mark.parametrize("precision", ["fp32-tc", "tf32", "fp16"])
@pytest.mark.parametrize("channels", [1, 6, 20, 48])
def test_every_tap_of_every_filter_has_its_place(precision: str, channels: int) -> None:
    group, outputs, kh, kw, tile = 2, 21, 3, 2, 32
    weight = np.arange(group * outputs * channels * kh * kw, dtype=np.float32) % 2039 + 1
    weight = weight.reshape(group * outputs, channels, kh, kw)
    run, depth = packing.run(precision, channels), packing.depth(precision)
    packed = packing.conv_slabs(weight, group, run, precision, tile)
    assert channels % run == 0
    assert packed.shape == (group, -(-channels * kh * kw // depth), tile, depth)
    rest = packed.astype(np.float32)
    for g in range(group):
        for o in range(outputs):
            tap = 0
            for first in range(0, channels, run):
                for r in range(kh):
                    for s in range(kw):
                        for channel in range(first, first + run):
                            slab, step = divmod(tap, depth)
                            place = (g, slab, *_place(o, step, depth))
                            assert rest[place] == weight[g * outputs + o, channel, r, s]
                            rest[place] = 0
                            tap += 1
    assert not rest.any(), "beside the weights everything is zero"


@pytest.mark.parametrize("trans_b", [False, True])
def test_both_layouts_of_b_pack_alike(trans_b: bool) -> None:
    rng = np.random.default_rng(4)
    b = rng.standard_normal((40, 7)).astype(np.float32)  # (k, n)
    given = (b.T if trans_b else b)[None]
    packed = packing.gemm_slabs(given, trans_b, "fp32-tc", 16)
    assert packed.shape == (1, 3, 16, 16)
    for column in range(7):
        for step in range(40):
            assert packed[(0, step // 16, *_place(column, step % 16, 16))] == b[step, column]
    assert np.count_nonzero(packed) == np.count_nonzero(b)
    rows = packing.half_rows(given, trans_b)
    assert (rows.dtype, rows.shape) == (np.dtype(np.float16), (7, 40))
    np.testing.assert_array_equal(rows, b.T.astype(np.float16))
    assert packing.half_rows(given[..., :39, :] if not trans_b else given[..., :39], trans_b).shape == (7, 40)


def test_tf32_is_rounded_to_nearest_with_ties_away_and_keeps_what_is_no_number() -> None:
    one, step = np.float32(1), np.float32(2.0**-10)
    rest = [3.0, np.nan, np.inf, -np.inf]
    given = [one + step / 2, -one - step / 2, one + step / 4, one + step * 3 / 4, *rest]
    wanted = [one + step, -one - step, one, one + step, *rest]
    np.testing.assert_array_equal(packing.tf32(np.array(given, np.float32)), np.array(wanted, np.float32))
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    rounded = packing.tf32(values)
    assert not (rounded.view(np.uint32) & 0x1FFF).any()
    assert np.abs(rounded / values - 1).max() <= 2.0**-11


def test_halves_of_finite_numbers_are_finite() -> None:
    given = np.array([3.4e38, -3.4e38, np.inf, np.nan, 1.00390625, 1.01171875, 1.0039064], np.float32)
    bits = packing.half(given, "bfloat16")
    assert bits.dtype == np.uint16, "as NumPy and CuPy know it"
    assert bits.tolist() == [0x7F7F, 0xFF7F, 0x7F80, 0x7FC0, 0x3F80, 0x3F82, 0x3F81], "ties go to even"
    halves = packing.half(np.array([1e6, -1e6, np.inf, np.nan, 0.1], np.float32))
    assert halves[:2].tolist() == [65504.0, -65504.0]
    assert np.isinf(halves[2])
    assert np.isnan(halves[3])


@pytest.mark.parametrize("rung", TENSOR, ids=lambda rung: rung.label.replace(" ", "-"))
def test_a_launch_packs_its_weights_and_equal_ones_alike(rung: registry.Rung) -> None:
    given = {
        "conv": Conv(2, 8, 9, 9, 24, 3, 3, 7, 7, bias=True),
        "gemm": Gemm(8 if "m_max" in rung.needs else 64, 40, 100, trans_b=True),
    }[rung.op]
    how = launch.launch(given, rung)
    assert set(how.packed) == {1}
    assert how.packed == launch.launch(given, rung).packed
    shape = (24, 8, 3, 3) if rung.op == "conv" else (1, 40, 100)
    packed = how.packed[1](np.ones(shape, np.float32))
    if "OPERANDS" in rung.defines or "SCALED" in rung.defines:
        return  # bytes of two types: below
    assert packed.dtype == packing.element(rung.precision)
    packed = packed.view(narrow(rung.precision) or packed.dtype)
    assert packed.astype(np.float64).sum() == np.prod(shape)
    assert packed.shape[-1] * packed.itemsize % packing.CHUNK_NBYTES == 0


def _wide_columns() -> np.ndarray:
    columns = np.random.default_rng(0).standard_normal((70, 100)).astype(np.float32)
    scales = 10.0 ** np.random.default_rng(1).integers(-30, 31, 70)
    columns = (columns * scales[:, None]).astype(np.float32)
    columns[3] = 0
    columns[4, 5] = np.inf  # says nothing of the others
    return columns


def _packed(name: str, columns: np.ndarray, trans_b: bool) -> np.ndarray:
    """Columns as a rung has them."""
    p = Gemm(3, 70, 100, trans_b=trans_b)
    rung = registry.find("cuda", "gemm", name)
    how = launch.launch(p, rung)
    held = how.packed[1](columns[None] if trans_b else columns.T[None])
    defines = {key: str(value) for key, value in {**rung.defines, **how.defines}.items()}
    module = Module(launch=rung.launch, defines=defines)
    assert held.nbytes == unpacking.nbytes(module, p)
    found = unpacking.unpacked(module, p, held)
    return (found if trans_b else found.swapaxes(-1, -2)).reshape(70, 100).astype(np.float64)


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("name", ["scaled_columns", "streamed_scaled"])
def test_a_scaled_half_has_the_bits_of_tf32_whatever_its_column_is_scaled_by(
    name: str, trans_b: bool
) -> None:
    columns = _wide_columns()
    columns[5, 1:] *= np.float32(2.0**-30)  # beside one that is far larger
    found = _packed(name, columns, trans_b)
    assert np.isinf(found[4, 5])
    found[4, 5] = columns[4, 5] = 0
    largest = np.abs(columns).max(axis=1, keepdims=True)
    assert (np.abs(found - columns) <= np.maximum(np.abs(columns) * 2.0**-11, largest * 2.0**-39)).all()
    rounded = packing.tf32(columns).astype(np.float64)
    usual = np.abs(columns) >= largest * 2.0**-28
    assert np.abs(found - columns)[usual].max() <= np.abs(rounded - columns)[usual].max()


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("name", ["columns_24_bits", "streamed_24_bits"])
def test_with_eight_bits_more_a_weight_is_right_to_nineteen(name: str, trans_b: bool) -> None:
    columns = _wide_columns()
    columns[5, 1:] *= np.float32(2.0**-30)
    columns[6, :4] = 2.0**14, -(2.0**15 - 2.0**-9), 1 - 2.0**-24, 2.0**-15  # carries, into the exponent too
    found = _packed(name, columns, trans_b)
    assert np.isinf(found[4, 5])
    found[4, 5] = columns[4, 5] = 0
    largest = np.abs(columns).max(axis=1, keepdims=True)
    assert (np.abs(found - columns) <= np.maximum(np.abs(columns) * 2.0**-19, largest * 2.0**-39)).all()
    for column, bits in zip(columns, found, strict=True):
        assert np.linalg.norm(bits - column) <= 1e-6 * np.linalg.norm(column.astype(np.float64))


def _adverse_columns() -> np.ndarray:
    """Columns of every range: narrow ones and such as no float16 holds, zeros, subnormal numbers, powers of
    two and their neighbours, what is not finite."""
    rng = np.random.default_rng(2)
    columns = rng.standard_normal((300, 96)) * 10.0 ** rng.integers(-44, 38, (300, 1))
    columns *= 2.0 ** (rng.random((300, 96)) * -rng.integers(0, 60, (300, 1)))
    columns[:60] = rng.standard_normal((60, 96)) * 10.0 ** rng.uniform(-30, 30, (60, 96))
    columns[60:120] = 2.0 ** rng.integers(-30, 16, (60, 96)) * (1 + rng.integers(-1, 2, (60, 96)) * 2.0**-23)
    columns[120:200] = rng.standard_normal((80, 96)) * 10.0 ** rng.integers(-6, 3, (80, 1))
    columns[::7, ::3] = 0
    columns[5], columns[6, 1:], columns[7] = 0, 0, np.finfo(np.float32).tiny / 64
    columns[8, 3], columns[9, 4], columns[10] = np.inf, np.nan, -np.inf
    with np.errstate(over="ignore"):
        return columns.astype(np.float32)


@pytest.mark.parametrize("extra", [0, 8], ids=["as TF32", "24 bits"])
def test_no_bit_of_a_weight_is_given_up_for_a_smaller_scale(extra: int) -> None:
    columns = _adverse_columns()[None]

    def kept(scale: np.ndarray, scaled: np.ndarray) -> np.ndarray:
        halves, more = packing.longer(scaled) if extra else (scaled.astype(np.float16), 0)
        bits = halves.astype(np.float32).view(np.uint32) | np.uint32(more) << 5
        return bits.view(np.float32).astype(np.float64) / scale[..., None].astype(np.float64)

    smaller = 0
    usual, least = packing.scaled_columns(columns, 96), packing.least_scaled_columns(columns, 96)
    for (some, most, whole), (here, scale, scaled) in zip(usual, least, strict=True):
        assert some == here
        np.testing.assert_array_equal(kept(scale, scaled), kept(most, whole.copy()))
        assert (scale <= most).all()
        assert (scale >= np.minimum(most, 1)).all()
        smaller += np.count_nonzero(scale < most)
    assert smaller > 60


def test_a_column_is_scaled_by_no_more_than_its_bits_ask_for() -> None:
    columns = np.random.default_rng(0).standard_normal((70, 100)).astype(np.float32)
    columns = np.where(np.abs(columns) < 1e-3, np.float32(0), columns)
    columns[1:] *= np.float32(2.0**-9)
    ((_, _, scaled), _) = packing.least_scaled_columns(columns[None], 100)
    np.testing.assert_array_equal(scaled[0, 0], columns[0])
    least = np.where(scaled[0] == 0, np.inf, np.abs(scaled[0])).min(axis=1)
    assert (least >= 2.0**-14).all()
    assert (least[1:] < 2.0**-13).all()


def test_a_number_is_the_sum_of_two_halves_whatever_its_column_is_scaled_by() -> None:
    columns = _wide_columns()
    packed = packing.gemm_split_slabs(columns, True, 64)
    halves, back = packed[: -4 * 128].view(np.float16), packed[-4 * 128 :].view(np.float32)
    slabs = packing.swizzled(halves.reshape(4, 128, 8, 8)).astype(np.float64)
    both = slabs.reshape(4, 128, 2, 32).sum(axis=2).swapaxes(0, 1).reshape(128, 128)
    found = both[:70, :100] * back[:70, None].astype(np.float64)
    assert not both[70:].any()
    assert np.isnan(found[4, 5])
    found[4, 5] = columns[4, 5] = 0
    largest = np.abs(columns).max(axis=1, keepdims=True)
    # 22 bits of each, and of what is far smaller than the largest 40 of the largest.
    assert (np.abs(found - columns) <= np.maximum(np.abs(columns) * 2.0**-22, largest * 2.0**-39)).all()


BYTES = [
    *(QConv(sized(Conv(1, c, 9, 9, 38, 3, 2, 0, 0, s, s, group=g))) for c, s, g in ((20, 1, 2), (3, 4, 1))),
    *(QGemm(Gemm(m, 21, 37, trans_b=trans_b)) for m, trans_b in ((1, True), (9, False))),
]
OF_BYTES = [rung for op in ("qconv", "qgemm") for rung in registry.rungs("cuda", op) if rung.packs]


@pytest.mark.parametrize("rung", OF_BYTES, ids=lambda rung: rung.label)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_stay_what_they_are_and_have_their_sums_behind_them(rung: Rung, dtype: str) -> None:
    for params in (replace(p, weight_dtype=dtype) for p in BYTES if p.op == rung.op):
        how, shape = launch.launch(params, rung), params.input_shapes[1]
        held = np.iinfo(dtype)
        weight = np.random.default_rng(0).integers(held.min, held.max + 1, shape).astype(dtype)
        packed = how.packed[1](weight)
        defines = {key: str(value) for key, value in {**rung.defines, **how.defines}.items()}
        module = Module(launch=rung.launch, defines=defines)
        assert packed.nbytes == unpacking.nbytes(module, params) == how.packed[1].nbytes(shape)
        np.testing.assert_array_equal(unpacking.unpacked(module, params, packed), weight)
        if "TILE_COLUMNS" not in defines:  # nothing stands behind rows
            continue
        of_conv = isinstance(params, QConv)
        group, terms = params.product.group if of_conv else 1, params.terms
        by_channel = weight if of_conv or params.product.trans_b else weight.swapaxes(1, 2)
        wide = -(-params.channels // group // int(defines["TILE_COLUMNS"])) * int(defines["TILE_COLUMNS"])
        # Of each channel in whole tiles a row of weights and a sum, and of all a row of ones.
        row = (packed.size - 4 * group * wide) // (group * wide + 1)
        assert set(np.unique(packed[-row:])) == {0, 1}
        assert packed[-row:].sum() == terms, "a one for each number of a sum"
        sums = packed[: packed.size - row][-4 * group * wide :].view(np.int32).reshape(group, wide)
        expected = by_channel.reshape(group, params.channels // group, -1).sum(axis=2, dtype=np.int64)
        np.testing.assert_array_equal(sums[:, : params.channels // group], expected)
