"""Quantized files as other tools and people make them: by ONNX Runtime's quantizer in each of its forms, and
by hand with the operators of ONNX and of com.microsoft. FILES: name → what makes the model."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
X = (3, 16, 16)  # of an image
Array = np.ndarray
node = helper.make_node


class Net:
    """Nodes, one behind the other, with drawn weights; each method gives the name of what it makes."""

    def __init__(self, seed: int = 0, opset: int = 17, shape: Sequence[int] = X) -> None:
        self.random, self.opset, self.shape = np.random.default_rng(seed), opset, shape
        self.nodes: list[onnx.NodeProto] = []
        self.held: dict[str, Any] = {}

    def __call__(self, op: str, *inputs: str, out: str = "", domain: str = "", **attributes: Any) -> str:
        out = out or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(node(op, list(inputs), [out], out, domain=domain, **attributes))
        return out

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.held)}"
        self.held[name] = value if isinstance(value, onnx.TensorProto) else np.asarray(value, dtype)
        return name

    def drawn(self, *shape: int) -> str:
        return self.constant(self.random.normal(size=shape) / np.sqrt(np.prod(shape[1:])))

    def whole(self, dtype: str, *shape: int) -> str:
        info = np.iinfo(dtype)
        return self.constant(self.random.integers(info.min, info.max + 1, shape), dtype)

    def conv(self, x: str, m: int, c: int, k: int = 3, bias: bool = True, **attributes: Any) -> str:
        weights = self.drawn(m, c // attributes.get("group", 1), k, k)
        more = [self.drawn(m)] if bias else []
        attributes.setdefault("pads", [k // 2] * 4)
        return self("Conv", x, weights, *more, **attributes)

    def dense(self, x: str, k: int, n: int) -> str:
        return self("Gemm", x, self.drawn(n, k), self.drawn(n), transB=1)

    # ---------------------------------------------------------------------------------- by hand

    def q(self, x: str, scale: Any, zero: Any, dtype: str = "uint8", out: str = "", **attributes: Any) -> str:
        return self(
            "QuantizeLinear", x, self.constant(scale), self.constant(zero, dtype), out=out, **attributes
        )

    def dq(self, x: str, scale: Any, zero: Any, dtype: str = "uint8", **attributes: Any) -> str:
        return self("DequantizeLinear", x, self.constant(scale), self.constant(zero, dtype), **attributes)

    def through(self, x: str, scale: Any, zero: Any, dtype: str = "uint8", out: str = "") -> str:
        """To whole numbers and back."""
        made = self.dq(self.q(x, scale, zero, dtype), scale, zero, dtype)
        return self("Identity", made, out=out) if out else made

    def weights(self, scale: Any, dtype: str, *shape: int, axis: int = 0, zero: Any = 0) -> str:
        zero = np.broadcast_to(zero, np.shape(scale))
        return self.dq(self.whole(dtype, *shape), scale, zero, dtype, axis=axis)

    def proto(self, y: str, rank: int = 2, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
        held = [
            value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value, name)
            for name, value in self.held.items()
        ]
        for name, tensor in zip(self.held, held, strict=True):
            tensor.name = name
        graph = helper.make_graph(
            self.nodes, "quantized",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *self.shape])],
            [helper.make_tensor_value_info(y, dtype, [None] * rank)], held,
        )  # fmt: skip
        domains = {each.domain for each in self.nodes} | {""}
        opsets = [helper.make_opsetid(each, 1 if each else self.opset) for each in sorted(domains)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10 if self.opset > 20 else 8)


# ------------------------------------------------------------------------------------------ nets of float32


def lenet(opset: int) -> onnx.ModelProto:
    net = Net(1, opset)
    x = net("Relu", net.conv("x", 6, 3, 5))
    x = net("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net("Relu", net.conv(x, 8, 6, 5, pads=[0] * 4))
    x = net("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net("Relu", net.dense(net("Flatten", x), 32, 24))
    x = net.dense(x, 24, 10)
    return net.proto(x)


def resnet(opset: int) -> onnx.ModelProto:
    """Two blocks, of which the second strides and projects what goes past it."""
    net = Net(2, opset)
    x = net("Relu", net.conv("x", 8, 3))
    x = net("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for m, stride in ((8, 1), (12, 2)):
        y = net("Relu", net.conv(x, m, 8, strides=[stride] * 2))
        y = net.conv(y, m, m)
        past = x if m == 8 else net.conv(x, m, 8, 1, strides=[2, 2], bias=False)
        x = net("Relu", net("Add", y, past))
    x = net.dense(net("Flatten", net("GlobalAveragePool", x)), 12, 10)
    return net.proto(x)


def mobilenet(opset: int) -> onnx.ModelProto:
    """One channel a group, Clip from 0 to 6, a sum of ends that no activation follows."""
    net = Net(3, opset)
    limits = net.constant(0.0), net.constant(6.0)
    x = net("Clip", net.conv("x", 8, 3, strides=[2, 2]), *limits)
    y = net("Clip", net.conv(x, 16, 8, 1), *limits)
    y = net("Clip", net.conv(y, 16, 16, group=16), *limits)
    y = net.conv(y, 8, 16, 1)
    x = net("Add", x, y)
    x = net("Clip", net.conv(x, 12, 8, 3, group=4), *limits)
    x = net("Softmax", net.dense(net("Flatten", net("GlobalAveragePool", x)), 12, 10))
    return net.proto(x)


def squeezenet(opset: int) -> onnx.ModelProto:
    """Two branches side by side, each in its own range."""
    net = Net(4, opset)
    x = net("MaxPool", net("Relu", net.conv("x", 8, 3)), kernel_shape=[2, 2], strides=[2, 2])
    s = net("Relu", net.conv(x, 4, 8, 1))
    a, b = net("Relu", net.conv(s, 6, 4, 1)), net("Relu", net.conv(s, 6, 4, 3))
    x = net("Concat", a, net("Mul", b, net.constant(4.0)), axis=1)
    x = net("Relu", net.conv(x, 10, 12, 1))
    return net.proto(net("Flatten", net("GlobalAveragePool", x)))


class _Calibration:
    def __init__(self) -> None:
        random = np.random.default_rng(1)
        self._fed: Iterator[Any] = iter([{"x": random.normal(size=(4, *X)).astype("f4")} for _ in range(3)])

    def get_next(self) -> Any:
        return next(self._fed, None)


def by_quantizer(
    make: Callable[[int], onnx.ModelProto], form: str = "QDQ", x: str = "QUInt8", w: str = "QInt8",
    opset: int = 17, extra: Mapping[str, Any] | None = None, **how: Any,
) -> onnx.ModelProto:  # fmt: skip
    """As onnxruntime.quantization makes it. form: "QDQ", "QOperator" or "dynamic"."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

    logging.disable(logging.WARNING)  # it advises to optimise first
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "source.onnx", Path(folder) / "target.onnx"
            onnx.save(make(opset), source)
            if form == "dynamic":
                quantize_dynamic(
                    source, target, weight_type=QuantType[w], extra_options=dict(extra or {}), **how
                )
            else:
                quantize_static(
                    source, target, _Calibration(), QuantFormat[form], activation_type=QuantType[x],
                    weight_type=QuantType[w], extra_options=dict(extra or {}), **how,
                )  # fmt: skip
            return onnx.load(target)
    finally:
        logging.disable(logging.NOTSET)


