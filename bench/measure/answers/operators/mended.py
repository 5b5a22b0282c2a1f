"""Corrections of `onnx.reference`, where it departs from the ONNX specification or is too slow to be an
oracle.

Each class replaces one operator of the evaluator (`new_ops`) and begins with the sentence of the
specification that it follows. All of them keep the element type of their inputs: float64 stays float64.
"""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Iterator

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_cast import cast_to
from onnx.reference.ops.op_dynamic_quantize_linear import DynamicQuantizeLinear
from onnx.reference.ops.op_resize import Resize as ReferenceResize

from bench.measure.answers import roundings, ties
from bench.measure.answers.operators.rows import GroupNormalization, Hardmax, LogSoftmax, Mended, Softmax

_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


class LRN(Mended):
    """ "square_sum[n, c, d1, …, dk] = sum(X[n, i, d1, …, dk] ^ 2), where max(0, c - floor((size - 1) / 2))
    <= i <= min(C - 1, c + ceil((size - 1) / 2))": one sum for each of the C channels; the reference loops c
    over N.
    """

    def _run(self, x, **_):
        size = self._get("size")
        alpha, beta, bias = self._get("alpha", 1e-4), self._get("beta", 0.75), self._get("bias", 1.0)
        channels = x.shape[1]
        squares = x * x
        total = np.zeros_like(x)
        for offset in range(-((size - 1) // 2), math.ceil((size - 1) / 2) + 1):
            first, last = max(0, -offset), min(channels, channels - offset)
            if first < last:
                total[:, first:last] += squares[:, first + offset : last + offset]
        return ((x / (bias + alpha / size * total) ** beta).astype(x.dtype),)


class BatchNormalization(Mended):
    """Opset 7 and 9: "Output case #2: Y (test mode)", Y = (X - mean) / sqrt(var + epsilon) · scale + B with
    the mean and variance given as inputs; the reference mixes in those of the batch.
    """

    def _run(self, x, scale, bias, mean, var, **_):
        self._one_output()
        if self._get("training_mode", 0):
            raise NotImplementedError("BatchNormalization in training mode")
        if self._opset < 9 and not self._get("spatial", 1):
            shape: tuple[int, ...] = (1, *x.shape[1:])  # statistics of every activation, not every channel
        else:
            shape = (1, -1, *(1,) * (x.ndim - 2))
        scale, bias, mean, var = (value.reshape(shape) for value in (scale, bias, mean, var))
        return ((scale * (x - mean) / np.sqrt(var + self._get("epsilon", 1e-5)) + bias).astype(x.dtype),)


class _Window(Mended):
    """Geometry of Conv and the pools: the same words of the specification hold for all three."""

    def _geometry(
        self, sizes: tuple[int, ...], kernel: tuple[int, ...]
    ) -> tuple[tuple[int, ...], list[tuple[int, int]], tuple[int, ...], tuple[int, ...]]:
        """Output sizes, (begin, end) padding, strides and dilations along each spatial axis.

        "SAME_UPPER or SAME_LOWER mean pad the input so that output_shape[i] = ceil(input_shape[i] /
        strides[i])", the odd one at the end or at the beginning; "ceil or floor" otherwise, and a last window
        that would start in the padding at the end is ignored.
        """
        rank = len(sizes)
        strides = tuple(self._get("strides", [1] * rank))
        dilations = tuple(self._get("dilations", [1] * rank))
        mode = self._get("auto_pad", "NOTSET")
        pads = [0] * (2 * rank) if mode == "VALID" else list(self._get("pads", [0] * (2 * rank)))
        out, padding = [], []
        for axis, size in enumerate(sizes):
            extent = (kernel[axis] - 1) * dilations[axis] + 1
            stride = strides[axis]
            if mode in ("SAME_UPPER", "SAME_LOWER"):
                count = -(-size // stride)
                total = max((count - 1) * stride + extent - size, 0)
                begin = total // 2 if mode == "SAME_UPPER" else total - total // 2
                end = total - begin
            else:
                begin, end = pads[axis], pads[axis + rank]
                span = size + begin + end - extent
                count = span // stride + 1
                if self._get("ceil_mode", 0) and mode == "NOTSET":
                    count = -(-span // stride) + 1
                    count -= (count - 1) * stride >= size + begin
            out.append(count)
            padding.append((begin, end))
        return tuple(out), padding, strides, dilations

    def _taps(self, x: np.ndarray, padding_value: float, beyond: float) -> Iterator[np.ndarray]:
        """For each element of the kernel the values that it meets, (n, c, *out).

        The padding holds `padding_value`, what ceil_mode adds beyond it `beyond`.
        """
        kernel = tuple(self._get("kernel_shape"))
        out, padding, strides, dilations = self._geometry(x.shape[2:], kernel)
        x = np.pad(x, [(0, 0), (0, 0), *padding], constant_values=padding_value)
        needed = [
            (o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, strides, kernel, dilations, strict=True)
        ]
        further = [(0, max(0, need - size)) for need, size in zip(needed, x.shape[2:], strict=True)]
        x = np.pad(x, [(0, 0), (0, 0), *further], constant_values=beyond)
        for tap in itertools.product(*map(range, kernel)):
            slices = [
                slice(t * d, t * d + (o - 1) * s + 1, s)
                for t, d, s, o in zip(tap, dilations, strides, out, strict=True)
            ]
            yield x[(slice(None), slice(None), *slices)]


class MaxPool(_Window):
    """ "SAME_UPPER or SAME_LOWER mean pad the input so that output_shape[i] = ceil(input_shape[i] /
    strides[i])": the reference floors for SAME_LOWER with a stride, and lets ceil_mode windows run off.
    """

    def _run(self, x, **_):
        lowest = -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).min
        largest = functools.reduce(np.maximum, self._taps(x, lowest, lowest))
        if len(self.onnx_node.output) == 1:
            return (largest,)
        # "The index values are those of a flatten 1-D tensor from X": of equal ones the first.
        count = math.prod(x.shape[2:])
        grid = np.arange(count).reshape(1, 1, *x.shape[2:])
        if self._get("storage_order", 0):
            grid = np.arange(count).reshape(1, 1, *x.shape[:1:-1]).T.reshape(grid.shape)
        places = np.full(largest.shape, -1)
        for values, here in zip(self._taps(x, lowest, lowest), self._taps(grid, -1, -1), strict=True):
            places = np.where((places < 0) & (here >= 0) & (values == largest), here, places)
        before = np.arange(x.shape[0] * x.shape[1]) * count
        return largest, places + before.reshape(*x.shape[:2], *(1,) * (x.ndim - 2))


class AveragePool(_Window):
    """ "Whether include pad pixels when calculating values for the edges. Default is 0, doesn't count include
    pad": what ceil_mode adds beyond is never counted; the reference puts half of it in front of the image.
    """

    def _run(self, x, **_):
        counted = self._get("count_include_pad", 0)
        inside = np.ones((1, 1, *x.shape[2:]), x.dtype)
        counts = functools.reduce(np.add, self._taps(inside, counted, 0))
        return ((functools.reduce(np.add, self._taps(x, 0, 0)) / counts).astype(x.dtype),)


class GlobalMaxPool(Mended):
    """ "GlobalMaxPool consumes an input tensor X and applies max pooling across the values in the same
    channel", of any number of axes; the reference takes four.
    """

    def _run(self, x, **_):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class GlobalLpPool(Mended):
    """ "GlobalLpPool consumes an input tensor X and applies lp pool pooling across the values in the same
    channel", which the reference has not.
    """

    def _run(self, x, **_):
        p = self._get("p", 2)
        return ((np.abs(x) ** p).sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / p),)


class Conv(_Window):
    """ "The convolution operator consumes an input tensor and a filter, and computes the output": right in
    the reference too, which gathers all images at once through index arrays; here one matrix product an
    image and group, for speed and memory.
    """

    def _run(self, x, w, b=None, **_):
        group = self._get("group", 1)
        kernel = w.shape[2:]
        out, padding, strides, dilations = self._geometry(x.shape[2:], kernel)
        rank = len(kernel)
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        padded = np.pad(x, [(0, 0), (0, 0), *padding])
        windows = sliding_window_view(padded, extents, axis=tuple(range(2, 2 + rank)))
        steps = [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
        windows = windows[(slice(None), slice(None), *steps)]  # (n, c, *out, *kernel)
        maps, depth = w.shape[0] // group, w.shape[1]
        y = np.empty((x.shape[0], w.shape[0], *out), x.dtype)
        order = (0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank))  # (c, *kernel, *out)
        for image, g in itertools.product(range(x.shape[0]), range(group)):
            taken = windows[image, g * depth : (g + 1) * depth].transpose(order)
            columns = taken.reshape(depth * math.prod(kernel), math.prod(out))
            weights = w[g * maps : (g + 1) * maps].reshape(maps, -1)
            y[image, g * maps : (g + 1) * maps] = (weights @ columns).reshape(maps, *out)
        if b is not None:
            y += b.reshape(-1, *(1,) * rank)
        return (y,)


class ConvTranspose(Mended):
    """ "output_shape[i] = stride[i] * (input_size[i] - 1) + output_padding[i] + ((kernel_shape[i] - 1) *
    dilations[i] + 1) - pads[start_i] - pads[end_i]"; the reference takes some of these shapes alone. Each
    tap of the window is added up where it belongs.
    """

    def _run(self, x, w, b=None, **_):
        rank, group, kernel = x.ndim - 2, self._get("group", 1), w.shape[2:]
        strides, dilations = (self._get(name, [1] * rank) for name in ("strides", "dilations"))
        beyond = self._get("output_padding", [0] * rank)
        whole = [
            (size - 1) * s + (k - 1) * d + 1
            for size, s, k, d in zip(x.shape[2:], strides, kernel, dilations, strict=True)
        ]
        there = [a + more for a, more in zip(whole, beyond, strict=True)]
        begin, out = self._cut(x.shape[2:], there, strides)
        maps = w.shape[1]
        grouped = x.reshape(x.shape[0], group, -1, *x.shape[2:])
        room = [max(a, first + size) for a, first, size in zip(whole, begin, out, strict=True)]
        y = np.zeros((x.shape[0], group, maps, *room), x.dtype)
        for tap in itertools.product(*map(range, kernel)):
            taps = w[(..., *tap)].reshape(group, -1, maps)
            part = np.einsum("ngc...,gcm->ngm...", grouped, taps)
            at = [
                slice(t * d, t * d + (size - 1) * s + 1, s)
                for t, d, s, size in zip(tap, dilations, strides, x.shape[2:], strict=True)
            ]
            y[:, :, :, *at] += part
        kept = [slice(first, first + size) for first, size in zip(begin, out, strict=True)]
        y = y.reshape(x.shape[0], group * maps, *room)[:, :, *kept]
        return (y if b is None else y + b.reshape(-1, *(1,) * rank),)

    def _cut(
        self, sizes: tuple[int, ...], whole: list[int], strides: list[int]
    ) -> tuple[list[int], list[int]]:
        """Where the output begins and how large it is. "If (auto_pads == SAME_UPPER): pads[start_i] =
        total_padding[i]/2 … Else: pads[start_i] = total_padding[i] - (total_padding[i]/2)"."""
        rank, mode, wanted = len(sizes), self._get("auto_pad", "NOTSET"), self._get("output_shape")
        if wanted is None and mode.startswith("SAME"):
            wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
        if wanted is None:
            pads = [0] * (2 * rank) if mode == "VALID" else self._get("pads", [0] * (2 * rank))
            return list(pads[:rank]), [a - b - e for a, b, e in zip(whole, pads, pads[rank:], strict=False)]
        out = list(wanted[-rank:])
        total = [max(0, a - size) for a, size in zip(whole, out, strict=True)]
        return [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in total], out


class Pad(Mended):
    """ "The number of padding elements … can be negative, in which case it removes elements": the reference
    takes none that are negative.
    """

    def _run(self, data, pads=None, value=None, axes=None, **_):
        if pads is None:  # attributes, below opset 11
            pads, value = self._get("pads", self._get("paddings")), self._get("value", 0.0)
        axes = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
        cut, added = [slice(None)] * data.ndim, [(0, 0)] * data.ndim
        count = len(pads) // 2
        for axis, begin, end in zip(axes, map(int, pads[:count]), map(int, pads[count:]), strict=True):
            cut[axis] = slice(max(0, -begin), data.shape[axis] + min(0, end))
            added[axis] = (max(0, begin), max(0, end))
        mode, kept = self._get("mode", "constant"), data[tuple(cut)]
        if mode != "constant":
            return (np.pad(kept, added, mode),)
        held = np.asarray(0 if value is None else value).reshape(-1)
        return (np.pad(kept, added, constant_values=held[0] if held.size else 0).astype(data.dtype),)


class Cast(Mended):
    """ "The operator casts the elements of a given input tensor to a data type specified by the 'to'
    argument": the oracle stands for exact arithmetic, so a cast to a narrower floating-point type keeps
    float64.
    """

    def _run(self, x, **_):
        to = self._get("to")
        if to in _FLOATS:
            return (x.astype(np.float64),)
        wide = x if hasattr(np, x.dtype.name) else x.astype(np.float64)  # of few bits, which NumPy has not
        return (cast_to(wide, to, self._get("saturate", 1), self._get("round_mode", "up")),)


class Upsample(Mended):
    """Opset 9: "output_dimension = floor(input_dimension * scale)", of which the reference takes whole
    numbers alone, and the nearest; places are those of Resize in opset 10, x_original = x_resized / scale.
    """

    def _run(self, x, scales=None, *_, **__):
        scales = self._get("scales") if scales is None else scales
        for axis, scale in enumerate(map(float, scales)):
            size = x.shape[axis]
            places = np.arange(math.floor(np.float32(size) * np.float32(scale))) / scale
            low = np.minimum(np.floor(places.astype(np.float32)).astype(int), size - 1)
            if self._get("mode", "nearest") == "nearest":
                x = np.take(x, low, axis)
            elif scale != 1:
                part = np.minimum(places - low, 1).reshape(-1, *(1,) * (x.ndim - axis - 1))
                high = np.minimum(low + 1, size - 1)
                x = (1 - part) * np.take(x, low, axis) + part * np.take(x, high, axis)
        return (x,)


class Resize(Upsample):
    """Opset 10: "output_dimension = floor(input_dimension * scale)"; the reference reads the inputs of later
    opsets, and is right there.
    """

    def _run(self, x, *given, **attributes):
        if self._opset < 11:
            return super()._run(x, *given)
        return ReferenceResize._run(self, x, *given, **attributes)  # type: ignore[arg-type]


class DequantizeLinear(Mended):
    """ "The dequantization formula is y = (x - x_zero_point) * x_scale", with a scale for all, for each place
    along an axis, or for each block of places; the reference has none of the opsets 10 to 18.
    """

    def _run(self, x, scale, zero=None, **_):
        whole = x.astype(np.float64)
        if zero is not None:
            whole = whole - self._spread(zero.astype(np.float64), x.shape)
        return (whole * self._spread(scale, x.shape),)

    def _spread(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if values.size == 1:
            return values.reshape(())
        axis, block = self._get("axis", 1), self._get("block_size", 0)
        if block:
            repeated = np.repeat(values, block, axis)
            return np.take(repeated, np.arange(shape[axis]), axis)
        column = [1] * len(shape)
        column[axis] = -1
        return values.reshape(column)


class LpNormalization(Mended):
    """ "Given a matrix, apply Lp-normalization along the provided axis": what the elements are divided by is
    the sum of their absolute values where p is 1, of which the reference takes the signs along.
    """

    def _run(self, x, **_):
        axis, p = self._get("axis", -1), self._get("p", 2)
        norm = (np.abs(x) ** p).sum(axis=axis, keepdims=True) ** (1 / p)
        return (np.where(norm == 0, 0.0, x / np.where(norm == 0, 1.0, norm)),)


class GatherElements(Mended):
    """ "out[i][j][k] = input[index[i][j][k]][j][k] if axis = 0", and so for the others: the reference takes
    no axis that counts from the end, and no more than 32 places.
    """

    def _run(self, data, indices, **_):
        axis = self._get("axis", 0) % data.ndim
        places = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
        places[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
        return (data[tuple(places)],)


class OneRounding(OpRun):
    """Every element moved by half a rounding of its type to a whole one, the same in every run: were all
    moved by as much, equal scores would stay equal in two halves. summed: what x has the sums of."""

    op_domain = roundings.DOMAIN

    def _run(self, x, summed=None, dtype="float32", draw=0):
        random = np.random.default_rng((zlib.crc32(self.onnx_node.output[0].encode()), draw))
        array = np.asarray(x)
        moved = roundings.one_rounding(array, "fp32", random, dtype)
        if array.dtype.kind != "f":
            return (moved,)
        several = summed is not None and array.size and dtype == "float32"
        times = 1.0 if not several else roundings.of_sum(summed.size / array.size)
        return (np.asarray(array + (moved - array) * times * random.uniform(0.5, 1.0, array.shape)),)


class OtherWay(Mended):
    """x, as QuantizeLinear is to round it the other way where it is near to half-way (`ties`)."""

    op_domain = roundings.DOMAIN

    def _run(self, x, scale, **_):
        axis, block = self._get("axis", 1), self._get("block_size", 0)
        where = ties.drawn(self.onnx_node.output[0], self._get("draw"), np.shape(x))
        return (ties.rounded_otherwise(x, scale, axis, block, self._get("near"), where),)


class OtherDynamic(DynamicQuantizeLinear):
    """What DynamicQuantizeLinear makes of x rounded the other way, by the scale of x itself (`ties`)."""

    op_domain = roundings.DOMAIN

    def _run(self, x, **given):
        _, scale, zero = super()._run(x)
        where = ties.drawn(self.onnx_node.output[0], given["draw"], np.shape(x))
        steps = np.rint(ties.other_side(x / scale, given["near"], where)) + zero
        return np.clip(steps, 0, 255).astype(np.uint8), scale, zero


class Stored(Mended):
    """A Cast that rounds (bench.measure.answers.roundings.stored)."""

    op_domain = roundings.DOMAIN

    def _run(self, x, **_):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(self._get("to"))
        return (np.asarray(x, np.float64).astype(dtype).astype(np.float64),)


OPERATORS = (
    LRN,
    Softmax,
    LogSoftmax,
    Hardmax,
    GroupNormalization,
    BatchNormalization,
    MaxPool,
    AveragePool,
    GlobalMaxPool,
    GlobalLpPool,
    Conv,
    Pad,
    Cast,
    ConvTranspose,
    Resize,
    Upsample,
    DequantizeLinear,
    LpNormalization,
    GatherElements,
    OneRounding,
    OtherDynamic,
    OtherWay,
    Stored,
)
