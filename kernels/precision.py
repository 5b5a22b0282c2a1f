"""What kernels and sessions may compute in: all that is known of each precision, in one record.

The names stand in headers of kernels, in records and on command lines. They are ordered from the strictest to
the coarsest.

A session can also be asked for a mixed precision: each of its steps computes in one of these, so that the
error of the model's answer stays within a budget. Its name says the budget: "mixed-1e-3".
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Precision:
    """bound: the largest relative L2 error of a layer that is given exact inputs; model_bound: how far two
    right answers of a model may be from each other, relative to their norm; pass_rounding: the same for two
    passes of one session of ONNX Runtime. reference: the precision in which the reference computes what this
    one is compared with; products: how many products of tensor cores make one.

    weight_nbytes, tensor_nbytes: what a number in float32 takes at least where a kernel reads it, of weights,
    which are packed once, and of what is worked out in a pass. Scaled float16 has all bits of TF32; eight
    bits more have those of float32. What steps hand on is of 16 bits or float32 in every layout that there is
    (kernels.layouts). held: the element type in which operands lie where tensor cores take them.

    title: what people read where kernels of several precisions stand together; marker: of a point in a chart;
    dash: of a reference's line; colour: of rungs ("": their backend's)."""

    bound: float
    model_bound: float
    pass_rounding: float
    reference: str
    products: int = 1
    weight_nbytes: int
    tensor_nbytes: int
    held: str = "float32"
    title: str
    marker: str
    dash: str = "--"
    colour: str = ""


# A model's answer carries the errors of all its layers. Each adds about its own and passes on what it was
# given (norms and activations here have slope near 1), so they add up with depth; the nets in reach are some
# ten layers deep. An answer may be off by so many times the bound of a layer.
PROPAGATED_FACTOR = 10.0

# Strict float32; 3xTF32 on tensor cores, as exact; TF32; float16 and bfloat16, summed in float32. bfloat16
# has the range of TF32 and three bits fewer: its roundings, and with them its bounds, are eight times TF32's.
_FEWER_BITS = 8.0

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
        held="float16",
        title="fp16",
        marker="D",
        dash=":",
        colour="#882255",
    ),
    # ONNX Runtime has no convolution in bfloat16, and pooling and LRN neither: fp16 is compared with.
    "bf16": Precision(
        bound=_FEWER_BITS * 2e-3,
        model_bound=_FEWER_BITS * 0.02,
        pass_rounding=5e-2,
        reference="fp16",
        weight_nbytes=2,
        tensor_nbytes=2,
        held="bfloat16",
        title="bf16",
        marker="v",
        dash=":",
        colour="#661100",
    ),
}
NAMES = tuple(PRECISIONS)
FP32 = NAMES[0]
# Those whose answers are float32's.
EXACT = tuple(name for name in NAMES if PRECISIONS[name].reference == FP32)

MIXED = "mixed"
MAX_ERROR = 1e-3  # the budget where nobody says another
ASKED = (*NAMES, MIXED)  # what a user may ask for

# No layer of a mixed net has a bound of its own here: each is held to that of what it computes in.
_MIXED = Precision(
    bound=MAX_ERROR / PROPAGATED_FACTOR,
    model_bound=MAX_ERROR,
    pass_rounding=PRECISIONS["fp16"].pass_rounding,
    reference=FP32,
    weight_nbytes=min(precision.weight_nbytes for precision in PRECISIONS.values()),
    tensor_nbytes=min(precision.tensor_nbytes for precision in PRECISIONS.values()),
    title=MIXED,
    marker="P",
    colour="#999933",
)


def written(max_error: float) -> str:
    """ "1e-3", "2.5e-4": seven digits at the most."""
    digits, exponent = f"{max_error:e}".split("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def within(max_error: float) -> str:
    """The name of the mixed precision with this budget, a number above 0 and below 1: "mixed-1e-3"."""
    return f"{MIXED}-{written(max_error)}"


def asked(name: str, max_error: float | None = None) -> str:
    """The precision of a case for which a user has asked by this name, one of ASKED. max_error: the budget
    of a mixed one (None: MAX_ERROR)."""
    return within(MAX_ERROR if max_error is None else max_error) if name == MIXED else name


@functools.lru_cache(maxsize=1024)
def budget(name: str) -> float | None:
    """The budget of a mixed precision of this name: the largest relative L2 error that the model's answer for
    an image may have. None for any other name."""
    start = f"{MIXED}-"
    try:
        found = float(name.removeprefix(start)) if name.startswith(start) else math.nan
    except ValueError:
        return None
    return found if 0 < found < 1 and within(found) == name else None


def of(name: str) -> Precision:
    """What is known of a precision that a case may have, mixed ones included. Raises KeyError."""
    if (error := budget(name)) is None:
        return PRECISIONS[name]
    return replace(_MIXED, bound=error / PROPAGATED_FACTOR, model_bound=error)


def of_layer(case: str, layer: str) -> str:
    """By whose rates a layer of a case is judged: in a mixed one by those of what it computes in itself,
    where that is known. layer: its own precision ("": not known)."""
    return (layer or case) if budget(case) is not None else case


def narrow(name: str) -> str:
    """The type of 16 bits that all operands are kept in: "float16" in fp16, "bfloat16" in bf16; "" where they
    keep more bits, and in a mixed precision, whose layers differ."""
    held = PRECISIONS[name].held if name in PRECISIONS else "float32"
    return "" if held == "float32" else held


def defines(held: str) -> dict[str, int]:
    """The compile-time defines of a kernel whose numbers of 16 bits are of this type (cuda/half.cuh)."""
    return {"BF16": 1} if held == "bfloat16" else {}


def known(name: str) -> bool:
    """Whether a case can have a precision of this name."""
    return name in PRECISIONS or budget(name) is not None