QUANTIZED: dict[str, Callable[[], onnx.ModelProto]] = {
    "lenet, uint8 × int8": partial(by_quantizer, lenet),
    "lenet, int8 × int8, opset 13": partial(by_quantizer, lenet, x="QInt8", opset=13),
    "lenet, operators, uint8 × uint8": partial(by_quantizer, lenet, "QOperator", w="QUInt8"),
    "lenet, int16": partial(by_quantizer, lenet, x="QInt16", w="QInt8", opset=21),
    "lenet, uint16 of com.microsoft": partial(
        by_quantizer, lenet, x="QUInt16", extra={"UseQDQContribOps": True}
    ),
    "lenet, int4 weights": partial(by_quantizer, lenet, w="QInt4", opset=21),
    "lenet, dynamic": partial(by_quantizer, lenet, "dynamic"),
    "resnet, a channel": partial(by_quantizer, resnet, per_channel=True),
    "resnet, symmetric": partial(
        by_quantizer, resnet, x="QInt8", extra={"ActivationSymmetric": True, "WeightSymmetric": True}
    ),
    "resnet, not symmetric": partial(
        by_quantizer, resnet, x="QInt8", w="QInt8", extra={"WeightSymmetric": False}
    ),
    "resnet, operators": partial(by_quantizer, resnet, "QOperator", per_channel=True),
    "resnet, operators, int8": partial(by_quantizer, resnet, "QOperator", x="QInt8"),
    "resnet, 7 bits, opset 19": partial(by_quantizer, resnet, reduce_range=True, opset=19),
    "resnet, bias in float32": partial(by_quantizer, resnet, extra={"QuantizeBias": False}),
    "resnet, weights behind Q": partial(by_quantizer, resnet, extra={"AddQDQPairToWeight": True}),
    "resnet, a pair each": partial(by_quantizer, resnet, extra={"DedicatedQDQPair": True}, opset=21),
    "resnet, dynamic, uint8, a channel": partial(
        by_quantizer, resnet, "dynamic", w="QUInt8", per_channel=True
    ),
    "mobilenet, a channel, opset 20": partial(by_quantizer, mobilenet, per_channel=True, opset=20),
    "mobilenet, activations kept": partial(
        by_quantizer, mobilenet, extra={"QDQKeepRemovableActivations": True}
    ),
    "mobilenet, operators": partial(by_quantizer, mobilenet, "QOperator"),
    "mobilenet, convolutions alone": partial(by_quantizer, mobilenet, op_types_to_quantize=["Conv"]),
    "squeezenet": partial(by_quantizer, squeezenet),
    "squeezenet, operators, opset 15": partial(by_quantizer, squeezenet, "QOperator", opset=15),
    "squeezenet, 16 bits × 16 bits": partial(by_quantizer, squeezenet, x="QUInt16", w="QInt16", opset=21),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ by hand


def integer() -> onnx.ModelProto:
    """DynamicQuantizeLinear, ConvInteger, MatMulInteger; the scales multiplied beside."""
    net = Net(5)
    net.nodes.append(node("DynamicQuantizeLinear", ["x"], ["dx", "ds", "dz"], "dynamic"))
    w = net.whole("uint8", 4, 3, 3, 3)
    x = net("ConvInteger", "dx", w, "dz", net.constant(255, "uint8"), pads=[1, 0, 1, 1])
    x = net("Mul", net("Cast", x, to=1), net("Mul", "ds", net.constant(0.01)))
    x = net("Flatten", net("GlobalAveragePool", net("Relu", x)))
    net.nodes.append(node("DynamicQuantizeLinear", [x], ["ex", "es", "ez"], "dynamic2"))
    x = net("MatMulInteger", "ex", net.whole("int8", 4, 5), "ez", net.constant([-128, 0, 127, 1, -1], "int8"))
    return net.proto(net("Mul", net("Cast", x, to=1), net("Mul", "es", net.constant(0.02))))


def linear() -> onnx.ModelProto:
    """QLinearConv with a zero point at each edge, a scale a channel and a bias; MaxPool of bytes;
    QLinearMatMul."""
    net = Net(6)
    x = net.q("x", 0.03, 255)
    scale, zero = net.constant([0.01, 0.02, 0.005, 0.04]), net.constant([0] * 4, "int8")
    bias = net.constant([9999, -9999, 0, 1], "int32")
    c = net.constant
    x = net("QLinearConv", x, c(0.03), c(255, "uint8"), net.whole("int8", 4, 3, 3, 3), scale, zero,
            c(0.125), c(0, "uint8"), bias, strides=[2, 2])  # fmt: skip
    x = net("MaxPool", x, kernel_shape=[2, 2])
    x = net("Flatten", x)
    x = net("QLinearMatMul", x, c(0.125), c(0, "uint8"), net.whole("int8", 144, 7), c(0.02), c(-128, "int8"),
            c(8.0), c(127, "uint8"))  # fmt: skip
    return net.proto(net.dq(x, 8.0, 127))


def microsoft() -> onnx.ModelProto:
    """The operators of com.microsoft that ONNX Runtime writes, one behind the other."""
    net = Net(7)
    c = net.constant
    own = partial(net, domain=MICROSOFT)
    x = net.q("x", 0.03, 128)
    x = net("QLinearConv", x, c(0.03), c(128, "uint8"), net.whole("int8", 6, 3, 3, 3), c(0.01), c(0, "int8"),
            c(0.1), c(100, "uint8"), pads=[1, 1, 1, 1])  # fmt: skip
    a = own("QLinearLeakyRelu", x, c(0.1), c(100, "uint8"), c(0.08), c(20, "uint8"), alpha=0.1)
    b = own("QLinearSigmoid", x, c(0.1), c(100, "uint8"), c(1 / 256), c(0, "uint8"))
    y = own("QLinearMul", a, c(0.08), c(20, "uint8"), b, c(1 / 256), c(0, "uint8"), c(0.05), c(10, "uint8"))
    x = own("QLinearAdd", x, c(0.1), c(100, "uint8"), y, c(0.05), c(10, "uint8"), c(0.125), c(99, "uint8"))
    x = own("QLinearConcat", c(0.11), c(80, "uint8"), x, c(0.125), c(99, "uint8"), a, c(0.08), c(20, "uint8"),
            axis=1)  # fmt: skip
    x = own("QLinearAveragePool", x, c(0.11), c(80, "uint8"), c(0.1), c(81, "uint8"), kernel_shape=[2, 2],
            strides=[2, 2])  # fmt: skip
    x = own("QLinearGlobalAveragePool", x, c(0.1), c(81, "uint8"), c(0.01), c(128, "uint8"))
    x = net("Flatten", x)
    x = own("QGemm", x, c(0.01), c(128, "uint8"), net.whole("int8", 5, 12), c(0.02), c(0, "int8"),
            c([1, 2, 3, 4, 5], "int32"), c(0.03), c(0, "uint8"), transB=1)  # fmt: skip
    return net.proto(net.dq(x, 0.03, 0))


def saturating() -> onnx.ModelProto:
    """Scales so small that half of the values are held at the edges, in int8 with the zero point at each."""
    net = Net(8)
    x = net.through("x", 0.005, -128, "int8")
    x = net("Conv", x, net.weights(0.02, "int8", 4, 3, 3, 3, zero=127))
    x = net("Relu", net.through(x, 0.05, 127, "int8"))
    x = net("Conv", x, net.weights([0.01, 0.02, 0.03, 0.04], "int8", 4, 4, 1, 1))
    return net.proto(net.through(x, 0.004, -128, "int8", "y"), 4)


def halves() -> onnx.ModelProto:
    """Scales of powers of two, so that every second value lies half-way between two steps."""
    net = Net(9)
    x = net.through("x", 0.25, 100)
    x = net("Conv", x, net.weights(0.5, "int8", 4, 3, 1, 1))
    x = net.through(x, 0.25 * 0.5 * 2, 3)
    x = net("Add", x, net.through(net("MaxPool", x, kernel_shape=[1, 1]), 0.5, 7))
    return net.proto(net.through(x, 0.5, 128, out="y"), 4)


def odd_axes() -> onnx.ModelProto:
    """Scales along the last axis and a negative one, of what passes through."""
    net = Net(10)
    scales = net.random.uniform(0.01, 0.05, 16)
    x = net.dq(net.q("x", scales, [0] * 16, "int8", axis=3), scales, [0] * 16, "int8", axis=3)
    x = net.dq(net.q(x, scales, [128] * 16, axis=-2), scales, [128] * 16, axis=-2)
    x = net("Conv", x, net.weights([0.01] * 3, "int8", 4, 3, 3, 3, axis=1), group=1)
    return net.proto(net.through(x, 0.05, 128, out="y"), 4)


def blocked() -> onnx.ModelProto:
    """int4 weights in blocks of 16 along the sum, of which the last is cut; and 16 bits."""
    net = Net(11, 21)
    x = net.through(net("Flatten", "x"), 0.03, 128)
    values = net.random.integers(-8, 8, (768, 6))
    packed = helper.make_tensor("w", TensorProto.INT4, (768, 6), values.reshape(-1))
    w = net("DequantizeLinear", net.constant(packed), net.constant(net.random.uniform(0.01, 0.1, (24, 6))),
            axis=0, block_size=32)  # fmt: skip
    x = net.through(net("MatMul", x, w), 0.001, 0, "int16")
    return net.proto(net("Relu", x))


def branches() -> onnx.ModelProto:
    """Concat of three ranges and a Relu on whole numbers, a transposed product, a depthwise one."""
    net = Net(12)
    x = net.through("x", 0.03, 120)
    a = net.through(net("Conv", x, net.weights(0.01, "int8", 4, 3, 1, 1)), 0.02, 100)
    b = net.through(net("Conv", x, net.weights(0.01, "int8", 6, 1, 3, 3), group=3, pads=[1] * 4), 0.04, 90)
    x = net.through(net("Concat", a, b, x, axis=1), 0.05, 110)
    x = net.through(net("Relu", x), 0.05, 0)
    x = net.through(net("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 0.05, 0)
    x = net.through(net("GlobalAveragePool", x), 0.02, 0)
    x = net("Gemm", net("Flatten", x), net.weights(0.02, "uint8", 5, 13, zero=128), transB=1)
    return net.proto(net.through(x, 0.03, 128, out="y"))


def without_zeros() -> onnx.ModelProto:
    """No zero points at all, and a Relu behind the QuantizeLinear of a product in int8."""
    net = Net(13)
    x = net("DequantizeLinear", net("QuantizeLinear", "x", net.constant(0.03)), net.constant(0.03))
    x = net.through(net("Conv", x, net.weights(0.01, "int8", 4, 3, 3, 3)), 0.02, -3, "int8")
    x = net.through(net("Clip", x, net.constant(0.0), net.constant(1.0)), 1 / 127, 0, "int8")
    return net.proto(net("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), 4)


def bytes_out() -> onnx.ModelProto:
    """What it gives out are the whole numbers themselves."""
    net = Net(14)
    x = net.through("x", 0.03, 120)
    x = net("Conv", x, net.weights(0.01, "int8", 4, 3, 3, 3))
    return net.proto(net.q(x, 0.04, 100, out="y"), 4, TensorProto.UINT8)


def fp8() -> onnx.ModelProto:
    net = Net(15, 19)
    zero = helper.make_tensor("z", TensorProto.FLOAT8E4M3FN, [], [0.0])
    of = net.constant(0.05), net.constant(zero)
    x = net("DequantizeLinear", net("QuantizeLinear", "x", *of), *of)
    return net.proto(net("Conv", x, net.drawn(4, 3, 3, 3)), 4)


BY_HAND: dict[str, Callable[[], onnx.ModelProto]] = {
    made.__name__: made
    for made in (
        integer, linear, microsoft, saturating, halves, odd_axes, blocked, branches, without_zeros, bytes_out,
        fp8,
    )
}  # fmt: skip

FILES = QUANTIZED | BY_HAND
