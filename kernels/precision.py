"""What kernels and sessions may compute in: all that is known of each precision, in one record.

The names stand in headers of kernels, in records and on command lines. They are ordered from the strictest to
the coarsest.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Precision:
    """bound: the largest relative L2 error of a layer that is given exact inputs; model_bound: how far two
    right answers of a model may be from each other, relative to their norm; pass_rounding: the same for two
    passes of one session of ONNX Runtime. reference: the precision in which the reference computes what this
    one is compared with; products: how many products of tensor cores make one.

    weight_nbytes, tensor_nbytes: what a number in float32 takes at least where a kernel reads it, of weights,
    which are packed once, and of what is worked out in a pass. Scaled float16 has all bits of TF32; eight
    bits more have those of float32. What steps hand on is float16 or float32 in every layout that there is
    (kernels.layouts).

    title: what people read where kernels of several precisions stand together; marker: of a point in a chart;
    dash: of a reference's line; colour: of rungs ("": their backend's)."""

    bound: float
    model_bound: float
    pass_rounding: float
    reference: str
    products: int = 1
    weight_nbytes: int
    tensor_nbytes: int
    title: str
    marker: str
    dash: str = "--"
    colour: str = ""


# Strict float32; 3xTF32 on tensor cores, as exact; TF32; float16, summed in float32.
PRECISIONS = {
    "fp32": Precision(
        bound=1e-5,
        model_bound=1e-4,
        pass_rounding=1e-3,
        reference="fp32",
        weight_nbytes=4,
        tensor_nbytes=4,
        title="rungs of the ladder, fp32",
        marker="o",
    ),
    "fp32-tc": Precision(
        bound=1e-5,
        model_bound=1e-4,
        pass_rounding=1e-3,
        reference="fp32",
        products=3,
        weight_nbytes=3,
        tensor_nbytes=4,
        title="fp32-tc",
        marker="s",
        colour="#332288",
    ),
    "tf32": Precision(
        bound=2e-3,
        model_bound=0.02,
        pass_rounding=2e-2,
        reference="tf32",
        weight_nbytes=2,
        tensor_nbytes=4,
        title="TF32",
        marker="^",
        dash="-.",
        colour="#44AA99",
    ),
    "fp16": Precision(
        bound=5e-3,
        model_bound=0.02,
        pass_rounding=5e-2,
        reference="fp16",
        weight_nbytes=2,
        tensor_nbytes=2,
        title="fp16",
        marker="D",
        dash=":",
        colour="#882255",
    ),
}
NAMES = tuple(PRECISIONS)
FP32 = NAMES[0]
# Those whose answers are float32's.
EXACT = tuple(name for name in NAMES if PRECISIONS[name].reference == FP32)
