"""A pass being put together: where its tensors lie, in which layout, and what is launched in which order.

In `nhwc` the channels of a pixel lie side by side, filled up with zeros to 16 bytes, as cuDNN's tensor core
engines want them; a tensor changes its layout where a step asks for it. Steps are cudnn_operators and
cudnn_eight.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from engine.graph.graph import Graph
from engine.ops import Kernel, View
from engine.ops._base import Refused
from engine.passes import Program
from engine.rivals.cublaslt import Product
from engine.rivals.cudnn_gpu import chunk
from engine.rivals.cudnn_library import Convolution, Plan
from kernels.ops import ACTIVATIONS

Work = Callable[[], None]
FEW = 4  # channels of an image as a model is given it


class Device(Protocol):
    """What a pass asks of the GPU: engine.rivals.cudnn_gpu.Gpu."""

    def take(self, nbytes: int) -> int: ...
    def new(self, nbytes: int) -> int: ...
    def give(self, address: int) -> None: ...
    def constant(self, array: np.ndarray) -> int: ...
    def launch(
        self, name: str, arguments: Sequence[Any], items: int = 0, blocks: int = 0, size: int = 1
    ) -> Work: ...
    def copy(self, to: int, of: int, nbytes: int) -> Work: ...
    def copy_rows(self, to: int, to_pitch: int, of: int, of_pitch: int, width: int, rows: int) -> Work: ...
    def clear(self, to: int, nbytes: int) -> Work: ...
    def put(self, work: Work) -> None: ...
    def time_ns(self, work: Work) -> float: ...
    def synchronize(self) -> None: ...


class Convolutions(Protocol):
    """Plans for convolutions: engine.rivals.cudnn_library.Graphs."""

    def plans(self, asked: Convolution, places: Sequence[int], seconds: float = ...) -> list[Plan]: ...


class Multiplies(Protocol):
    """Matrix products: engine.rivals.cublaslt.Products."""

    def run(self, p: Product, a: int, b: int, bias: int, y: int) -> tuple[Work, str]: ...


@dataclass(frozen=True)
class Summed:
    """A convolution, and the tensor that is added before its activation."""

    kernel: Kernel
    other: str


Item = Kernel | View | Summed


@dataclass
class Held:
    """Where a tensor lies. dense: as ONNX has it, in the type of the pass; given: the same in float32, as a
    pass is given it; image: with the channels innermost, as (images, channels, pixels); eight: of int8, laid
    likewise. 0: it does not lie so yet."""

    dense: int = 0
    given: int = 0
    image: int = 0
    eight: int = 0
    sizes: tuple[int, int, int] = (0, 0, 0)


@dataclass
class Net:
    """A pass over fixed addresses. steps: what puts it on the stream, in order; inputs, outputs: addresses by
    name; words: of each product which plan computes it; weights_nbytes: of constants."""

    steps: list[Work] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    weights_nbytes: int = 0


class Pass:
    """A pass as its steps see it. held: the type of tensors and weights; nhwc: whether channels lie
    innermost; tf32: whether float32 may be rounded to TF32."""

    def __init__(
        self,
        graph: Graph,
        made: Program,
        items: Sequence[Item],
        held: str,
        nhwc: bool,
        tf32: bool,
        gpu: Device,
        convolutions: Convolutions,
        products: Multiplies,
    ) -> None:
        self.made, self.held, self.nhwc, self.tf32 = made, held, nhwc, tf32
        self.gpu, self.convolutions, self.products = gpu, convolutions, products
        self.itemsize, self.chunk = np.dtype(held).itemsize, chunk(held, nhwc)
        self.strict = held == "float32" and not tf32  # no tensor core rounds what it is given
        self.net, self.tensors, self._constants = Net(), dict[str, Held](), dict[tuple[Any, ...], int]()
        self._give_inputs(graph)
        self._count(items)

    def alias(self, view: View) -> None:
        """Another name of a tensor, which lies as it does."""
        self.tensors[view.output] = self.tensor(view.source)

    def over(self, item: Kernel | Summed) -> None:
        """A step has been put down: what nobody reads after it gives its memory back."""
        for root in map(self.root, reads(item)):
            self._uses[root] -= 1
            if not self._uses[root] and root in self.tensors:
                it = self.tensors[root]
                for address in {it.dense, it.image, it.eight} - {0}:
                    self.gpu.give(address)

    def choose(self, kernel: Kernel, ways: Sequence[Way], what: str) -> None:
        """Take the fastest of several ways to compute a step. Raises Refused where there is none."""
        if not ways:
            raise Refused(f"cuDNN has no engine for {what}")
        way = min(ways, key=lambda way: way.elapsed_ns)
        self.do(way.work)
        self.told(kernel, way.words)

    def told(self, kernel: Kernel, words: str) -> None:
        """By which plan a step is computed."""
        self.net.words[kernel.nodes[0] if kernel.nodes else kernel.output] = words

    def _give_inputs(self, graph: Graph) -> None:
        for info in graph.inputs:
            size = math.prod(self.made.specs[info.name].shape)
            own = self.held != "bfloat16"  # and float16 and float32 are given as they are
            address = self.gpu.new(size * (self.itemsize if own else 4))
            self.net.inputs[info.name] = address
            self.tensors[info.name] = Held(address) if own else Held(given=address)

    def _count(self, items: Sequence[Item]) -> None:
        """How often each tensor is read, so that its memory can go on to another. What a view gives is the
        tensor that it views."""
        self._root: dict[str, str] = {}
        self._uses: Counter[str] = Counter()
        for item in items:
            if isinstance(item, View):
                self._root[item.output] = self.root(item.source)
            else:
                self._uses.update(self.root(name) for name in reads(item))
        self._uses.update(self.root(name) for name in self.made.outputs)
        self._uses.update(self.net.inputs)

    def root(self, name: str) -> str:
        return self._root.get(name, name)

    def tensor(self, name: str) -> Held:
        """A tensor of the pass, or a constant that a step reads as one."""
        if name not in self.tensors:
            if name not in self.made.constants:
                raise Refused(f"nothing gives its input {name!r}")
            self.tensors[name] = Held(self.constant(name, self.made.constants[name]))
            self._uses[name] += 1
        return self.tensors[name]

    def constant(self, name: str, array: np.ndarray, how: str = "", dtype: str = "") -> int:
        """The address of a constant, laid out in this way once."""
        key = (name, how, array.shape)
        if key not in self._constants:
            array = np.ascontiguousarray(np.asarray(array).astype(dtype or self.held))
            self.net.weights_nbytes += array.nbytes
            self._constants[key] = self.gpu.constant(array)
        return self._constants[key]

    def pitch(self, channels: int) -> int:
        return -(-channels // self.chunk) * self.chunk

    def do(self, work: Work) -> None:
        self.net.steps.append(work)

    def dense(self, name: str) -> int:
        """The address of a tensor as ONNX has it; what brings it there is part of the pass."""
        it, size = self.tensor(name), math.prod(self.made.specs[name].shape)
        if it.eight:
            raise Refused(f"its input {name!r} lies as int8, which products of int8 alone read")
        if not it.dense:
            if it.given:
                it.dense = self.gpu.take(size * self.itemsize)
                self.do(self.gpu.launch("cast", (at(it.given), at(it.dense), np.int32(size)), size))
            else:
                it.dense = self._out(it, size, "out_to_own", self.itemsize)
        return it.dense

    def _out(self, it: Held, size: int, kernel: str, itemsize: int) -> int:
        _, c, pixels = it.sizes
        if self.same(c, pixels) and kernel == "out_to_own":
            return it.image
        address = self.gpu.take(size * itemsize)
        given = (at(it.image), at(address), np.int32(size), np.int32(c), np.int32(pixels))
        self.do(self.gpu.launch(kernel, (*given, np.int32(self.pitch(c))), size))
        return address

    def same(self, c: int, pixels: int) -> bool:
        """Whether an image lies as ONNX has it."""
        return not self.nhwc or (pixels == 1 and self.pitch(c) == c)

    def image(self, name: str, n: int, c: int, pixels: int) -> int:
        """The address of a tensor as an image; what brings it there is part of the pass."""
        it = self.tensor(name)
        if it.image and it.sizes == (n, c, pixels):
            return it.image
        own = not it.given
        if self.same(c, pixels):
            return self.dense(name)
        source = self.dense(name) if own else it.given
        if it.image:  # as another image; that one may still be read by what is on the way
            it.image = 0
        it.image, it.sizes = self.gpu.take(n * pixels * self.pitch(c) * self.itemsize), (n, c, pixels)
        items = n * pixels * (self.pitch(c) // self.chunk)
        given = (at(source), at(it.image), np.int32(items), np.int32(c), np.int32(pixels))
        kernel = "into_of_own" if own else "into_of_float"
        self.do(self.gpu.launch(kernel, (*given, np.int32(self.pitch(c))), items))
        return it.image

    def unlaid(self, name: str, c: int, pixels: int) -> tuple[int, str] | None:
        """Of a tensor of few channels that does not lie as an image yet: its address, and what the kernels
        that read it are called by; None for another tensor."""
        it = self.tensor(name)
        if not self.nhwc or c > FEW or it.image or self.same(c, pixels):
            return None
        return (it.given, "float") if it.given else (self.dense(name), "own")

    def new_image(self, name: str, n: int, c: int, pixels: int) -> int:
        """The address for what a step gives as an image."""
        address = self.gpu.take(n * pixels * self.pitch(c) * self.itemsize)
        same = self.same(c, pixels)
        self.tensors[name] = Held(address if same else 0, image=address, sizes=(n, c, pixels))
        return address

    def new_dense(self, name: str) -> int:
        address = self.gpu.take(math.prod(self.made.specs[name].shape) * self.itemsize)
        self.tensors[name] = Held(address)
        return address

    def like(self, source: str, name: str) -> tuple[int, int, int]:
        """(address of one tensor, address for another of its shape, elements there) in the layout in which
        the first one lies."""
        it = self.tensor(source)
        if it.image and not it.dense:
            n, c, pixels = it.sizes
            return it.image, self.new_image(name, n, c, pixels), n * pixels * self.pitch(c)
        return self.dense(source), self.new_dense(name), math.prod(self.made.specs[name].shape)

    def give_out(self, name: str) -> None:
        """Bring an output to memory of its own, in float32 or float16."""
        it, size = self.tensor(name), math.prod(self.made.specs[name].shape)
        whole = self.held == "bfloat16"
        if it.given:
            address = self.gpu.new(4 * size)
            self.do(self.gpu.copy(address, it.given, 4 * size))
        elif whole and not it.image:
            # As one image of one channel: a change of type alone.
            address = self.gpu.new(4 * size)
            self.do(self.gpu.launch("widen", (at(it.dense), at(address), np.int32(size)), size))
        elif whole:
            address = self._out(it, size, "out_to_float", 4)
        else:
            address = self.dense(name)
            if address in (*self.net.inputs.values(), *self.net.outputs.values(), *self._constants.values()):
                own = self.gpu.new(size * self.itemsize)
                self.do(self.gpu.copy(own, address, size * self.itemsize))
                address = own
        self.net.outputs[name] = address


@dataclass(frozen=True)
class Way:
    """How a step can be computed, and what it takes."""

    elapsed_ns: float
    words: str
    work: Work


def reads(item: Kernel | Summed) -> tuple[str, ...]:
    """The tensors that a step reads."""
    return (*item.kernel.inputs, item.other) if isinstance(item, Summed) else item.inputs


def bound(plan: Plan, *places: int) -> Work:
    """A plan over these addresses."""
    x, w, b, z, y = places
    return lambda: plan.run(x, w, b, z, y)


def all_of(works: Sequence[Work]) -> Work:
    """One behind the other."""

    def run() -> None:
        for work in works:
            work()

    return run


def both(first: Work, second: Work) -> Work:
    return all_of((first, second))


def at(address: int) -> np.uint64:
    """An address as a kernel's argument."""
    return np.uint64(address)


def activation_number(name: str | None) -> int:
    """What cudnn_steps.cu calls an activation."""
    return ("none", *ACTIVATIONS).index(name or "none")
