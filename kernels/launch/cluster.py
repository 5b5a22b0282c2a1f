"""The launch shape of products whose sums are shared among the blocks of a cluster."""

from __future__ import annotations

from kernels.estimates.cluster import fit
from kernels.launch.core import Launch, shape
from kernels.occupancy import ceil
from kernels.ops.gemm import Gemm
from kernels.registry import Rung


@shape
def gemm_cluster(params: Gemm, rung: Rung) -> Launch:
    """A cluster of PARTS blocks of THREADS threads ROWS × COLUMNS outputs; a thread takes every PARTS ·
    THREADS-th four steps of the sum, which is LENGTH long. grid = (columns · PARTS, rows)."""
    spread = fit(params.m, params.n, params.k)
    grid = (ceil(params.n, spread.columns) * spread.parts, ceil(params.m, spread.rows), 1)
    defines = {name.upper(): value for name, value in spread._asdict().items()} | {"LENGTH": params.k}
    return Launch(grid, (spread.threads, 1, 1), params.scalars(), defines=defines)
