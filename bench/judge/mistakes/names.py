"""What the axes of an answer are called."""

from __future__ import annotations

from kernels.ops import Params


def axis_names(p: Params, axes: int) -> tuple[str, ...]:
    """A word for one step along each axis of the answer."""
    if p.axes:
        return p.axes
    if axes == 1:
        return ("element",)
    return tuple(f"element along axis {axis}" for axis in range(axes))


def one_and_many(name: str) -> tuple[str, str]:
    """Of one word, both numbers: "matrix", "matrices"."""
    first, _, rest = name.partition(" ")
    many = {"matrix": "matrices"}.get(first, f"{first}s")
    return name, f"{many} {rest}".strip()
