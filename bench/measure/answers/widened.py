"""Arrays in float64, as the oracle computes; a model's weights are converted once for all its questions."""

from __future__ import annotations

import weakref

import numpy as np

from engine.machine.host import free_nbytes

# Weights from this size on are kept in float64 while so many times their memory is free.
_WEIGHTS_NBYTES, _ROOM = 1 << 20, 8


def widened(array: np.ndarray) -> np.ndarray:
    """Floating point as float64, bfloat16 and what else NumPy has not, too; whole numbers as they are."""
    return array.astype(np.float64) if "float" in array.dtype.name else array


# A model's weights in float64, by array: each look at a timed pass evaluates it anew.
_wide: dict[int, tuple[weakref.ref[np.ndarray], np.ndarray]] = {}


def widened_weights(array: np.ndarray) -> np.ndarray:
    """Not to be written to. Kept for as long as the weights are, where there is memory for much more."""
    held, wide = _wide.get(id(array), (None, None))
    if held is not None and wide is not None and held() is array:
        return wide
    wide = widened(array)
    if array.nbytes >= _WEIGHTS_NBYTES and wide is not array:
        wide.flags.writeable = False
        if free_nbytes() > _ROOM * wide.nbytes:
            key = id(array)
            _wide[key] = (weakref.ref(array, lambda _: _wide.pop(key, None)), wide)
    return wide
