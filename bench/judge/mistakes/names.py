"""What the axes of an answer are called."""

from __future__ import annotations

from kernels.params import Conv, ConvPool, Gemm, Lrn, LrnPool, Params, Pool


def axis_names(p: Params, axes: int) -> tuple[str, ...]:
    """A word for one step along each axis of the answer."""
    match p:
        case Conv() | ConvPool():
            return ("image", "map", "row", "column")
        case Pool() | LrnPool():
            return ("image", "channel", "row", "column")
        case Lrn():
            return ("image", "channel", "row", "pixel")
        case Gemm():
            return ("matrix", "row", "column")
    if axes == 1:
        return ("element",)
    return tuple(f"element along axis {axis}" for axis in range(axes))


def one_and_many(name: str) -> tuple[str, str]:
    """Of one word, both numbers: "matrix", "matrices"."""
    first, _, rest = name.partition(" ")
    many = {"matrix": "matrices"}.get(first, f"{first}s")
    return name, f"{many} {rest}".strip()
