"""ONNX models built from a description: the language for small nets, the LeNet-style nets, and AlexNet.

A `Net` describes an architecture once: the ONNX file, the shapes of its weights and, in models/train.py, the
training graph follow from it. Every node has a name; its output tensor has the same name, its weights are
"<node>.weight" and "<node>.bias". The batch axis is the dynamic "N".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

OPSET = 17
IR_VERSION = 8  # the oldest that holds opset 17, so that older ONNX Runtimes read the file too
INPUT = "input"


class Net:
    """A chain of layers under construction. shape: of the last tensor, without the batch axis."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        self.input_shape = (channels, height, width)
        self.shape: tuple[int, ...] = self.input_shape
        self.tensor = INPUT
        self.nodes: list[onnx.NodeProto] = []
        self.parameters: dict[str, tuple[int, ...]] = {}  # in network order

    def _node(
        self,
        op_type: str,
        name: str,
        shape: tuple[int, ...],
        weights: tuple[str, ...] = (),
        **attributes: Any,
    ) -> Net:
        inputs = [self.tensor, *weights]
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        self.tensor, self.shape = name, shape
        return self

    def _weights(self, name: str, shape: tuple[int, ...], bias: bool) -> tuple[str, ...]:
        self.parameters[f"{name}.weight"] = shape
        if not bias:
            return (f"{name}.weight",)
        self.parameters[f"{name}.bias"] = shape[:1]
        return (f"{name}.weight", f"{name}.bias")

    def conv(
        self,
        name: str,
        maps: int,
        kernel: int,
        stride: int = 1,
        pad: int = 0,
        group: int = 1,
        bias: bool = True,
    ) -> Net:
        """A convolution with `maps` square filters; `pad` on every side."""
        c, h, w = self.shape
        weights = self._weights(name, (maps, c // group, kernel, kernel), bias)
        out = (maps, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1)
        return self._node(
            "Conv",
            name,
            out,
            weights,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=group,
        )

    def max_pool(self, name: str, kernel: int, stride: int, beyond: bool = False) -> Net:
        """beyond: the last window may reach beyond the image."""
        c, h, w = self.shape
        last = stride - 1 if beyond else 0
        out = (c, (h - kernel + last) // stride + 1, (w - kernel + last) // stride + 1)
        more: dict[str, Any] = {"ceil_mode": 1} if beyond else {}
        return self._node(
            "MaxPool", name, out, kernel_shape=[kernel, kernel], strides=[stride, stride], **more
        )

    def batch_norm(self, name: str) -> Net:
        weights = tuple(f"{name}.{part}" for part in ("weight", "bias", "running_mean", "running_var"))
        self.parameters |= dict.fromkeys(weights, self.shape[:1])
        return self._node("BatchNormalization", name, self.shape, weights)

    def lrn(self, name: str, size: int, alpha: float, beta: float, bias: float) -> Net:
        return self._node("LRN", name, self.shape, size=size, alpha=alpha, beta=beta, bias=bias)

    def relu(self, name: str) -> Net:
        return self._node("Relu", name, self.shape)

    def tanh(self, name: str) -> Net:
        return self._node("Tanh", name, self.shape)

    def flatten(self, name: str) -> Net:
        return self._node("Flatten", name, (math.prod(self.shape),), axis=1)

    def fc(self, name: str, outputs: int) -> Net:
        """Fully connected, y = x · weightᵀ + bias with weight (outputs, inputs)."""
        weights = self._weights(name, (outputs, self.shape[0]), bias=True)
        return self._node("Gemm", name, (outputs,), weights, transB=1)

    def softmax(self, name: str) -> Net:
        return self._node("Softmax", name, self.shape, axis=-1)

    def model(self, name: str, weights: Mapping[str, np.ndarray], about: str = "") -> onnx.ModelProto:
        """The ONNX model with these weights, widened to float32. Raises ValueError where one does not fit."""
        for key, shape in self.parameters.items():
            if key not in weights or weights[key].shape != shape:
                raise ValueError(f"the weights of {name} lack {key} of shape {shape}")
        source = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["N", *self.input_shape])
        result = helper.make_tensor_value_info(self.tensor, TensorProto.FLOAT, ["N", *self.shape])
        model = helper.make_model(
            helper.make_graph(self.nodes, name, [source], [result], doc_string=about),
            producer_name="kernelscope",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
        for key, shape in self.parameters.items():  # put where they stay: graph and model are made by copying
            data = np.ascontiguousarray(weights[key], dtype="<f4").tobytes()
            model.graph.initializer.add(name=key, data_type=TensorProto.FLOAT, dims=shape, raw_data=data)
        return model


def tensor_sha256(weights: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over the tensors' bytes (float32, little-endian, row-major), in order of their names."""
    digest = hashlib.sha256()
    for key in sorted(weights):
        digest.update(np.ascontiguousarray(weights[key], dtype="<f4").data)
    return digest.hexdigest()


def lenet5(classes: int = 10) -> Net:
    """LeNet-5 after LeCun et al. 1998 (6 and 16 maps, 120 and 84 units), with max-pooling, tanh and softmax.

    Its third convolution sees a 5×5 image with a 5×5 filter, and is written as what it is: fully connected.
    """
    net = Net(1, 28, 28)
    net.conv("conv1", 6, 5, pad=2).tanh("tanh1").max_pool("pool1", 2, 2)
    net.conv("conv2", 16, 5).tanh("tanh2").max_pool("pool2", 2, 2).flatten("flatten")
    net.fc("fc3", 120).tanh("tanh3").fc("fc4", 84).tanh("tanh4").fc("fc5", classes)
    return net.softmax("prob")


def ece408(classes: int = 10) -> Net:
    """The net of the UIUC course ECE 408 with one convolution; 128 hidden units instead of its 500."""
    net = Net(1, 28, 28)
    net.conv("conv1", 50, 5, bias=False).tanh("tanh1").max_pool("pool1", 2, 2).flatten("flatten")
    return net.fc("fc2", 128).tanh("tanh2").fc("fc3", classes).softmax("prob")


def ece408_2conv(classes: int = 10) -> Net:
    """The later net of the same course: two convolutions on images of 48×48."""
    net = Net(1, 48, 48)
    net.conv("conv1", 12, 5).tanh("tanh1").max_pool("pool1", 2, 2)
    net.conv("conv2", 24, 5).tanh("tanh2").max_pool("pool2", 2, 2).flatten("flatten")
    return net.fc("fc3", 64).tanh("tanh3").fc("fc4", classes).softmax("prob")


SMALL_NETS: dict[str, Callable[[], Net]] = {f.__name__: f for f in (lenet5, ece408, ece408_2conv)}


SEED = 2012
CHUNK = 1 << 20  # random numbers drawn at once: 8 MB of float64 instead of 300 MB for fc6

# The paper divides by (2 + 1e-4 · Σ x²)^0.75 over 5 channels; ONNX's LRN divides alpha by the size first.
# Size, alpha, beta, bias; Caffe's nets were trained with others (its alpha is divided by the size, too).
LRN = (5, 5e-4, 0.75, 2.0)
LRN_OF_CAFFE = (5, 1e-4, 0.75, 1.0)


def alexnet(classes: int = 1000, lrn: tuple[int, float, float, float] = LRN, thin: int = 1) -> Net:
    """AlexNet after Krizhevsky, Sutskever and Hinton 2012: images of 227×227×3; 96/256/384/384/256 maps;
    conv2, conv4 and conv5 in two groups; overlapping 3×3 pools. thin: all widths are divided by this."""
    net = Net(3, 227, 227)
    net.conv("conv1", 96 // thin, 11, stride=4).relu("relu1").lrn("norm1", *lrn).max_pool("pool1", 3, 2)
    net.conv("conv2", 256 // thin, 5, pad=2, group=2).relu("relu2").lrn("norm2", *lrn)
    net.max_pool("pool2", 3, 2)
    net.conv("conv3", 384 // thin, 3, pad=1).relu("relu3")
    net.conv("conv4", 384 // thin, 3, pad=1, group=2).relu("relu4")
    net.conv("conv5", 256 // thin, 3, pad=1, group=2).relu("relu5").max_pool("pool5", 3, 2)
    net.flatten("flatten").fc("fc6", 4096 // thin).relu("relu6").fc("fc7", 4096 // thin).relu("relu7")
    return net.fc("fc8", classes).softmax("prob")


def he_uniform(
    parameters: dict[str, tuple[int, ...]], seed: int, progress: Callable[[float], None] | None = None
) -> dict[str, np.ndarray]:
    """float32 weights uniform in ±√(6 / fan-in), biases zero, drawn in the given order. They keep the scale
    of activations through the net, so times, errors and memory are those of a trained net. The draw is
    NumPy's frozen legacy generator: the same everywhere.

    progress: called with the fraction that is drawn.
    """
    random = np.random.RandomState(seed)
    total = sum(math.prod(shape) for shape in parameters.values())
    drawn = 0
    weights = {}
    for key, shape in parameters.items():
        tensor = np.zeros(math.prod(shape), np.float32)
        if len(shape) > 1:
            bound = math.sqrt(6.0 / math.prod(shape[1:]))
            for start in range(0, tensor.size, CHUNK):
                part = tensor[start : start + CHUNK]
                part[:] = (2.0 * random.random_sample(part.size) - 1.0) * bound
                if progress:
                    progress((drawn + start + part.size) / total)
        drawn += tensor.size
        weights[key] = tensor.reshape(shape)
    return weights


def body(progress: Callable[[float], None] | None = None) -> dict[str, np.ndarray]:
    """All weights of AlexNet below fc8: frozen random features, on which our trained last layers stand."""
    parameters = {k: s for k, s in alexnet().parameters.items() if not k.startswith("fc8.")}
    return he_uniform(parameters, SEED, progress)
