"""Layer-, Instance-, Group-, RMS- and MeanVarianceNormalization: rows brought to mean 0 and deviation 1.
SimplifiedLayerNormalization is what ONNX Runtime calls RMSNormalization. LRN, across channels; and
BatchNormalization.

What is normalised together has to lie together, a row: where it does not (MeanVarianceNormalization over the
batch, too), the axes are permuted before it and back again behind it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from engine.ops._base import Kernel, Lowered, Refused, Scope, kernel, normal_axis, operator, optional_input
from engine.ops._nodes import Nodes, written
from engine.ops.binary import binary_params, broadcast
from kernels.ops import FLOATS
from kernels.ops.lrn import Lrn
from kernels.ops.normalize import Normalize

_VARIANCE_OF_MVN = 1e-18  # the square of what its text adds to the deviation


def _check_type(dtype: str) -> None:
    if dtype not in FLOATS:
        raise Refused(f"it computes in {dtype}, and floating point is supported")


@operator("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def _layer(node: Node, scope: Scope) -> Lowered:
    """Over all axes from `axis` on, with a scale and a bias that broadcast to x."""
    x, shape, dtype = scope.first(node)
    output = node.outputs[0]
    _check_type(dtype)
    axis = normal_axis(int(node.attributes.get("axis", -1)), len(shape))
    if node.attributes.get("stash_type", 1) != 1:
        raise Refused("its stash_type is not 1 (float32), and statistics in another type are not supported")
    constants: dict[str, np.ndarray] = {}
    scale, bias = node.inputs[1], optional_input(node, 2)
    if any(broadcast(shape, scope.shape(name)) != shape for name in (scale, bias) if name):
        raise Refused(f"its scale or bias does not broadcast to an input of shape {shape}")
    length = math.prod(shape[axis:])
    plain = Normalize(
        count=math.prod(shape[:axis]),
        length=length,
        centred=node.op_type == "LayerNormalization",
        epsilon=float(node.attributes.get("epsilon", 1e-5)),
        dtype=dtype,
    )
    whole = TensorSpec(shape, dtype)
    specs = {output: whole}
    items: list[Kernel] = []
    if all(_tail(scope.shape(name)) == _tail(shape[axis:]) for name in (scale, bias) if name):
        if not bias:
            bias = f"{output}:bias"
            constants[bias], specs[bias] = np.zeros(length, dtype), TensorSpec((length,), dtype)
        items.append(Kernel(replace(plain, affine=True), (x, scale, bias), output))
    else:
        target, steps = f"{output}:normal", [("mul", scale), *([("add", bias)] if bias else [])]
        items.append(Kernel(plain, (x,), target))
        specs[target] = whole
        for place, (kind, name) in enumerate(steps):
            to = output if place == len(steps) - 1 else f"{output}:scaled"
            params = binary_params(kind, shape, scope.shape(name), shape, dtype)
            items.append(Kernel(params, (target, name), to))
            specs[to] = whole
            target = to
    statistics = TensorSpec((*shape[:axis], *(1,) * (len(shape) - axis)), dtype)
    beside = ("mean", "factor") if plain.centred else ("factor",)
    for name, gives in zip(node.outputs[1:], beside, strict=False):
        if name and name in scope.consumed:
            if dtype != "float32":
                raise Refused(
                    f"its output {name!r} is float32 of an input in {dtype}, and that is not supported"
                )
            items.append(Kernel(replace(plain, gives=gives), (x,), name))
            specs[name] = statistics
    return Lowered(tuple(items), specs, constants)


def _tail(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without the ones in front."""
    first = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


@operator("GroupNormalization", "InstanceNormalization")
def _groups(node: Node, scope: Scope) -> Lowered:
    """Over the pixels of each group of channels; an instance's groups are the channels.

    GroupNormalization is that of opset 21: with one scale a group, the form before it, ONNX takes none."""
    x, scale, bias = node.inputs
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    _check_type(dtype)
    if len(shape) < 2:
        raise Refused(f"its input of shape {shape} has no channels")
    n, c, pixels = shape[0], shape[1], math.prod(shape[2:])
    groups = int(node.attributes["num_groups"]) if node.op_type == "GroupNormalization" else c
    if groups < 1 or c % groups:
        raise Refused(f"{c} channels do not divide into {groups} groups")
    if node.attributes.get("stash_type", 1) != 1:
        raise Refused("its stash_type is not 1 (float32), and statistics in another type are not supported")
    for name in (scale, bias):
        if scope.shape(name) != (c,):
            raise Refused(f"its {name!r} of shape {scope.shape(name)} should have {c} values")
    length = c // groups * pixels
    params = Normalize(
        count=n * groups,
        length=length,
        inner=pixels,
        groups=groups,
        affine=True,
        epsilon=float(node.attributes.get("epsilon", 1e-5)),
        dtype=dtype,
    )
    return kernel(node, params, (x, scale, bias), shape, dtype)


