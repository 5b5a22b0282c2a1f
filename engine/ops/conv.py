"""Conv: one, two or three spatial axes, every auto_pad, stride, dilation and group."""

from __future__ import annotations

from engine.graph.graph import Node
from engine.ops._base import Lowered, Refused, Scope, kernel, operator, optional_input
from engine.ops._window import IDLE, resolve
from kernels.ops.conv import Conv
from kernels.ops.conv3d import Conv3d


@operator("Conv")
def lower(node: Node, scope: Scope) -> Lowered:
    """x (n, c, [h,] w), weight (m, c // group, [kh,] kw), optional bias (m,) → y (n, m, [out_h,] out_w)."""
    x, weight = node.inputs[:2]
    bias = optional_input(node, 2)
    shape, weight_shape = scope.shape(x), scope.shape(weight)
    if len(shape) < 3 or len(weight_shape) != len(shape):
        raise Refused(f"input {shape} and weight {weight_shape} do not make a convolution")
    kernel_shape = weight_shape[2:]
    if tuple(node.attributes.get("kernel_shape", kernel_shape)) != kernel_shape:
        raise Refused(f"its kernel_shape differs from its weight's, {kernel_shape}")
    n, c = shape[:2]
    m, group = weight_shape[0], int(node.attributes.get("group", 1))
    if group < 1 or c % group or m % group or weight_shape[1] != c // group:
        raise Refused(f"{c} channels, weight {weight_shape} and group {group} do not fit together")
    if bias and scope.shape(bias) != (m,):
        raise Refused(f"its bias has shape {scope.shape(bias)} and should have ({m},)")
    if len(kernel_shape) > 3:
        raise Refused(f"it has {len(kernel_shape)} spatial axes, and 1 to 3 are supported")
    axes = resolve(node, shape[2:], kernel_shape)
    dtype, inputs = scope.spec(x).dtype, (x, weight, bias) if bias else (x, weight)
    out = tuple(axis.out for axis in axes)
    if len(axes) == 3:
        depth, height, width = axes
        conv3d = Conv3d(
            n=n,
            c=c,
            size=(depth.size, height.size, width.size),
            m=m,
            kernel=(depth.kernel, height.kernel, width.kernel),
            out=(depth.out, height.out, width.out),
            stride=(depth.stride, height.stride, width.stride),
            pad=(depth.pad_begin, height.pad_begin, width.pad_begin),
            dilation=(depth.dilation, height.dilation, width.dilation),
            group=group,
            bias=bool(bias),
            dtype=dtype,
        )
        return kernel(node, conv3d, inputs, (n, m, *out), dtype)
    height, width = (IDLE, *axes)[-2:]
    conv = Conv(
        n=n,
        c=c,
        h=height.size,
        w=width.size,
        m=m,
        kh=height.kernel,
        kw=width.kernel,
        out_h=height.out,
        out_w=width.out,
        stride_h=height.stride,
        stride_w=width.stride,
        pad_top=height.pad_begin,
        pad_left=width.pad_begin,
        pad_bottom=height.pad_end,
        pad_right=width.pad_end,
        dilation_h=height.dilation,
        dilation_w=width.dilation,
        group=group,
        bias=bool(bias),
        dtype=dtype,
    )
    return kernel(node, conv, inputs, (n, m, *out), dtype)
