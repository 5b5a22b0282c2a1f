"""Corrections of `onnx.reference` (bench.measure.answers.operators.mended) for operators that work along rows
of a tensor: the softmax family, and normalisation of groups of channels; and what these share."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun


class Mended(OpRun):
    """Reads the node's own attributes: the schema that the evaluator takes defaults from is the newest
    one, whatever the model's opset."""

    op_domain = ""

    def _get(self, name: str, default: Any = None) -> Any:
        for attribute in self.onnx_node.attribute:
            if attribute.name == name:
                value = onnx.helper.get_attribute_value(attribute)
                return value.decode() if isinstance(value, bytes) else value
        return default

    @property
    def _opset(self) -> int:
        return int(self.run_params["opsets"][""])

    def _one_output(self) -> None:
        if sum(bool(name) for name in self.onnx_node.output) > 1:
            raise NotImplementedError(f"{self.op_type} with more than one output")


class Softmax(Mended):
    """Below opset 13: "The input does not need to explicitly be a 2D vector; rather, it will be coerced into
    one", [a_0 · … · a_{k-1}, a_k · … · a_{n-1}] with k = axis, 1 by default; the reference takes axis alone.
    """

    def _logarithm(self, x: np.ndarray) -> np.ndarray:
        axis = self._get("axis", -1 if self._opset >= 13 else 1)
        if self._opset >= 13:
            axes: tuple[int, ...] = (axis,)
        else:
            axes = tuple(range(axis % x.ndim, x.ndim))
        shifted = x - x.max(axis=axes, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=axes, keepdims=True))

    def _run(self, x, **_):
        return (np.exp(self._logarithm(x)).astype(x.dtype),)


class Hardmax(Mended):
    """ "The operator computes the hardmax values for the given input: Hardmax(element in input, axis) = 1 if
    the element is the first maximum value along the specified axis, 0 otherwise"; below opset 13 of the input
    coerced into two axes, as Softmax; the reference takes the axis alone.
    """

    def _run(self, x, **_):
        axis = self._get("axis", -1 if self._opset >= 13 else 1) % x.ndim
        rows = x if self._opset >= 13 else x.reshape(*x.shape[:axis], -1)
        found = np.zeros_like(rows)
        np.put_along_axis(found, np.expand_dims(rows.argmax(axis), axis), 1, axis)
        return (found.reshape(x.shape),)


class GroupNormalization(Mended):
    """ "y = scale * (x - mean) / sqrt(variance + epsilon) + bias, where the mean and variance are computed
    per instance per group of channels, and scale and bias should be specified for each channel"; for each
    group in opset 18. The reference fails on the function that ONNX defines it by from opset 21 on.
    """

    def _run(self, x, scale, bias, **_):
        groups = self._get("num_groups")
        rows = x.reshape(x.shape[0], groups, -1)
        shifted = rows - rows.mean(axis=2, keepdims=True)
        spread = np.square(shifted).mean(axis=2, keepdims=True)
        found = (shifted / np.sqrt(spread + self._get("epsilon", 1e-5))).reshape(x.shape)
        each = x.shape[1] // len(scale)  # channels of one scale
        column = (1, -1, *(1,) * (x.ndim - 2))
        scale, bias = (np.repeat(values, each).reshape(column) for values in (scale, bias))
        return ((found * scale + bias).astype(x.dtype),)


class LogSoftmax(Softmax):
    """As Softmax, and "The LogSoftmax values are logsoftmax(input, axis) = Log(Softmax(input, axis=axis))";
    the reference takes the logarithm of values that may have become 0.
    """

    def _run(self, x, **_):
        return (self._logarithm(x).astype(x.dtype),)
