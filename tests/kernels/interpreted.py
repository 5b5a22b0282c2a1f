"""A product that a launch describes for a library, done by NumPy on flat buffers just as it is described."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernels.launch import Matrix, Product
from kernels.ops.gemm import Gemm
from tests.kernels import cuda_cases


def run(product: Product, buffers: Mapping[str, np.ndarray]) -> None:
    """Compute c. buffers: one flat float32 array a buffer of the launch, by its name. Raises IndexError where
    the description reaches beyond one."""
    p = product
    a = _view(buffers, p.a, p.batch, *((p.k, p.m) if p.a.transposed else (p.m, p.k)))
    b = _view(buffers, p.b, p.batch, *((p.n, p.k) if p.b.transposed else (p.k, p.n)))
    c = _view(buffers, p.c, p.batch, p.m, p.n)
    assert not p.c.transposed
    assert p.c.stride >= (p.m - 1) * p.c.lead + p.n or p.batch == 1, "results lie on one another"
    left = a.swapaxes(1, 2) if p.a.transposed else a
    right = b.swapaxes(1, 2) if p.b.transposed else b
    c[...] = np.float32(p.alpha) * np.matmul(left, right)


def _view(
    buffers: Mapping[str, np.ndarray], matrix: Matrix, batch: int, rows: int, columns: int
) -> np.ndarray:
    flat = buffers[matrix.buffer]
    assert flat.ndim == 1
    assert flat.dtype == np.float32
    assert matrix.lead >= columns, "rows overlap, which cuBLAS refuses"
    last = matrix.offset + (batch - 1) * matrix.stride + (rows - 1) * matrix.lead + columns - 1
    if matrix.offset < 0 or last >= flat.size:
        raise IndexError(f"{matrix} of {rows} × {columns} ends at {last}, the buffer at {flat.size}")
    steps = tuple(4 * step for step in (matrix.stride, matrix.lead, 1))
    return np.lib.stride_tricks.as_strided(flat[matrix.offset :], (batch, rows, columns), steps)


def buffers(case: cuda_cases.Case, workspace_nbytes: int) -> dict[str, np.ndarray]:
    """Inputs, output and scratch memory of exactly their sizes, the latter two full of NaN."""
    given = {f"input {i}": a.reshape(-1).copy() for i, a in enumerate(case.inputs) if a is not None}
    nan = {"output": case.expected.size, "workspace": workspace_nbytes // 4}
    return given | {name: np.full(size, np.nan, np.float32) for name, size in nan.items()}


def finished_gemm(q: Gemm, sums: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """alpha · a · b with bias and activation, float64."""
    y = sums.reshape(q.batch, q.m, q.n).astype(np.float64)
    if bias is not None:
        rows, columns = np.arange(q.m)[:, None], np.arange(q.n)
        y = y + q.beta * bias.reshape(-1)[rows * q.bias_stride_m + columns * q.bias_stride_n]
    return cuda_cases.activate(y, q.activation)
