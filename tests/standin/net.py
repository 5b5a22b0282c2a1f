"""A net in one kernel (kernels/cuda/net/one_kernel.cu) by NumPy: its steps are read back from the calls that
the kernel was compiled with, its weights from how they are packed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from kernels.occupancy import ceil
from kernels.ops import ACTIVATIONS, Params
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.ops.pool import POOL_KINDS, Pool
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary
from kernels.precision import defines as type_defines
from tests.standin import answers
from tests.standin.code import Module
from tests.standin.memory import Memory

FILE = "one_kernel.cu"
_CALL = re.compile(r"(\w+)<Maps<([^<>]*)>, (?:Maps|Given)<[^<>]*>, ([-\d, ]+)>\(([^()]*)\)")
_COPY = re.compile(r"fetch_weights<\w+>\(memory \+ (\d+), weights(?: \+ (\d+))?")

Unpack = Callable[[np.ndarray], np.ndarray]
Step = tuple[Params, list[Unpack]]


def bind(
    memory: Memory, module: Module, pointers: Sequence[int], scalars: Sequence[float], stamps: int = 0
) -> answers.Answer:
    """pointers: input, weights, output; scalars: the images. stamps: where clock stamps go (0: nowhere)."""
    n = int(scalars[0])
    steps = _Read(module, n).steps
    inputs, outputs = n * module.define("INPUTS"), n * module.define("OUTPUTS")
    calls: list[Callable[[], object]] = []
    value = memory.view(pointers[0], (inputs,), np.float32)
    for i, (params, unpacks) in enumerate(steps):
        weights = [np.empty(shape, np.float32) for shape in params.input_shapes[1:]]
        calls.append(_unpacking(memory, pointers[1], weights, unpacks))
        shape = params.output_shape
        made = (
            memory.view(pointers[2], shape, np.float32)
            if i + 1 == len(steps)
            else np.empty(shape, np.float32)
        )
        calls += answers.calls(params, [value.reshape(params.input_shapes[0]), *weights], made)
        value = made

    def do() -> None:
        if stamps:
            _stamp(memory, module, stamps)
        memory.at(pointers[0], 4 * inputs)
        memory.at(pointers[2], 4 * outputs)
        with np.errstate(all="ignore"):
            for call in calls:
                call()

    return answers.Answer(do, sum(params.flops for params, _ in steps), 4 * (inputs + outputs))


def _stamp(memory: Memory, module: Module, stamps: int) -> None:
    """Every block alike: a thousand cycles before the first layer, and for each layer as many again."""
    layers, count = module.define("STEPS_IN_ALL"), module.define("STAMPS")
    row = np.array([*(1000 * (i + 1) for i in range(layers + 1)), 0, 0], np.int64)
    row[-1] = row.sum() // 2  # two cycles a nanosecond
    memory.view(stamps, (count,), np.int64)[:] = np.resize(row, count)


def _unpacking(
    memory: Memory, address: int, weights: Sequence[np.ndarray], unpacks: Sequence[Unpack]
) -> Callable[[], None]:
    def unpack() -> None:
        block = memory.at(address, 4)
        packed = block.array[address - block.address :]
        packed = packed[: packed.nbytes // 4 * 4].view(np.float32)
        for to, of in zip(weights, unpacks, strict=True):
            to[...] = of(packed).reshape(to.shape)

    return unpack


class _Read:
    """The steps of so many images, each with what makes its weights and its bias of the packed ones."""

    def __init__(self, module: Module, n: int) -> None:
        self._n, self._ranks, self._images = n, module.define("RANKS"), module.define("IMAGES")
        self._places = {
            int(at): int(to or 0)
            for name in ("COMMON", "HELD")
            for at, to in _COPY.findall(module.defines[name])
        }
        self._first = min(self._places)
        self._held = "bfloat16" if type_defines("bfloat16").keys() <= module.defines.keys() else "float16"
        self.steps: list[Step] = []
        text = f"{module.defines['FIRST']}; {module.defines['THE_REST']}"
        for name, maps, numbers, arguments in _CALL.findall(text):
            given = [int(v) for v in maps.split(",")[:-2]]
            told = [int(v) for v in numbers.split(",")]
            self.steps += getattr(self, f"_{name}")(given, told, arguments)

    def _common(self, at: int, count: int) -> Unpack:
        """Of what every block has in shared memory."""
        return lambda packed: packed[at - self._first :][:count]

    def _convolve(self, maps: Sequence[int], told: Sequence[int], _: str) -> list[Step]:
        at, c, m, group, kh, kw, sh, sw, dh, dw, out_h, out_w, down, across, many, stride = told[:16]
        parts, taps = ceil(m, many), c * kh * kw
        size = group * parts * taps * stride
        window = (c, m, group, kh, kw, sh, sw, dh, dw, out_h, out_w, down, across, *told[18:])

        def weight(packed: np.ndarray) -> np.ndarray:
            laid = self._common(at, size)(packed).reshape(group, parts, taps, stride)[..., :many]
            return laid.swapaxes(2, 3).reshape(group, parts * many, taps)[:, :m]

        return self._windows(maps, window, [weight, self._common(at + size, m * group)])

    def _convolve_tensor(self, maps: Sequence[int], told: Sequence[int], _: str) -> list[Step]:
        at, c, m, group, kh, kw, sh, sw, dh, dw, out_h, out_w, down, across, many, *joined, slabs = told[:18]
        parts, tiles = ceil(m, many), ceil(many // 8 * joined[0] * joined[1], 2)
        size = group * parts * tiles * slabs * 128
        plane, row, kind = maps[4], maps[5], maps[9]

        def weight(packed: np.ndarray) -> np.ndarray:
            """Those of a cell's first output, by where the table says that each step lies."""
            steps = self._common(at + size, slabs * 8)(packed).view(np.int32).reshape(slabs, 4, 2)
            places = steps.swapaxes(1, 2).reshape(-1) // (4 * self._images)
            rows = _rows(
                self._common(at, size)(packed), group * parts * tiles, slabs, self._held if kind > 1 else ""
            )
            rows = rows.reshape(group, parts, tiles * 16, -1)[:, :, :many].reshape(group, parts * many, -1)[
                :, :m
            ]
            channel, r, s = np.indices((c, kh, kw)).reshape(3, -1)
            far = channel % 2 if kind == 3 else 0 * channel
            lies = (channel // 2 if kind == 3 else channel) * plane + r * dh * row + s * dw
            if kind == 2:
                lies, far = lies // 2, lies % 2
            found = (places == lies[:, None]).argmax(axis=1)
            return rows[..., found * (2 if kind > 1 else 1) + far]

        window = (c, m, group, kh, kw, sh, sw, dh, dw, out_h, out_w, down, across, *told[-3:])
        return self._windows(maps, window, [weight, self._common(at + size + slabs * 8, m * group)])

    def _windows(self, maps: Sequence[int], window: Sequence[int], unpacks: list[Unpack]) -> list[Step]:
        """A convolution, and the pool over it where there is one."""
        c, m, group, kh, kw, sh, sw, dh, dw, out_h, out_w, down, across, kind, between, after = window
        (h, w), (top, left) = maps[2:4], maps[6:8]
        pooled = out_h // down, out_w // across
        if kind >= 0:  # told is what the pool reads: there may be more
            out_h = max(out_h, (h + top - (kh - 1) * dh - 1) // sh + 1)
            out_w = max(out_w, (w + left - (kw - 1) * dw - 1) // sw + 1)
        bottom = max(0, (out_h - 1) * sh + (kh - 1) * dh + 1 - h - top)
        right = max(0, (out_w - 1) * sw + (kw - 1) * dw + 1 - w - left)
        sizes = (self._n, c * group, h, w, m * group, kh, kw, out_h, out_w, sh, sw, top, left, bottom, right)
        conv = Conv(*sizes, dh, dw, group, True, _activation(between))
        if kind < 0:
            return [(conv, unpacks)]
        read = (out_h, out_w, down, across, *pooled, down, across)
        pool = Pool(POOL_KINDS[kind], self._n, conv.m, *read, activation=_activation(after))
        return [(ConvPool(conv, pool), unpacks)]

    def _pool(self, _maps: Sequence[int], told: Sequence[int], _: str) -> list[Step]:
        c, h, w, kh, kw, sh, sw, dh, dw, top, left, bottom, right, out_h, out_w, kind, counted, after = told
        sizes = (self._n, c, h, w, kh, kw, out_h, out_w, sh, sw, top, left, bottom, right, dh, dw)
        params = Pool(POOL_KINDS[kind], *sizes, bool(counted), _activation(after))
        return [(params, [])]

    def _multiply_rows(self, _: Sequence[int], told: Sequence[int], arguments: str) -> list[Step]:
        k, n, lead, bias, kind, team = told
        local = ceil(n, team)

        def rows(packed: np.ndarray) -> np.ndarray:
            laid = packed[self._place(arguments) :][: team * local * lead]
            return laid.reshape(team, local, lead).swapaxes(0, 1).reshape(-1, lead)[:n, :k]

        params = Gemm(self._n, n, k, trans_b=True, bias=True, activation=_activation(kind))
        return [(params, [rows, self._common(bias, n)])]

    def _multiply_images(self, _: Sequence[int], told: Sequence[int], arguments: str) -> list[Step]:
        k, n, lead, bias, *_rest, kind = told
        each = ceil(k * lead, 4) * 4

        def columns(packed: np.ndarray) -> np.ndarray:
            laid = packed[self._place(arguments) :][: self._ranks * each].reshape(self._ranks, each)
            whole = laid[:, : k * lead].reshape(self._ranks, k, lead).swapaxes(0, 1)
            return whole.reshape(k, -1)[:, :n]

        params = Gemm(self._n, n, k, bias=True, activation=_activation(kind))
        return [(params, [columns, self._common(bias, n)])]

    def _multiply_tensor(self, _: Sequence[int], told: Sequence[int], arguments: str) -> list[Step]:
        k, n, bias, _parts, _slices, kind, team, _ahead, half = told
        tiles, slabs = ceil(ceil(n, 16), team) * team, ceil(k, 16 if half else 8)

        def rows(packed: np.ndarray) -> np.ndarray:
            laid = packed[self._place(arguments) :][: tiles * slabs * 128]
            return _rows(laid, tiles, slabs, self._held if half else "")[:n, :k]

        params = Gemm(self._n, n, k, trans_b=True, bias=True, activation=_activation(kind))
        return [(params, [rows, self._common(bias, n)])]

    def _place(self, arguments: str) -> int:
        """Where a product's weights begin, of those that are packed."""
        where, at = arguments.split(", ")[-1].split(" + ")[:2]
        return self._places[int(at)] if where == "memory" else int(at)

    def _each(self, _: Sequence[int], told: Sequence[int], _arguments: str) -> list[Step]:
        return [(Unary(_activation(told[1]) or "identity", self._n * told[0]), [])]

    def _softmax(self, _: Sequence[int], told: Sequence[int], _arguments: str) -> list[Step]:
        return [(Softmax(self._n, told[0], 1, bool(told[1])), [])]


def _rows(laid: np.ndarray, tiles: int, slabs: int, half: str) -> np.ndarray:
    """What lanes take of weights on tensor cores, back as rows of steps."""
    if half:
        pairs = laid.view(half).reshape(tiles, slabs, 8, 4, 2, 2, 2)
        return pairs.transpose(0, 5, 2, 1, 4, 3, 6).reshape(tiles * 16, -1).astype(np.float32)
    return laid.reshape(tiles, slabs, 8, 4, 2, 2).transpose(0, 5, 2, 1, 4, 3).reshape(tiles * 16, -1)


def _activation(number: int) -> str | None:
    return ("none", *ACTIVATIONS)[number] if number else None
