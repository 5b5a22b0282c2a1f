"""Grouping: what a Conv or Gemm can do on the way out (scale, bias, activation) becomes part of its step.

    Conv | Gemm | MatMul → Mul by a constant a channel → Add of a constant a channel → Relu | …
    Gemm | MatMul → … → Gelu, where the device has kernels for that (`behind`)
    Mul → Add of a constant, walked alike (a normalisation that stands alone)
    MaxPool | AveragePool | Add | Sub | Mul | Div → Relu | Tanh | Sigmoid | Clip from 0 to 6 (Relu6)
    QuantizeLinear → DequantizeLinear by the same scale

also where a view that changes nothing stands between, as a cast to the same type is one.
BatchNormalization comes here as its Mul and Add. A tensor that the graph gives out, or that something else
reads, is never fused away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.ops._base import contiguous_strides
from engine.passes.trace import Program, free_name
from kernels.ops import ACTIVATIONS, Params
from kernels.ops.binary import Binary
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.pool import Pool
from kernels.ops.quantize import Quantize
from kernels.ops.unary import Unary


def fuse(program: Program, behind: Collection[str] = ()) -> Program:
    """The program with every kernel that its producer can do folded into that producer's step. behind: what
    products do on the way out beside kernels.ops.ACTIVATIONS."""
    fuser = _Fuser(program, behind)
    for item in program.items:
        fuser.add(item)
    items = tuple(item for item in fuser.items if item is not None)
    return replace(program, items=items, specs=fuser.specs, constants=fuser.constants)


@dataclass(frozen=True)
class _Affine:
    """y = x · scale + shift with a constant a channel; None leaves that part out."""

    source: str
    scale: np.ndarray | None
    shift: np.ndarray | None


class _Fuser:
    def __init__(self, program: Program, behind: Collection[str]) -> None:
        self.behind = behind
        self.items: list[Kernel | View | None] = []  # None: a view that a step took in
        self.specs = dict(program.specs)
        self.constants = dict(program.constants)
        self.places: dict[str, int] = {}
        self.uses = Counter(program.outputs)
        for item in program.items:
            self.uses.update((item.source,) if isinstance(item, View) else item.inputs)

    def add(self, item: Kernel | View) -> None:
        merged = None
        if isinstance(item, Kernel):
            merged = self._merged(item) or self._past_views(item)
        if merged is None:
            self.places[item.output] = len(self.items)
            self.items.append(item)
            return
        # The step stays where its first node was: what follows it reads nothing that came in between.
        source, kernel = merged
        place = self.places.pop(source)
        self.places[kernel.output] = place
        self.items[place] = kernel

    def _past_views(self, item: Kernel) -> tuple[str, Kernel] | None:
        """As `_merged`, past views that change nothing, such as casts to the same type, which then belong to
        the step."""
        for source in item.inputs:
            views: list[View] = []
            name = source
            while isinstance(view := self._at(name), View) and self.specs[name] == self.specs[view.source]:
                if self.uses[name] != 1:
                    break
                views.insert(0, view)
                name = view.source
            if not views:
                continue
            inputs = tuple(name if other == source else other for other in item.inputs)
            nodes = tuple(node for view in views for node in view.nodes) + item.nodes
            merged = self._merged(replace(item, inputs=inputs, nodes=nodes))
            if merged is not None and merged[0] == name:
                for view in views:
                    self.items[self.places.pop(view.output)] = None
                return merged
        return None

    def _at(self, name: str) -> Kernel | View | None:
        """What makes a tensor."""
        place = self.places.get(name)
        return None if place is None else self.items[place]

    def _merged(self, item: Kernel) -> tuple[str, Kernel] | None:
        """The tensor that vanishes, and its producer with `item` folded in; None where it cannot be."""
        for source in item.inputs:
            place = self.places.get(source)
            if place is None or self.uses[source] != 1:
                continue
            producer = self.items[place]
            if not isinstance(producer, Kernel):
                continue
            quantized = self._quantized(producer, item)
            if quantized is None and producer.params.dtype != item.params.dtype:
                continue
            joined = replace(
                producer,
                output=item.output,
                nodes=producer.nodes + tuple(name for name in item.nodes if name not in producer.nodes),
                parameters=producer.parameters + item.parameters,
            )
            if quantized is not None:
                return source, replace(joined, params=quantized)
            kernel = (
                self._activated(joined, item)
                or self._scaled(joined, item, source)
                or self._summed(joined, item, source)
            )
            if kernel is not None:
                return source, kernel
        return None

    def _quantized(self, producer: Kernel, item: Kernel) -> Quantize | None:
        """To whole numbers and back by the same scale and zero: both at once."""
        before, after = producer.params, item.params
        if not isinstance(before, Quantize) or not isinstance(after, Quantize):
            return None
        if before.to != before.through or replace(after, dtype="float32", to=before.to) != before:
            return None
        pairs = zip(producer.inputs[1:], item.inputs[1:], strict=True)
        alike = all(
            one in self.constants
            and other in self.constants
            and np.array_equal(self.constants[one], self.constants[other])
            for one, other in pairs
        )
        return replace(before, to="float32") if alike else None

    def _activated(self, producer: Kernel, item: Kernel) -> Kernel | None:
        before, after = producer.params, item.params
        activation = _activation(after)
        if activation is None and isinstance(before, Gemm) and isinstance(after, Unary):
            activation = after.kind if after.kind in self.behind else None
        if activation is None:
            return None
        if not isinstance(before, Conv | Gemm | Pool | Binary | MultiplyAdd):
            return None
        if before.activation is not None:
            return None
        return replace(producer, params=replace(before, activation=activation))

    def _scaled(self, producer: Kernel, item: Kernel, source: str) -> Kernel | None:
        before = producer.params
        if not isinstance(before, Conv | Gemm) or before.activation is not None:
            return None
        shape = self.specs[source].shape
        axis = 1 if isinstance(before, Conv) else len(shape) - 1
        if self.specs[item.output].shape != shape:
            return None
        if isinstance(before, Gemm) and (not shape or shape[axis] != before.n):
            return None
        affine = self._affine(item, source, shape, axis)
        if affine is None:
            return None
        return self._with_affine(producer, before, affine, item.output)

    def _summed(self, producer: Kernel, item: Kernel, source: str) -> Kernel | None:
        """A product and the sum of it and a constant, walked alike."""
        before, after = producer.params, item.params
        if not isinstance(before, Binary) or not isinstance(after, Binary) or before.dtype != "float32":
            return None
        kinds, activations = (before.kind, after.kind), (before.activation, after.activation)
        if kinds != ("mul", "add") or activations != (None, None) or before.shape != after.shape:
            return None
        place = item.inputs.index(source)
        other = item.inputs[1 - place]
        steps = after.strides
        if other not in self.constants or steps[place] != contiguous_strides(after.shape):
            return None
        params = MultiplyAdd(before.shape, before.strides_a, before.strides_b, steps[1 - place])
        return replace(producer, params=params, inputs=(*producer.inputs, other))

    def _affine(self, item: Kernel, source: str, shape: tuple[int, ...], axis: int) -> _Affine | None:
        """`item` as a scale or shift of `source`, if its other operand is one constant a channel."""
        arithmetic = item.params
        if not isinstance(arithmetic, Binary) or arithmetic.activation is not None:
            return None
        first, second = item.inputs
        other = second if first == source else first
        if (
            other == source
            or other not in self.constants
            or (arithmetic.kind in ("sub", "div") and first != source)
        ):
            return None
        vector = _channels(self.constants[other], shape, axis)
        if vector is None:
            return None
        if arithmetic.kind == "mul":
            return _Affine(source, vector, None)
        if arithmetic.kind in ("add", "sub"):
            return _Affine(source, None, vector if arithmetic.kind == "add" else -vector)
        return None

    def _with_affine(
        self, producer: Kernel, before: Conv | Gemm, affine: _Affine, output: str
    ) -> Kernel | None:
        names = list(producer.inputs)
        bias = self._bias(producer, before)
        if bias is None and before.bias:
            return None
        if affine.scale is not None:
            weight = self.constants.get(names[1])
            if weight is None:
                return None
            scaled = _scale_weight(weight, affine.scale, before)
            if scaled is None:
                return None
            names[1] = self._constant(free_name(output, ":weight", self.specs), scaled, before.dtype)
            bias = None if bias is None else bias * affine.scale
        if affine.shift is not None:
            bias = affine.shift if bias is None else bias + affine.shift
        after: Conv | Gemm = before
        if bias is not None:
            names[2:] = [self._constant(free_name(output, ":bias", self.specs), bias, before.dtype)]
            after = replace(before, bias=True)
            if isinstance(after, Gemm):
                after = replace(after, beta=1.0, bias_stride_m=0, bias_stride_n=1)
        return replace(producer, params=after, inputs=tuple(names))

    def _bias(self, producer: Kernel, before: Conv | Gemm) -> np.ndarray | None:
        """The constant bias a channel that the producer has, beta included; None where it has none such."""
        value = self.constants.get(producer.inputs[2]) if before.bias else None
        if value is None:
            return None
        if isinstance(before, Conv):
            return value.astype(np.float64)
        if before.bias_stride_m:
            return None
        return np.broadcast_to(value.reshape(-1).astype(np.float64) * before.beta, (before.n,))

    def _constant(self, name: str, value: np.ndarray, dtype: str) -> str:
        self.constants[name] = value
        self.specs[name] = TensorSpec(value.shape, dtype)
        return name


def _activation(params: Params) -> str | None:
    """The activation that a function of one element is."""
    if not isinstance(params, Unary):
        return None
    if params.kind == "clip" and (params.alpha, params.beta) == (0, 6):
        return "relu6"
    return params.kind if params.kind in ACTIVATIONS else None


def _channels(value: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray | None:
    """`value`, broadcast against `shape`, as float64 (shape[axis],) if it varies along `axis` alone."""
    if value.ndim > len(shape):
        return None
    sizes = (1,) * (len(shape) - value.ndim) + value.shape
    if any(size != 1 for i, size in enumerate(sizes) if i != axis):
        return None
    return np.broadcast_to(value.reshape(-1).astype(np.float64), (shape[axis],))


def _scale_weight(weight: np.ndarray, scale: np.ndarray, before: Conv | Gemm) -> np.ndarray | None:
    """float64 weight with the scale of each output channel (Conv) or column (Gemm) multiplied in."""
    wide = weight.astype(np.float64)
    if isinstance(before, Conv):
        return wide * scale.reshape(-1, *(1,) * (weight.ndim - 1))
    if weight.ndim == 1:
        return None
    return wide * (scale[:, None] if before.trans_b else scale)
