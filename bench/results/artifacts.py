"""Files that a run keeps beside its lines: predictions and layers of each case, as npz."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.results.records import Case, ErrorStats, Layer
from kernels.cache import atomic_file


def path(folder: str, kind: str, case: Case) -> Path:
    """Where the "predictions" or "layers" of a case lie in a run folder."""
    return Path(folder) / kind / f"{case.key}.npz"


def save_layers(target: Path, layers: Sequence[Layer]) -> None:
    """Write layers as columns, whole or not at all; NaN where a figure is not known. OSError as it comes.

    Columns, all (layers,): nodes and inputs (names joined by spaces), op_type, output, shape (as 1x2x3),
    rung, clock; parameters, flops, nbytes; time_ns; isolated and propagated (relative L2 errors),
    isolated_ratio and propagated_ratio (over the reference's own).
    """
    columns: dict[str, np.ndarray] = {
        "nodes": np.array([" ".join(layer.nodes) for layer in layers], np.str_),
        "inputs": np.array([" ".join(layer.inputs) for layer in layers], np.str_),
        "op_type": np.array([layer.op_type for layer in layers], np.str_),
        "output": np.array([layer.output for layer in layers], np.str_),
        "shape": np.array(["x".join(map(str, layer.shape)) for layer in layers], np.str_),
        "rung": np.array([layer.rung for layer in layers], np.str_),
        "clock": np.array([layer.clock for layer in layers], np.str_),
        "parameters": np.array([layer.parameters for layer in layers], np.int64),
        "flops": np.array([layer.flops for layer in layers], np.int64),
        "nbytes": np.array([layer.nbytes for layer in layers], np.int64),
        "time_ns": _known([layer.time_ns for layer in layers]),
    }
    for name in ("isolated", "propagated"):
        errors: list[ErrorStats | None] = [getattr(layer, name) for layer in layers]
        columns[name] = _known([stats.rel_l2 if stats else None for stats in errors])
        columns[f"{name}_ratio"] = _known([stats.ratio if stats else None for stats in errors])
    with atomic_file(target) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **columns)  # type: ignore[arg-type]


def _known(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], np.float64)
