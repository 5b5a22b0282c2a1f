"""Resizing in ONNX's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.measure.answers.nodes._common import Nodes, as_drawn, node
from kernels.ops.resize import Resize

drawn = as_drawn


def nodes(p: Resize, names: Sequence[str], output: str) -> Nodes:
    """By sizes where the scales follow from them, else by the scales."""
    attributes: dict[str, Any] = {
        "mode": p.mode,
        "coordinate_transformation_mode": p.coordinates,
        "nearest_mode": p.rounding,
        "cubic_coeff_a": p.cubic_a,
        "exclude_outside": int(p.exclude_outside),
        "extrapolation_value": p.value,
        "axes": [1, 2],
    }
    region = np.array([p.start_h, p.start_w, p.end_h, p.end_w], np.float32)
    constants, given = {"roi": region}, ["roi", "", "sizes"]
    scales = (p.out_h / p.h, p.out_w / p.w)
    if (p.scale_h, p.scale_w) == scales:
        constants["sizes"] = np.array([p.out_h, p.out_w], np.int64)
    elif p.scale_h == p.scale_w and p.scale_h in scales:  # one axis kept the other's aspect ratio
        constants["sizes"] = np.array([p.out_h, p.out_w], np.int64)
        smallest = p.scale_h == min(scales)
        attributes["keep_aspect_ratio_policy"] = "not_larger" if smallest else "not_smaller"
    else:
        constants["scales"], given = np.array([p.scale_h, p.scale_w], np.float32), ["roi", "scales"]
    return [node("Resize", [*names, *given], output, **attributes)], constants
