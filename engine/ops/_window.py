"""Sliding windows, shared by convolution and pooling: auto_pad, dilation and ceil_mode to sizes and pads."""

from __future__ import annotations

from dataclasses import dataclass

from engine.graph.graph import Node
from engine.ops._base import Refused

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class WindowAxis:
    """The window along one spatial axis, sizes in elements."""

    size: int
    kernel: int
    stride: int
    dilation: int
    pad_begin: int
    pad_end: int
    out: int


IDLE = WindowAxis(size=1, kernel=1, stride=1, dilation=1, pad_begin=0, pad_end=0, out=1)


def resolve(node: Node, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[WindowAxis, ...]:
    """The windows of a node over `spatial`, one an axis; `IDLE` is one over an axis that there is not.

    Output sizes follow the ONNX operator text for Conv and MaxPool; with ceil_mode, a last window that would
    start beyond the image and its leading pad is left out, as ONNX Runtime and the ONNX shape function do.
    Raises Refused for negative pads and windows larger than the padded image.
    """
    rank = len(spatial)
    if len(kernel) != rank or min(kernel) < 1:
        raise Refused(f"its kernel_shape {kernel} does not fit {rank} spatial axes")
    attributes = node.attributes
    auto_pad = attributes.get("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad not in AUTO_PADS:
        raise Refused(f"its auto_pad is {auto_pad!r}, and {', '.join(AUTO_PADS)} are supported")
    strides = integers(attributes.get("strides"), (1,) * rank, "strides")
    dilations = integers(attributes.get("dilations"), (1,) * rank, "dilations")
    pads = integers(attributes.get("pads"), (0,) * (2 * rank), "pads")
    if min(strides) < 1 or min(dilations) < 1 or min(pads) < 0:
        raise Refused(
            f"strides {strides} and dilations {dilations} must be positive and pads {pads} not negative"
        )
    ceil_mode = bool(attributes.get("ceil_mode", 0))
    axes = []
    for i, size in enumerate(spatial):
        extent = (kernel[i] - 1) * dilations[i] + 1
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            out = -(-size // strides[i])
            total = max((out - 1) * strides[i] + extent - size, 0)
            # An odd pixel goes to the end with SAME_UPPER, to the beginning with SAME_LOWER.
            small, large = total // 2, total - total // 2
            begin, end = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
        else:
            begin, end = (pads[i], pads[rank + i]) if auto_pad == "NOTSET" else (0, 0)
            room = size + begin + end - extent
            if room < 0:
                raise Refused(f"its window of {extent} is larger than the padded image of {room + extent}")
            out = (-(-room // strides[i]) if ceil_mode else room // strides[i]) + 1
            if ceil_mode and (out - 1) * strides[i] >= size + begin:
                out -= 1
        axes.append(WindowAxis(size, kernel[i], strides[i], dilations[i], begin, end, out))
    return tuple(axes)


def integers(value: object, default: tuple[int, ...], what: str) -> tuple[int, ...]:
    """The whole numbers of an attribute, as many as there are by default. Raises Refused."""
    if value is None:
        return default
    numbers = tuple(int(v) for v in value)  # type: ignore[attr-defined]
    if len(numbers) != len(default):
        raise Refused(f"its {what} {numbers} should have {len(default)} values")
    return numbers