@written("MeanVarianceNormalization")
def _mean_variance(node: Node, nodes: Nodes) -> None:
    """Over any axes, those of the batch and the pixels by default."""
    x, shape, dtype = nodes.around.first(node)
    _check_type(dtype)
    axes_attribute = node.attributes.get("axes", [0, 2, 3])
    axes = sorted({normal_axis(int(axis), len(shape)) for axis in axes_attribute})
    other_axes = [axis for axis in range(len(shape)) if axis not in axes]
    order = (*other_axes, *axes)
    params = Normalize(
        count=math.prod(shape[axis] for axis in other_axes),
        length=math.prod(shape[axis] for axis in axes),
        epsilon=_VARIANCE_OF_MVN,
        dtype=dtype,
    )
    if order == tuple(range(len(shape))):
        nodes.kernel(params, (x,), shape, node.outputs[0])
        return
    turned = nodes("Transpose", x, perm=order)
    normal = nodes.kernel(params, (turned,), nodes.shape(turned))
    nodes("Transpose", normal, perm=tuple(np.argsort(order).tolist()), output=node.outputs[0])


@operator("LRN")
def _lrn(node: Node, scope: Scope) -> Lowered:
    """x (n, c, spatial…) → y of the same shape."""
    x, shape, dtype = scope.first(node)
    size = int(node.attributes["size"])
    if len(shape) < 2 or size < 1:
        raise Refused(
            f"an input of shape {shape} and a size of {size} do not make a normalisation over channels"
        )
    lrn = Lrn(
        n=shape[0],
        c=shape[1],
        inner=math.prod(shape[2:]),
        size=size,
        alpha=float(node.attributes.get("alpha", 1e-4)),
        beta=float(node.attributes.get("beta", 0.75)),
        bias=float(node.attributes.get("bias", 1.0)),
        dtype=dtype,
    )
    return kernel(node, lrn, (x,), shape, dtype)


# -------------------------------------------------------------------------------------- batch normalization

# BatchNormalization outside training: a multiplication and an addition a channel.
#
# The fusion pass folds both into a Conv or Gemm before it; where there is none, they run as they are.


STATISTICS = ("scale", "bias", "mean", "variance")


@operator("BatchNormalization")
def _batch(node: Node, scope: Scope) -> Lowered:
    """x (n, c, …) → y = x · s + t, with s = scale / √(variance + epsilon) and t = bias − mean · s."""
    if node.attributes.get("training_mode", 0):
        raise Refused("it is in training mode (training_mode 1), and only inference is supported")
    scope.refuse_outputs(node, "running statistics")
    x, output = node.inputs[0], node.outputs[0]
    shape, dtype = scope.shape(x), scope.spec(x).dtype
    # One value a channel, of which a tensor with one axis has one; in opset 7 also one a channel and pixel.
    of_pixels = scope.opset < 9 and not node.attributes.get("spatial", 1)
    wanted = shape[1:] if of_pixels or len(shape) < 2 else shape[1:2]
    statistics = []
    for index, what in enumerate(STATISTICS, start=1):
        array = scope.constant(node, index, what)
        if array is None or not shape or array.shape != (wanted or (1,)):
            raise Refused(f"its {what} should have the shape {wanted or (1,)} for an input of shape {shape}")
        statistics.append(array.astype(np.float64))
    scale, bias, mean, variance = statistics
    factor = scale / np.sqrt(variance + float(node.attributes.get("epsilon", 1e-5)))
    column = wanted if of_pixels else wanted + (1,) * (len(shape) - 2)
    scaled, factor_name, shift_name = f"{output}:scaled", f"{output}:scale", f"{output}:shift"
    # Kept in float64 so that folding into a weight rounds once; what a step reads is cast to its own type.
    constants = {
        factor_name: factor.reshape(column),
        shift_name: (bias - mean * factor).reshape(column),
    }
    spec = TensorSpec(shape, dtype)
    kernels = (
        Kernel(binary_params("mul", shape, column, shape, dtype), (x, factor_name), scaled),
        Kernel(binary_params("add", shape, column, shape, dtype), (scaled, shift_name), output),
    )
    specs = {
        scaled: spec,
        output: spec,
        factor_name: TensorSpec(column, dtype),
        shift_name: TensorSpec(column, dtype),
    }
    return Lowered(kernels, specs, constants)
