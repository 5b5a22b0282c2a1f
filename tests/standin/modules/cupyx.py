"""What functions of CuPy use of `cupyx`: matrices in CSR and their product with a vector."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from tests.standin.modules.arrays import Later, Placed

cusparse = sys.modules[__name__]  # `from cupyx import cusparse`


class csr_matrix:
    """Of arrays that are not copied: values, the columns that they are in, and where each row begins."""

    def __init__(self, parts: Sequence[Placed], shape: tuple[int, int]) -> None:
        self.parts, self.shape = parts, shape
        places, offsets = (part.values for part in parts[1:])
        rows = np.repeat(np.arange(shape[0]), np.diff(offsets))
        at = rows * shape[1] + places
        self.has_canonical_format = bool((np.diff(at) > 0).all())


def spmv(matrix: csr_matrix, x: Placed, y: Placed) -> Placed:
    if not matrix.has_canonical_format:
        raise ValueError("expected canonical format")

    def made() -> np.ndarray:
        values, places, offsets = (part.values for part in matrix.parts)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(offsets))
        products = values.astype(np.float64) * x.values[places]
        return np.bincount(rows, products, matrix.shape[0])

    y[...] = Later(made)
    return y
