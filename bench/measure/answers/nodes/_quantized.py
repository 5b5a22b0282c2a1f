"""Products of eight-bit numbers in ONNX's nodes: what convolutions and matrix products have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from bench.measure.answers.nodes._common import Nodes, node
from kernels.ops._quantized import EIGHT_BITS, Quantized

TYPICAL = 60.0  # of an answer in eight bits: some are beyond what these hold, most are not


def nodes(
    p: Quantized, names: Sequence[str], output: str, op: str, axis: int, how: dict[str, object]
) -> Nodes:
    """op: "Conv" or "MatMul", with the attributes `how`; axis: of the channels, in the weights.

    What one node of whole numbers says is that node (ConvInteger, QLinearConv, …); else its parts in floating
    point, between DequantizeLinear and QuantizeLinear.
    """
    x, weight, x_zero, weight_zero, *behind = names
    extra: dict[str, np.ndarray] = {}
    if p.weight_zeros == 1:
        made = [node("Reshape", [weight_zero, "none"], "weight_zero")]
        extra["none"] = np.zeros(0, np.int64)
    else:
        made = [node("Identity", [weight_zero], "weight_zero")]
    made.append(node("Reshape", [x_zero, "scalar"], "x_zero"))
    extra["scalar"] = np.zeros(0, np.int64)
    if p.to == "int32":
        return [*made, node(f"{op}Integer", [x, weight, "x_zero", "weight_zero"], output, **how)], extra
    bias, scale, *shift = behind
    extra["one"] = np.array(1, np.float32)
    made.append(node("Cast", [scale], "scale", to=TensorProto.FLOAT))
    held = {"out_scale": np.array(p.out_scale, np.float32), "out_zero": np.array(p.out_zero, p.to)}
    if op == "Conv" and p.to in EIGHT_BITS and not shift:
        if p.weight_zeros == 1:
            made.append(node("Expand", ["weight_zero", "channels"], "zeros"))
            extra["channels"] = np.array([p.channels], np.int64)
        zeros = "zeros" if p.weight_zeros == 1 else "weight_zero"
        given = [x, "one", "x_zero", weight, "scale", zeros, "out_scale", "out_zero", bias]
        made.append(node("QLinearConv", given, "within", **how))
        return [*made, *_held(p, output)], extra | held | _limits(p)
    made.append(node("DequantizeLinear", [x, "one", "x_zero"], "real_x"))
    extra["ones"] = np.ones(p.weight_zeros, np.float32)
    lone = (
        node("Reshape", ["ones", "none"], "unit")
        if p.weight_zeros == 1
        else node("Identity", ["ones"], "unit")
    )
    made += [lone, node("DequantizeLinear", [weight, "unit", "weight_zero"], "real_weight", axis=axis)]
    made.append(node(op, ["real_x", "real_weight"], "sums", **how))
    shape = [-1, 1, 1] if op == "Conv" else [-1]
    extra |= {"along": np.array(shape, np.int64)}
    for name, source in (("bias", bias), ("scaling", "scale"), *(("shift", each) for each in shift)):
        made += [node("Cast", [source], f"{name}_real", to=TensorProto.FLOAT)]
        made += [node("Reshape", [f"{name}_real", "along"], name)]
    made += [node("Add", ["sums", "bias"], "biased"), node("Mul", ["biased", "scaling"], "scaled")]
    made += [node("Add", ["scaled", "shift"], "real")] if shift else [node("Identity", ["scaled"], "real")]
    if p.to == "float32":
        return [*made, node("Identity", ["real"], output)], extra
    made.append(node("QuantizeLinear", ["real", "out_scale", "out_zero"], "within"))
    return [*made, *_held(p, output)], extra | held | _limits(p)


def _held(p: Quantized, output: str) -> list[object]:
    """Between its limits, where these are closer than the type's."""
    return [node("Clip", ["within", "low", "high"], output)]


def _limits(p: Quantized) -> dict[str, np.ndarray]:
    return {"low": np.array(p.low, p.to), "high": np.array(p.high, p.to)}


def drawn(p: Quantized, place: int, values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Every number that eight bits hold; scales such that most answers are held in eight bits, too, and not a
    power of two, so that ties are rare."""
    if p.input_dtypes[place] in EIGHT_BITS:
        held = np.iinfo(p.input_dtypes[place])
        return random.integers(held.min, held.max + 1, values.shape)
    spread = 100.0**2 * np.sqrt(p.terms)  # of a sum
    if p.input_dtypes[place] == "int32":
        return np.rint(0.5 * spread * np.clip(values, -3, 3)).astype(np.int32)
    wanted = (TYPICAL if p.to in EIGHT_BITS else 1.0) * p.out_scale
    if place == 5:
        return (wanted / spread * np.exp(0.3 * np.clip(values, -3, 3))).astype(np.float32).astype(np.float64)
    return np.asarray(0.3 * wanted * values, np.float32).astype(np.float64)


def finished(
    p: Quantized, sums: np.ndarray, channels: np.ndarray, behind: Sequence[np.ndarray]
) -> np.ndarray:
    """Float64: the answer out of sums, each of one of the channels."""
    if p.to == "int32":
        return sums
    bias, scale, *shift = (array.reshape(-1)[channels] for array in behind)
    real = (sums + bias) * scale
    real = real + shift[0] if shift else real
    if p.to == "float32":
        return real
    return np.clip(np.rint(real / np.float32(p.out_scale)) + p.out_zero, p.low, p.high)
