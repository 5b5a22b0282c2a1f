"""ConvTranspose: one or two spatial axes, every way to say how large its output is."""

from __future__ import annotations

from typing import NamedTuple

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, optional_input
from engine.ops._window import AUTO_PADS, integers
from kernels.ops.conv_transpose import ConvTranspose

OP_TYPES = ("ConvTranspose",)


class _Axis(NamedTuple):
    """Along one spatial axis, in elements; pad: before the output."""

    size: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    out: int = 1


def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, [h,] w), weight (c, m / group, [kh,] kw), bias (m,) → y (n, m, [out_h,] out_w)."""
    x, weight, bias = node.inputs[0], node.inputs[1], optional_input(node, 2)
    shape, of_weight = scope.shape(x), scope.shape(weight)
    dtype, group = scope.spec(x).dtype, int(node.attributes.get("group", 1))
    if len(shape) not in (3, 4) or len(of_weight) != len(shape):
        raise Refused(
            f"its input {shape} and weights {of_weight} have {len(shape) - 2} spatial axes, and 1 or 2 are "
            "supported"
        )
    n, c, m = shape[0], shape[1], of_weight[1] * group
    if group < 1 or c % group or of_weight[0] != c:
        raise Refused(f"its weights {of_weight} and group {group} do not fit {c} channels")
    if bias and scope.shape(bias) != (m,):
        raise Refused(f"its bias has the shape {scope.shape(bias)} instead of ({m},)")
    axes = _axes(node, shape[2:], of_weight[2:])
    rows, columns = axes if len(axes) == 2 else (_Axis(1, 1), axes[0])
    made = ConvTranspose(
        n=n,
        c=c,
        h=rows.size,
        w=columns.size,
        m=m,
        kh=rows.kernel,
        kw=columns.kernel,
        out_h=rows.out,
        out_w=columns.out,
        stride_h=rows.stride,
        stride_w=columns.stride,
        pad_top=rows.pad,
        pad_left=columns.pad,
        dilation_h=rows.dilation,
        dilation_w=columns.dilation,
        group=group,
        bias=bool(bias),
        dtype=dtype,
    )
    out = tuple(axis.out for axis in axes)
    return kernel(node, made, (x, weight, bias) if bias else (x, weight), (n, m, *out), dtype)


def _axes(node: Node, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> list[_Axis]:
    """Raises Refused."""
    attribute, rank = node.attributes.get, len(spatial)
    auto_pad = attribute("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad not in AUTO_PADS:
        raise Refused(f"its auto_pad is {auto_pad!r}, and {', '.join(AUTO_PADS)} are supported")
    if (given := attribute("kernel_shape")) is not None and tuple(given) != kernel:
        raise Refused(f"its kernel_shape {tuple(given)} is not that of its weights, {kernel}")
    strides = integers(attribute("strides"), (1,) * rank, "strides")
    dilations = integers(attribute("dilations"), (1,) * rank, "dilations")
    pads = integers(attribute("pads"), (0,) * (2 * rank), "pads")
    beyond = integers(attribute("output_padding"), (0,) * rank, "output_padding")
    wanted = attribute("output_shape")
    if wanted is not None:
        wanted = integers(wanted[-rank:], (0,) * rank, "output_shape")  # some give all axes
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(size * stride for size, stride in zip(spatial, strides, strict=True))
    if min(*strides, *dilations) < 1 or min(*pads, *beyond) < 0:
        raise Refused(
            f"strides {strides} and dilations {dilations} must be positive, pads {pads} and output_padding "
            f"{beyond} not negative"
        )
    axes = []
    for i, size in enumerate(spatial):
        whole = (size - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + beyond[i]
        if wanted is not None:
            # An odd pixel is cut off at the end with SAME_UPPER, at the beginning else.
            out, total = wanted[i], max(0, whole - wanted[i])
            begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        else:
            begin, end = (pads[i], pads[rank + i]) if auto_pad == "NOTSET" else (0, 0)
            out = whole - begin - end
        if out < 1:
            raise Refused(f"its pads {pads} leave nothing of an image of {whole}")
        axes.append(_Axis(size, kernel[i], strides[i], dilations[i], begin, out))
    return axes
