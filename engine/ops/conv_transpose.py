"""ConvTranspose and Col2Im: every way to say how large the output is.

Of one or two spatial axes they are a kernel. Of three it is a convolution of a volume with zeros put between
its elements, by the weights turned round: right, and slower than a kernel by the share of the zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, optional_input
from engine.ops._nodes import Nodes, written
from engine.ops._window import AUTO_PADS, integers
from kernels.ops.conv_transpose import ConvTranspose


class _Axis(NamedTuple):
    """Along one spatial axis, in elements; pad: before the output."""

    size: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    out: int = 1


@operator("ConvTranspose")
def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, [h,] w), weight (c, m / group, [kh,] kw), bias (m,) → y (n, m, [out_h,] out_w)."""
    x, weight, bias = node.inputs[0], node.inputs[1], optional_input(node, 2)
    shape, of_weight = scope.shape(x), scope.shape(weight)
    dtype, group = scope.spec(x).dtype, int(node.attributes.get("group", 1))
    if len(shape) not in (3, 4, 5) or len(of_weight) != len(shape):
        raise Refused(
            f"its input {shape} and weights {of_weight} have {len(shape) - 2} spatial axes, and 1 to 3 are "
            "supported"
        )
    n, c, m = shape[0], shape[1], of_weight[1] * group
    if group < 1 or c % group or of_weight[0] != c:
        raise Refused(f"its weights {of_weight} and group {group} do not fit {c} channels")
    if bias and scope.shape(bias) != (m,):
        raise Refused(f"its bias has the shape {scope.shape(bias)} instead of ({m},)")
    axes = _axes(node, shape[2:], of_weight[2:])
    if len(axes) == 3:
        return _volume(node, scope, axes, group)
    rows, columns = axes if len(axes) == 2 else (_Axis(1, 1), axes[0])
    params = ConvTranspose(
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
    return kernel(node, params, (x, weight, bias) if bias else (x, weight), (n, m, *out), dtype)


def _axes(node: Node, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> list[_Axis]:
    """Raises Refused."""
    attribute, rank = node.attributes.get, len(spatial)
    auto_pad = attribute("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad not in AUTO_PADS:
        raise Refused(f"its auto_pad is {auto_pad!r}, and {', '.join(AUTO_PADS)} are supported")
    if (declared := attribute("kernel_shape")) is not None and tuple(declared) != kernel:
        raise Refused(f"its kernel_shape {tuple(declared)} is not that of its weights, {kernel}")
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


def _volume(node: Node, scope: Scope, axes: list[_Axis], group: int) -> Lowered:
    nodes = Nodes(node, scope)
    x, weight, bias = node.inputs[0], node.inputs[1], optional_input(node, 2)
    n, c = scope.shape(x)[:2]
    of_weight = scope.shape(weight)
    sizes = [axis.size for axis in axes]
    for i, axis in enumerate(axes):
        if axis.stride > 1 and axis.size > 1:
            # Each element with stride − 1 zeros behind it, but for the last.
            apart = nodes.shaped(x, (n, c, *sizes[: i + 1], 1, *sizes[i + 1 :]))
            pads = [0] * (2 * (len(sizes) + 3))
            pads[-len(sizes) + i] = axis.stride - 1
            spread = nodes("Pad", apart, nodes.constant(pads, np.int64))
            sizes[i] *= axis.stride
            x = nodes.shaped(spread, (n, c, *sizes))
            sizes[i] -= axis.stride - 1
            x = nodes("Gather", x, nodes.constant(np.arange(sizes[i])), axis=2 + i)
    # (group, c / group, m / group, …) → (m, c / group, …), the window turned round.
    grouped = nodes.shaped(weight, (group, c // group, of_weight[1], *of_weight[2:]))
    turned = nodes("Transpose", grouped, perm=(0, 2, 1, 3, 4, 5))
    for i, axis in enumerate(axes):
        if axis.kernel > 1:
            turned = nodes("Gather", turned, nodes.constant(np.arange(axis.kernel)[::-1]), axis=3 + i)
    turned = nodes.shaped(turned, (group * of_weight[1], c // group, *of_weight[2:]))
    begins, ends = [], []
    for axis, size in zip(axes, sizes, strict=True):
        reach = (axis.kernel - 1) * axis.dilation
        begins.append(reach - axis.pad)
        ends.append(axis.out + reach - size - begins[-1])
    if min(*begins, *ends) < 0:
        # What the output leaves away is cut off the input, or of the answer where there is not so much.
        cut = [0, 0, *begins, 0, 0, *ends]
        x = nodes("Pad", x, nodes.constant(cut, np.int64))
        begins, ends = [0] * 3, [0] * 3
    nodes(
        "Conv",
        x,
        turned,
        *([bias] if bias else []),
        output=node.outputs[0],
        group=group,
        pads=(*begins, *ends),
        dilations=tuple(axis.dilation for axis in axes),
    )
    return nodes.lowered()


@written("Col2Im")
def _columns(node: Node, nodes: Nodes) -> None:
    """Col2Im: x (n, c · window, windows), image and window constant → y (n, c, *image): each place of a
    window is a channel that adds to one place of the image, which is a transposed convolution."""
    scope, x = nodes.around, node.inputs[0]
    image, window = (scope.integers(node, i, w) for i, w in ((1, "image_shape"), (2, "block_shape")))
    if not image or not window or len(image) != len(window) or len(image) > 3:
        raise Refused(f"its image_shape {image} and block_shape {window} do not fit together")
    n, rows, count = scope.shape(x)
    rank, each = len(image), math.prod(window)
    strides = integers(node.attributes.get("strides"), (1,) * rank, "strides")
    dilations = integers(node.attributes.get("dilations"), (1,) * rank, "dilations")
    pads = integers(node.attributes.get("pads"), (0,) * (2 * rank), "pads")
    along, beyond = [], []
    for i in range(rank):
        room = image[i] + pads[i] + pads[rank + i] - (window[i] - 1) * dilations[i] - 1
        along.append(room // strides[i] + 1)
        beyond.append(room % strides[i])
    if rows % each or math.prod(along) != count:
        raise Refused(
            f"{rows} rows and {count} windows do not fit an image of {image} and windows of {window}"
        )
    channels = rows // each
    taps = np.tile(np.eye(each).reshape(each, 1, *window), (channels, *(1,) * (rank + 1)))
    nodes(
        "ConvTranspose",
        nodes.shaped(x, (n, rows, *along)),
        nodes.constant(taps, scope.spec(x).dtype),
        output=node.outputs[0],
        group=channels,
        strides=strides,
        dilations=dilations,
        pads=pads,
        output_padding=tuple(beyond),
    )
