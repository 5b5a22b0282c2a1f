"""Weights laid out for tensor cores, once, when a model is prepared; kernels/cuda/mma.cuh says how they lie.

The sum of a product is cut into slabs of SLAB_NBYTES a channel. Packed, a slab holds the steps of every
channel of a group, the channels filled up with zeros to whole tiles: what a block needs of a slab is one
contiguous stretch that begins on 16 bytes. Within a slab sixteen channels at a time lie as the lanes of a
warp read them: for the first and the second instruction, by lane, two words of channel g and two of g + 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from kernels.precision import narrow

SLAB_NBYTES = 64
WIDE_SLAB_NBYTES = 128  # of a channel, where a warpgroup multiplies
CHUNK_NBYTES = 16
FOURS = 4  # words of a quartet, of which each lane of four has one
_AT_ONCE = 64  # columns that are split at once
# As what arrays hold numbers of 16 bits. CuPy knows no bfloat16: of it they hold the bits.
_KEPT = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(np.uint16)}


def element(precision: str) -> np.dtype:
    """As what weights are kept where tensor cores of this precision read them."""
    return _KEPT.get(narrow(precision), np.dtype(np.float32))


def depth(precision: str) -> int:
    """Steps of the sum in a slab."""
    return SLAB_NBYTES // element(precision).itemsize


def run(precision: str, channels: int) -> int:
    """How many channels follow each other in the order of the taps of a convolution with so many a group: the
    more, the fewer times a kernel works out where a tap lies. A power of two that divides them, no more than
    a chunk holds."""
    most = CHUNK_NBYTES * depth(precision) // SLAB_NBYTES
    return max(count for count in (1, 2, 4, 8) if count <= most and channels % count == 0)


def conv_slabs(weight: np.ndarray, group: int, run: int, precision: str, tile: int) -> np.ndarray:
    """Filters (m, c // group, kh, kw) → (group, slabs, channels in tiles of `tile`, depth), taps numbered by
    runs of channels, then down and across the window, then within the run."""
    m, channels, kh, kw = weight.shape[-4:]
    taps = weight.reshape(group, m // group, channels // run, run, kh * kw).swapaxes(3, 4)
    return slabs(taps.reshape(group, m // group, -1), precision, tile)


def nhwc_slabs(weight: np.ndarray, group: int, fold: int, precision: str, tile: int) -> np.ndarray:
    """Filters (m, c // group, kh, kw) → (group, slabs, channels in tiles of `tile`, depth), taps
    numbered down and across the window, then by channels filled up with zeros to whole chunks. fold: so many
    rows and columns of the window are channels of one tap, as those of the pixels are."""
    return slabs(_nhwc_taps(weight, group, fold, precision), precision, tile)


def swizzled_slabs(weight: np.ndarray, group: int, fold: int, precision: str, tile: int) -> np.ndarray:
    """As `nhwc_slabs`, in slabs of twice the depth, each as a warpgroup reads it from shared memory
    (cuda/wgmma.cuh): chunk c of a channel lies at c ^ channel % 8."""
    return _wide_slabs(_nhwc_taps(weight, group, fold, precision), precision, tile)


def gemm_swizzled_slabs(b: np.ndarray, trans_b: bool, precision: str, tile: int) -> np.ndarray:
    """As `gemm_slabs`, in slabs as `swizzled_slabs` has them."""
    return _wide_slabs(gemm_columns(b, trans_b), precision, tile)


def byte_slabs(weight: np.ndarray, group: int, fold: int, tile: int, wide: bool) -> np.ndarray:
    """Filters of eight bits, as `nhwc_slabs` has them or, `wide`, as `swizzled_slabs` → bytes: (group, slabs,
    channels in tiles of `tile`, 64 or 128), each number as it is; behind them int32 (group, channels in whole
    tiles), the sum of each channel's weights; behind these (slabs, 64 or 128) what a sum of x is multiplied
    by, 1 where there is a weight and 0 where a chunk, a window or a slab is filled up."""
    ones = np.ones((1, *weight.shape[-3:]), np.float32)
    columns, there = (_taps_in_chunks(w, g, fold, CHUNK_NBYTES) for w, g in ((weight, group), (ones, 1)))
    return _byte_slabs(columns, there, tile, wide)


def gemm_byte_slabs(b: np.ndarray, trans_b: bool, tile: int, wide: bool) -> np.ndarray:
    """As `byte_slabs`, of the columns of a product."""
    columns = gemm_columns(b, trans_b)
    return _byte_slabs(columns, np.ones((1, 1, columns.shape[-1])), tile, wide)


def _byte_slabs(columns: np.ndarray, there: np.ndarray, tile: int, wide: bool) -> np.ndarray:
    each = WIDE_SLAB_NBYTES if wide else SLAB_NBYTES
    group, channels, steps = columns.shape
    sums = np.zeros((group, -(-channels // tile) * tile), np.int32)
    sums[:, :channels] = columns.sum(axis=2, dtype=np.int64)
    ones = np.zeros(-(-steps // each) * each, np.uint8)
    ones[:steps] = there.reshape(-1)
    whole = columns.astype(np.int16).astype(np.uint8)  # int8 by its bits
    if wide:
        return as_bytes(_swizzled(whole, each, tile), sums, ones)
    return as_bytes(in_slabs(whole, each, tile, np.uint8), sums, ones)


def split_slabs(weight: np.ndarray, group: int, fold: int, tile: int, operands: int = 2) -> np.ndarray:
    """As `swizzled_slabs` of sums of two float16 (`split`), of a slab of each channel the first half the big
    ones → bytes: (group, slabs, channels in tiles of `tile`, 64) float16, and behind them float32 (group,
    channels in whole tiles), what brings products of a channel back. operands: with one the big ones alone,
    which have as many bits as TF32."""
    return _split_slabs(_nhwc_taps(weight, group, fold, "fp16"), tile, operands)


def gemm_split_slabs(b: np.ndarray, trans_b: bool, tile: int, operands: int = 2) -> np.ndarray:
    """As `gemm_slabs`, in slabs as `split_slabs` has them."""
    return _split_slabs(gemm_columns(b, trans_b), tile, operands)


def row_slabs(weight: np.ndarray, stride: int, precision: str, tile: int) -> np.ndarray:
    """As `swizzled_slabs`, or `split_slabs` (fp32-tc), of one group in the order of `row_quartets`."""
    deep, values = row_depth(weight.shape[-3], stride, precision)
    columns = row_quartets(weight, deep, values)[None]
    if precision == "fp32-tc":
        return _split_slabs(columns, tile)
    return _wide_slabs(columns, precision, tile)


def row_depth(channels: int, stride: int, precision: str) -> tuple[int, int]:
    """How many channels a column of a row has where kernels read words of it (cuda/conv_rows.cuh), and how
    many values a word: of 16 bits two, so that a pixel begins on one at every multiple of the stride."""
    values = 1 if precision == "tf32" else 2
    return channels + (stride * channels % values), values


def row_quartets(weight: np.ndarray, deep: int, values: int) -> np.ndarray:
    """Filters (m, c, kh, kw) → (m, steps of the sum), words of `values` of them in fours, the channels of a
    column filled up with zeros to `deep`: of every row of the window the whole fours, then of the words that
    these leave over, one after the other, the same one of four rows, zeros where there are no four."""
    m, channels, kh, kw = weight.shape[-4:]
    run = -(-kw * deep // values)
    rows = np.zeros((m, kh, kw, deep), np.float32)
    rows[..., :channels] = weight.reshape(m, channels, kh, kw).transpose(0, 2, 3, 1)
    words = np.zeros((m, kh, run * values), np.float32)
    words[..., : kw * deep] = rows.reshape(m, kh, -1)
    words = words.reshape(m, kh, run, values)
    whole, tall = run // FOURS * FOURS, -(-kh // FOURS) * FOURS
    remainder = np.zeros((m, run - whole, tall, values), np.float32)
    remainder[:, :, :kh] = words[:, :, whole:].swapaxes(1, 2)
    return np.concatenate([words[:, :, :whole].reshape(m, -1), remainder.reshape(m, -1)], axis=1)


def strips(weight: np.ndarray, group: int, precision: str, tile: int) -> np.ndarray:
    """Filters (m, c // group, kh, kw) → (group, strips of 16 channels in whole tiles, steps of two chunks of
    channels, taps of the window, lanes of a warp, a chunk): as each lane of mma.sync takes its channel and
    the one 8 below, of two words of the step (cuda/conv_slices.cuh). Of fp32-tc bytes: each number two
    float16 (`split`), a warp's big chunks before its small ones, and behind them all float32 (group,
    channels in whole tiles), what brings products of a channel back."""
    m, channels, kh, kw = weight.shape[-4:]
    values = 1 if precision == "tf32" else 2  # of a word
    steps, wide = -(-channels // (8 * values)), -(-(m // group) // tile) * tile
    filled = np.zeros((group, wide, steps * 8 * values, kh * kw), np.float32)
    filled[:, : m // group, :channels] = weight.reshape(group, m // group, channels, kh * kw)
    if precision != "fp32-tc":
        return _in_strips(converted(filled, precision), values)
    scale = _powers(filled.reshape(group, wide, -1))
    both = [_in_strips(half, values) for half in split(filled * scale[..., None, None])]
    packed = np.stack(both, axis=-3)
    return np.concatenate([packed.reshape(-1).view(np.uint8), (1 / scale).reshape(-1).view(np.uint8)])


def _in_strips(filled: np.ndarray, values: int) -> np.ndarray:
    """(group, channels of y, channels of x, taps), whole strips and whole steps, as `strips` has them."""
    group, wide, channels, taps = filled.shape
    steps = channels // (8 * values)
    words = filled.reshape(group, wide // 16, 2, 8, steps, 2, 4, values, taps)
    lanes = words.transpose(0, 1, 4, 8, 3, 6, 5, 2, 7)  # a register: word of the two, then channel
    return np.ascontiguousarray(lanes).reshape(group, wide // 16, steps, taps, 32, 4 * values)


def gemm_columns(b: np.ndarray, trans_b: bool) -> np.ndarray:
    """b (k, n), or (n, k) if trans_b, perhaps behind axes of 1 → (1, n, k)."""
    matrix = b.reshape(b.shape[-2:])
    return (matrix if trans_b else matrix.T)[None]


def _split_slabs(columns: np.ndarray, tile: int, operands: int = 2) -> np.ndarray:
    groups, wide, steps = columns.shape
    each = 2 * depth("fp16") // operands
    count, padded = -(-steps // each), -(-wide // tile) * tile
    packed = np.zeros((groups, count, padded, operands, each), np.float16)
    back = np.ones((groups, padded), np.float32)
    for some, scale, scaled in scaled_columns(columns, count * each):
        for operand, half in enumerate(split(scaled)[:operands]):
            packed[:, :, some, operand] = half.reshape(*scale.shape, count, each).swapaxes(1, 2)
        back[:, some] = 1 / scale
    chunks = WIDE_SLAB_NBYTES // CHUNK_NBYTES
    return as_bytes(swizzled(packed.reshape(groups, count, padded, chunks, -1)), back)


def scaled_columns(columns: np.ndarray, filled: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Some columns (group, columns, steps) after the other: which, what they are scaled by, and them so, with
    steps filled up with zeros."""
    wide, steps = columns.shape[1:]
    for begin in range(0, wide, _AT_ONCE):  # which stay in a core's cache
        some = slice(begin, min(begin + _AT_ONCE, wide))
        scale = _powers(columns[:, some])
        scaled = np.zeros((*scale.shape, filled), np.float32)
        np.multiply(columns[:, some], scale[..., None], out=scaled[..., :steps])
        yield some, scale, scaled


def as_bytes(*arrays: np.ndarray) -> np.ndarray:
    """One behind the other."""
    return np.concatenate([array.reshape(-1).view(np.uint8) for array in arrays])


def split(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 of a magnitude below 2 ** 15 → float16 rounded to nearest, and float16 of what that left."""
    with np.errstate(invalid="ignore"):  # infinity less infinity
        big = array.astype(np.float16)
        return big, (array - big).astype(np.float16)


def _powers(columns: np.ndarray) -> np.ndarray:
    """The power of two for each column (…, steps) that brings its largest finite magnitude below 2 ** 15, no
    more than a factor of two; float32. What is all zeros keeps its scale."""
    largest = np.where(np.isfinite(columns), np.abs(columns), 0).max(axis=-1)
    exponent = np.frexp(largest)[1]  # largest is below 2 ** exponent
    return np.ldexp(np.float32(1), np.where(largest > 0, np.clip(15 - exponent, -126, 126), 0)).astype(
        np.float32
    )


def _wide_slabs(columns: np.ndarray, precision: str, tile: int) -> np.ndarray:
    """Columns of products, (group, columns, steps) → (group, slabs, columns in tiles of `tile`, depth)."""
    each = WIDE_SLAB_NBYTES // SLAB_NBYTES * depth(precision)
    return _swizzled(np.asarray(converted(columns, precision), element(precision)), each, tile)


def _swizzled(columns: np.ndarray, each: int, tile: int) -> np.ndarray:
    """As `_wide_slabs`, of values as they are to lie, so many to a slab."""
    groups, wide, steps = columns.shape
    count, padded = -(-steps // each), -(-wide // tile) * tile
    filled = np.zeros((groups, padded, count * each), columns.dtype)
    filled[:, :wide, :steps] = columns
    chunks = WIDE_SLAB_NBYTES // CHUNK_NBYTES
    packed = filled.reshape(groups, padded, count, chunks, -1).swapaxes(1, 2)
    return swizzled(packed).reshape(groups, count, padded, each)


def swizzled(packed: np.ndarray) -> np.ndarray:
    """Slabs (…, channels, chunks, values) with the chunks of each channel where they lie, or back."""
    channels, chunks = packed.shape[-3:-1]
    channel = np.arange(channels)[:, None]
    return packed[..., channel, np.arange(chunks)[None, :] ^ channel % chunks, :]


def _nhwc_taps(weight: np.ndarray, group: int, fold: int, precision: str) -> np.ndarray:
    """Filters → (group, channels of it, steps of the sum)."""
    return _taps_in_chunks(weight, group, fold, CHUNK_NBYTES * depth(precision) // SLAB_NBYTES)


def _taps_in_chunks(weight: np.ndarray, group: int, fold: int, each: int) -> np.ndarray:
    """The same, with so many channels a chunk."""
    m, channels, kh, kw = weight.shape[-4:]
    taps = weight.reshape(m, channels, kh, kw)
    if fold > 1:
        high, wide = -(-kh // fold), -(-kw // fold)
        taps = np.pad(taps, ((0, 0), (0, 0), (0, high * fold - kh), (0, wide * fold - kw)))
        taps = taps.reshape(m, channels, high, fold, wide, fold).transpose(0, 1, 3, 5, 2, 4)
        channels, kh, kw = channels * fold * fold, high, wide
    filled = np.zeros((m, kh * kw, -(-channels // each) * each), np.float32)
    filled[..., :channels] = taps.reshape(m, channels, kh * kw).swapaxes(1, 2)
    return filled.reshape(group, m // group, -1)


def gemm_slabs(b: np.ndarray, trans_b: bool, precision: str, tile: int) -> np.ndarray:
    """b (k, n), or (n, k) if trans_b, perhaps behind axes of 1 → (1, slabs, columns in tiles of `tile`,
    depth)."""
    matrix = b.reshape(b.shape[-2:])
    return slabs((matrix if trans_b else matrix.T)[None], precision, tile)


def slabs(columns: np.ndarray, precision: str, tile: int) -> np.ndarray:
    """Columns of products, (group, columns, steps) → (group, slabs, columns in tiles of `tile`, depth), in
    the element type of the precision: float32 as it is (fp32-tc), rounded to TF32, or of 16 bits."""
    return in_slabs(
        columns, depth(precision), tile, element(precision), lambda some: converted(some, precision)
    )


def in_slabs(
    columns: np.ndarray,
    each: int,
    tile: int,
    dtype: np.dtype | type[np.generic],
    convert: Callable[[np.ndarray], np.ndarray] = lambda some: some,
) -> np.ndarray:
    """As `slabs`, of so many steps each."""
    group, wide, steps = columns.shape
    count = -(-steps // each)
    packed = np.zeros((group, count, -(-wide // tile) * tile, each), dtype)
    whole = steps // each  # slabs without a gap
    if whole:
        full = columns[:, :, : whole * each].reshape(group, wide, whole, each)
        packed[:, :whole, :wide] = convert(full.swapaxes(1, 2))
    if whole < count:
        packed[:, whole, :wide, : steps - whole * each] = convert(columns[:, :, whole * each :])
    return as_lanes_read(packed)


def as_lanes_read(packed: np.ndarray) -> np.ndarray:
    """Slabs with each channel's steps in order → the same shape, every 16 channels × depth in fragments of
    mma.sync: (instruction, channel % 8, lane % 4, word of the two, channel // 8, value of the word)."""
    group, count, wide, each = packed.shape
    word = np.dtype(f"u{packed.itemsize * each // 16}")  # moved as one
    words = np.ascontiguousarray(packed).view(word).reshape(group, count, wide // 16, 2, 8, 4, 2, 2)
    ordered = np.ascontiguousarray(words.transpose(0, 1, 2, 6, 4, 5, 7, 3))
    return ordered.reshape(group, count, wide, 16).view(packed.dtype)


def half_rows(b: np.ndarray, trans_b: bool, precision: str = "fp16") -> np.ndarray:
    """b (k, n), or (n, k) if trans_b, perhaps behind axes of 1 → 16 bits (n, k filled up with zeros to whole
    chunks): each column of the product a row that begins on 16 bytes."""
    matrix = b.reshape(b.shape[-2:])
    matrix = matrix if trans_b else matrix.T
    k = b.shape[-1 if trans_b else -2]
    each = CHUNK_NBYTES // 2
    packed = np.zeros((len(matrix), -(-k // each) * each), element(precision))
    packed[:, :k] = converted(matrix, precision)
    return packed


def tiled_rows(b: np.ndarray, trans_b: bool, tile_n: int, tile_k: int) -> np.ndarray:
    """b (k, n), or (n, k) if trans_b, perhaps behind axes of 1 → (n, k), both filled up with zeros to whole
    tiles: each column of the product a row."""
    matrix = b.reshape(b.shape[-2:])
    matrix = matrix if trans_b else matrix.T
    n, k = len(matrix), b.shape[-1 if trans_b else -2]
    packed = np.zeros((-(-n // tile_n) * tile_n, -(-k // tile_k) * tile_k), b.dtype)
    packed[:n, :k] = matrix
    return packed


def byte_rows(b: np.ndarray, trans_b: bool) -> np.ndarray:
    """b (k, n), or (n, k) if trans_b, of eight bits, perhaps behind axes of 1 → uint8 (n, k filled up with
    zeros to whole chunks): each column of the product a row that begins on 16 bytes, int8 by its bits."""
    return tiled_rows(b.astype(np.int16).astype(np.uint8), trans_b, 1, CHUNK_NBYTES)


def converted(array: np.ndarray, precision: str) -> np.ndarray:
    """The values that a kernel of this precision multiplies by."""
    if held := narrow(precision):
        return half(array, held)
    return tf32(array) if precision == "tf32" else array


def tf32(array: np.ndarray) -> np.ndarray:
    """float32 rounded to TF32's 10 bits behind the point, to nearest, ties away from zero, as the device's
    cvt.rna does; NaN and infinity stay."""
    array = np.ascontiguousarray(array, np.float32)
    rounded = ((array.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(array), rounded, array)


def half(array: np.ndarray, held: str = "float16") -> np.ndarray:
    """float16 copy of a float32 array, or the bits of a bfloat16 one, uint16, rounded to nearest even; finite
    values are kept finite."""
    largest = float(ml_dtypes.finfo(held).max)
    clipped = np.where(np.isfinite(array), np.clip(array, -largest, largest), array)
    return clipped.astype(held).view(_KEPT[held])


# ------------------------------------------------------------------- scaled float16, for products of few rows
#
# Weights as float16 (cuda/half_columns.cuh, gemm_streamed.cuh). Each column is multiplied by a power of two,
# its scale, so that float16 keeps as many bits of a weight as TF32 does; `longer` keeps eight bits more.
#
# The scale is as small as these bits allow. The other factor of the product is not scaled, and a sum is
# divided by the scale only at its end: until then it is too large by the scale, and float32 ends at 3.4e38.
# With its largest weight in [2^14, 2^15), a column keeps all bits of weights above 2^-29 of the largest, and
# some bits down to 2^-40. A smaller scale keeps the same bits as long as the smallest weight that was kept
# stays at 2^-14 or above: below, float16 has fewer bits. So in each column one of these holds:
# - The scale is 1 or less: products overflow only where those of the float32 weights overflow, too.
# - The smallest weight lies at about 2^-14, the largest below 2^-13 times the ratio of both. For 9,216
#   weights of a normal distribution the largest is then at about 2^2 to 2^7.
# - The largest weight lies in [2^14, 2^15), because the ratio of both is above 2^28.
#
# Small weights lose no bits to make the range smaller. With the largest at 1 each weight would be off by up
# to 2^-25 of the largest. That is nothing beside the largest weight's own product, but it may be all of a sum
# in which that weight meets a zero, as half of the values behind a ReLU are.

LANES, LANE_STEPS = 32, 16  # of a warp, and of a sum that each has at once, where weights have 24 bits
_BEHIND = 5  # bits of a float32 behind them
_NORMAL, _NOTHING = -14, 2.0**-25  # the exponent from which float16 has all its bits; what it rounds to zero


def least_scaled_columns(columns: np.ndarray, filled: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """As packing's, scaled by no more than it takes to keep the same bits of every number, or by 1."""
    for some, scale, scaled in scaled_columns(columns, filled):
        magnitude = np.abs(scaled)
        least = np.where(magnitude > _NOTHING, magnitude, np.inf).min(axis=-1)
        # It lies at 2 ** (exponent - 1) or above; so does a scale, which is a power of two.
        spare = np.frexp(least)[1] - 1 - _NORMAL
        most = np.maximum(np.frexp(scale)[1] - 1, 0)
        less = np.ldexp(np.float32(1), -np.clip(spare, 0, most)).astype(np.float32)
        yield some, scale * less, np.multiply(scaled, less[..., None], out=scaled)


def scaled_rows(b: np.ndarray, trans_b: bool) -> np.ndarray:
    """As `half_rows`, each column scaled by a power of two so that its bits are those of TF32 → bytes: these
    rows, and behind them float32 (n), what brings products of a column back."""
    columns = gemm_columns(b, trans_b)
    _, n, k = columns.shape
    each = CHUNK_NBYTES // 2
    packed = np.zeros((n, -(-k // each) * each), np.float16)
    back = np.ones(n, np.float32)
    for some, scale, scaled in least_scaled_columns(columns, packed.shape[1]):
        packed[some] = scaled[0]
        back[some] = 1 / scale[0]
    return as_bytes(packed, back)


def longer_rows(b: np.ndarray, trans_b: bool) -> np.ndarray:
    """As `scaled_rows`, with eight bits of each weight more (`longer`) → bytes: by column and LANE_STEPS
    steps of a warp's lanes, the halves of the first eight of each lane, those of the others, and the bytes
    that follow them; behind all, float32 (n)."""
    columns = gemm_columns(b, trans_b)
    _, n, k = columns.shape
    count = -(-k // (LANES * LANE_STEPS))
    packed = np.zeros((n, count, 3, LANES * CHUNK_NBYTES), np.uint8)
    back = np.ones(n, np.float32)
    for some, scale, scaled in least_scaled_columns(columns, count * LANES * LANE_STEPS):
        halves, more = longer(scaled.reshape(-1, count, LANES, 2, LANE_STEPS // 2))
        for part in range(2):
            packed[some, :, part] = (
                np.ascontiguousarray(halves[..., part, :])
                .view(np.uint8)
                .reshape(-1, count, LANES * CHUNK_NBYTES)
            )
        packed[some, :, 2] = more.reshape(-1, count, LANES * LANE_STEPS)
        back[some] = 1 / scale[0]
    return as_bytes(packed, back)


def longer(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 of a magnitude below 2 ** 15 → float16, and the eight bits that follow its own where it is no
    subnormal number, else zeros: together rounded to nearest."""
    bits = (array.view(np.uint32) + np.uint32(1 << _BEHIND - 1)) >> np.uint32(_BEHIND) << np.uint32(_BEHIND)
    few = ~np.isfinite(array) | (np.abs(array) < np.finfo(np.float16).tiny)
    more = np.where(few, 0, bits >> np.uint32(_BEHIND)).astype(np.uint8)
    cut = (bits & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(few, array, cut).astype(np.float16), more


def gemm_scaled_slabs(b: np.ndarray, trans_b: bool, tile: int) -> np.ndarray:
    """As `gemm_slabs` in float16, scaled as `scaled_rows` → bytes: the slabs, and behind them float32
    (columns in whole tiles)."""
    columns = gemm_columns(b, trans_b)
    scaled = np.zeros(columns.shape, np.float16)
    back = np.ones(-(-columns.shape[1] // tile) * tile, np.float32)
    for some, scale, values in least_scaled_columns(columns, columns.shape[2]):
        scaled[:, some] = values
        back[some] = 1 / scale[0]
    return as_bytes(in_slabs(scaled, depth("fp16"), tile, np.float16), back)


def gemm_longer_slabs(b: np.ndarray, trans_b: bool, tile: int) -> np.ndarray:
    """As `gemm_scaled_slabs`, with eight bits of each weight more (`longer`): by slab and sixteen columns,
    halves as the lanes of a warp read them, then as many bytes, sixteen a lane, in the order of these."""
    columns = gemm_columns(b, trans_b)
    halves, more = np.zeros(columns.shape, np.float16), np.zeros(columns.shape, np.uint8)
    back = np.ones(-(-columns.shape[1] // tile) * tile, np.float32)
    for some, scale, values in least_scaled_columns(columns, columns.shape[2]):
        halves[:, some], more[:, some] = longer(values)
        back[some] = 1 / scale[0]
    pieces = in_slabs(halves, depth("fp16"), tile, np.float16)
    pieces = pieces.reshape(-1, len(back) // 16, 2, LANES, CHUNK_NBYTES // 2)
    behind = in_slabs(more, depth("fp16"), tile, np.uint8).reshape(pieces.shape).swapaxes(2, 3)
    both = np.zeros((*pieces.shape[:2], 3, LANES * CHUNK_NBYTES), np.uint8)
    both[:, :, :2] = pieces.view(np.uint8).reshape(*pieces.shape[:2], 2, -1)
    both[:, :, 2] = behind.reshape(*pieces.shape[:2], -1)
    return as_bytes(both, back)
