"""Weights of products with few rows as float16, each column scaled by a power of two so that the bits are
those of TF32, and with eight bits more of each: as lanes read them, once, when a model is prepared
(kernels/cuda/half_columns.cuh, gemm_streamed.cuh).

The scale is no larger than its bits ask for, because what these weights are multiplied by is not scaled and
sums are brought back at the end: until then they are as many times too large, and float32 ends at 3.4e38.
With its largest in [2^14, 2^15), a column keeps all bits of what is above 2^-29 of that, and something down
to 2^-40. A smaller scale keeps exactly the same as long as the least that was kept does not fall below
2^-14, where float16 begins to have fewer bits. So of a column either

- the scale is 1 or less: its products overflow where those of the weights themselves would, in float32 too;
- or the least lies at about 2^-14, and the largest below 2^-13 times the ratio of both: numbers of a normal
  distribution, 9,216 of them, with their largest at about 2^2 to 2^7;
- or the largest lies in [2^14, 2^15), where more than 2^28 is between both.

No bits of the least are given up for range. To have the largest at 1 would leave each weight an error of up
to 2^-25 of the largest, which is nothing beside the largest's own product, but may be all of a sum in which
that is multiplied by zero, as behind a ReLU half of all are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernels import packing

LANES, LANE_STEPS = 32, 16  # of a warp, and of a sum that each has at once, where weights have 24 bits
_BEHIND = 5  # bits of a float32 behind them
_NORMAL, _NOTHING = -14, 2.0**-25  # the exponent from which float16 has all its bits; what it rounds to zero


def scaled_columns(columns: np.ndarray, filled: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """As packing's, scaled by no more than it takes to keep the same bits of every number, or by 1."""
    for some, scale, scaled in packing.scaled_columns(columns, filled):
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
    columns = packing.gemm_columns(b, trans_b)
    _, n, k = columns.shape
    each = packing.CHUNK_NBYTES // 2
    packed = np.zeros((n, -(-k // each) * each), np.float16)
    back = np.ones(n, np.float32)
    for some, scale, scaled in scaled_columns(columns, packed.shape[1]):
        packed[some] = scaled[0]
        back[some] = 1 / scale[0]
    return packing.as_bytes(packed, back)


def longer_rows(b: np.ndarray, trans_b: bool) -> np.ndarray:
    """As `scaled_rows`, with eight bits of each weight more (`longer`) → bytes: by column and LANE_STEPS
    steps of a warp's lanes, the halves of the first eight of each lane, those of the others, and the bytes
    that follow them; behind all, float32 (n)."""
    columns = packing.gemm_columns(b, trans_b)
    _, n, k = columns.shape
    count = -(-k // (LANES * LANE_STEPS))
    packed = np.zeros((n, count, 3, LANES * packing.CHUNK_NBYTES), np.uint8)
    back = np.ones(n, np.float32)
    for some, scale, scaled in scaled_columns(columns, count * LANES * LANE_STEPS):
        halves, more = longer(scaled.reshape(-1, count, LANES, 2, LANE_STEPS // 2))
        for part in range(2):
            packed[some, :, part] = (
                np.ascontiguousarray(halves[..., part, :])
                .view(np.uint8)
                .reshape(-1, count, LANES * packing.CHUNK_NBYTES)
            )
        packed[some, :, 2] = more.reshape(-1, count, LANES * LANE_STEPS)
        back[some] = 1 / scale[0]
    return packing.as_bytes(packed, back)


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
    columns = packing.gemm_columns(b, trans_b)
    scaled = np.zeros(columns.shape, np.float16)
    back = np.ones(-(-columns.shape[1] // tile) * tile, np.float32)
    for some, scale, values in scaled_columns(columns, columns.shape[2]):
        scaled[:, some] = values
        back[some] = 1 / scale[0]
    return packing.as_bytes(packing.in_slabs(scaled, packing.depth("fp16"), tile, np.float16), back)


def gemm_longer_slabs(b: np.ndarray, trans_b: bool, tile: int) -> np.ndarray:
    """As `gemm_scaled_slabs`, with eight bits of each weight more (`longer`): by slab and sixteen columns,
    halves as the lanes of a warp read them, then as many bytes, sixteen a lane, in the order of these."""
    columns = packing.gemm_columns(b, trans_b)
    halves, more = np.zeros(columns.shape, np.float16), np.zeros(columns.shape, np.uint8)
    back = np.ones(-(-columns.shape[1] // tile) * tile, np.float32)
    for some, scale, values in scaled_columns(columns, columns.shape[2]):
        halves[:, some], more[:, some] = longer(values)
        back[some] = 1 / scale[0]
    pieces = packing.in_slabs(halves, packing.depth("fp16"), tile, np.float16)
    pieces = pieces.reshape(-1, len(back) // 16, 2, LANES, packing.CHUNK_NBYTES // 2)
    behind = (
        packing.in_slabs(more, packing.depth("fp16"), tile, np.uint8).reshape(pieces.shape).swapaxes(2, 3)
    )
    both = np.zeros((*pieces.shape[:2], 3, LANES * packing.CHUNK_NBYTES), np.uint8)
    both[:, :, :2] = pieces.view(np.uint8).reshape(*pieces.shape[:2], 2, -1)
    both[:, :, 2] = behind.reshape(*pieces.shape[:2], -1)
    return packing.as_bytes(both, back)
