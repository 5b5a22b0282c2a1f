"""From our Graph to a pass of cuDNN graphs, cuBLASLt products and a few small kernels, at one batch size.

It starts from the engine's own passes (engine.passes), as a careful engineer would: constants folded, batch
normalisations in the weights, activations behind convolutions. Then a sum with what a block was given joins
the convolution before it. In `nhwc` the channels of a pixel lie side by side, filled up with zeros to 16
bytes, as cuDNN's tensor core engines want them; a tensor changes its layout where a step asks for it.

`refusal` needs no library and no GPU.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from engine.graph.graph import Graph
from engine.ops import Kernel, View
from engine.ops._base import Refused, contiguous_strides
from engine.passes import Program, program
from engine.rivals.cublaslt import Matrix, Product
from engine.rivals.cudnn_gpu import chunk
from engine.rivals.cudnn_library import Convolution, Plan, laid_out
from kernels.errors import UnsupportedError
from kernels.ops import ACTIVATIONS, Params
from kernels.ops.binary import Binary
from kernels.ops.concat import Concat
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.multiply_add import MultiplyAdd
from kernels.ops.pool import POOL_KINDS, Pool
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm
from kernels.ops.quantize import Quantize
from kernels.ops.reduce import Reduce
from kernels.ops.softmax import Softmax
from kernels.ops.unary import Unary

# The places of these names are the numbers that cudnn_steps.cu knows them by.
UNARY = ("identity", "relu", "tanh", "sigmoid", "clip", "leaky_relu", "hard_sigmoid", "hard_swish", "elu",
         "gelu", "gelu_tanh", "swish")  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "pow", "max", "min")
REDUCE = ("mean", "sum", "max")
MOST_AXES = 6
MOST_ITEMS = 2**31 - 1

Work = Callable[[], None]


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

    def plans(self, asked: Convolution, places: Sequence[int]) -> list[Plan]: ...


class Multiplies(Protocol):
    """Matrix products: engine.rivals.cublaslt.Products."""

    def run(self, p: Product, a: int, b: int, bias: int, y: int) -> tuple[Work, str]: ...


@dataclass(frozen=True)
class Summed:
    """A convolution, and the tensor that is added before its activation."""

    kernel: Kernel
    other: str


Item = Kernel | View | Summed


# ------------------------------------------------------------------------------------------- translation


def items_of(made: Program) -> list[Item]:
    """The steps of a program, with each sum of two whole images joined to the convolution before it."""
    uses = Counter(made.outputs)
    for item in made.items:
        uses.update((item.source,) if isinstance(item, View) else item.inputs)
    items: list[Item | None] = list(made.items)
    makers = {item.output: place for place, item in enumerate(made.items)}
    for place, item in enumerate(made.items):
        if not isinstance(item, Kernel) or not isinstance(item.params, Binary) or item.params.kind != "add":
            continue
        if len({made.specs[name].shape for name in (*item.inputs, item.output)}) != 1:
            continue
        # Of two convolutions the later one, for what the other gives is there then.
        for name in sorted(item.inputs, key=lambda name: -makers.get(name, -1)):
            maker = items[makers[name]] if name in makers else None
            other = item.inputs[1 - item.inputs.index(name)]
            if not isinstance(maker, Kernel) or not isinstance(maker.params, Conv):
                continue
            if maker.params.activation is not None or uses[name] != 1 or other in made.constants:
                continue
            params = replace(maker.params, activation=item.params.activation)
            joined = replace(maker, params=params, output=item.output, nodes=maker.nodes + item.nodes)
            items[makers[name]], items[place] = None, Summed(joined, other)
            break
    return [item for item in items if item is not None]


def _translated(graph: Graph, batch: int) -> tuple[Program, list[Item]]:
    made = program(graph, batch, lambda both, weights_known: False)
    return made, items_of(made)


def refusal(graph: Graph, batch: int) -> str | None:
    """The first step that has no translation, by its node, with the reason; None where all have."""
    try:
        made, items = _translated(graph, batch)
        _check(graph, made, items)
    except UnsupportedError as error:
        return str(error)
    return None


def has_eight_bits(graph: Graph, batch: int) -> bool:
    """Whether products of int8 are in it, whose images have their channels innermost."""
    items = _translated(graph, batch)[1]
    return any(isinstance(item, Kernel) and isinstance(item.params, QConv | QGemm) for item in items)


def _check(graph: Graph, made: Program, items: Sequence[Item]) -> None:
    for info in graph.inputs:
        if info.dtype not in ("float32", "float16"):
            raise UnsupportedError(
                f"input {info.name!r} is {info.dtype}, and only images of floats are taken"
            )
    for name in made.outputs:
        if made.specs[name].dtype != "float32":
            raise UnsupportedError(f"output {name!r} is {made.specs[name].dtype}, and float32 alone is given")
    for item in items:
        if not isinstance(item, View):
            _named(graph, item, partial(_check_step, made, item))


def _named(graph: Graph, item: Kernel | Summed, work: Callable[[], object]) -> None:
    """What is refused within is refused with the name of the step's node."""
    try:
        work()
    except Refused as error:
        kernel = item.kernel if isinstance(item, Summed) else item
        name = kernel.nodes[0] if kernel.nodes else kernel.output
        node = graph.by_name.get(name)
        op = node.op_type if node is not None else kernel.params.op
        raise UnsupportedError(f"node {name!r} ({op}): {error}") from error


def _check_step(made: Program, item: Kernel | Summed) -> None:
    """Raise Refused for what no step here computes."""
    kernel = item.kernel if isinstance(item, Summed) else item
    p = kernel.params
    if type(p) not in _STEPS:
        raise Refused(f"cuDNN's graphs have no {p.op} here; they have {', '.join(sorted(_KNOWN))}")
    _check_eight(made, kernel)
    if p.dtype != "float32" and not _eight(p):
        raise Refused(f"it computes in {p.dtype}, and floats and products of int8 alone are taken")
    known = {Unary: UNARY, Binary: BINARY, Reduce: REDUCE, Pool: POOL_KINDS}.get(type(p))
    if known is not None and p.kind not in known:  # type: ignore[attr-defined]
        raise Refused(f"there is no {p.kind} here, but {', '.join(known)}")  # type: ignore[attr-defined]
    weights = kernel.inputs[1:] if isinstance(p, Conv) else kernel.inputs[2:] if isinstance(p, Gemm) else ()
    if any(name not in made.constants for name in weights):
        raise Refused("its weights or bias are no constants")
    if isinstance(p, Conv) and p.group > 1 and p.c // p.group > 1 and (p.c % 8 or p.m % 8):
        raise Refused(f"its {p.group} groups of {p.c} channels and {p.m} maps do not fill 16 bytes")
    if isinstance(p, Conv) and p.depthwise and p.m != p.c and p.c % 8:
        raise Refused(f"its {p.c} channels, each with several maps, do not fill 16 bytes")
    if isinstance(p, Gemm) and p.bias and (p.bias_stride_m or p.bias_stride_n not in (0, 1)):
        raise Refused("its bias is no row, which cuBLASLt adds alone")
    if isinstance(p, Gemm) and kernel.inputs[0] in made.constants:
        raise Refused("its first matrix is a constant")
    shape = made.specs[kernel.output].shape
    if isinstance(p, Binary | MultiplyAdd):
        if len(shape) > MOST_AXES:
            raise Refused(f"it has {len(shape)} axes, and up to {MOST_AXES} are taken")
        if math.prod(shape) > MOST_ITEMS // 8:
            raise Refused(f"it has {math.prod(shape):,} elements, and up to {MOST_ITEMS // 8:,} are taken")
        if all(name in made.constants for name in kernel.inputs):
            raise Refused("all that it reads is constant")


def _eight(p: Params) -> bool:
    """Whether it reads int8 and has a way to."""
    return p.dtype == "int8" and isinstance(p, QConv | QGemm | Quantize | Pool)


def _check_eight(made: Program, kernel: Kernel) -> None:
    """Raise Refused for what of eight bits is not taken."""
    p = kernel.params
    if isinstance(p, Quantize) and (p.through != "int8" or p.channels != 1):
        raise Refused(f"it goes through {p.through} of {p.channels} scales, and int8 of one is taken")
    if isinstance(p, Pool) and p.dtype == "int8" and (p.kind != "max" or p.activation):
        raise Refused("of int8 the largest value alone is pooled")
    if not isinstance(p, QConv | QGemm):
        return
    if (p.dtype, p.weight_dtype) != ("int8", "int8") or p.to not in ("int8", "float32"):
        raise Refused(f"it multiplies {p.dtype} by {p.weight_dtype} to {p.to}, and int8 alone is taken")
    if any(name not in made.constants for name in kernel.inputs[1:]):
        raise Refused("its weights or scales are no constants")
    if np.any(made.constants[kernel.inputs[3]]):
        raise Refused("its weights have a zero point, which cuDNN does not know")
    if isinstance(p, QGemm) and (p.batch != 1 or p.gemm.stride_b):
        raise Refused("it multiplies several matrices, and one is taken")
    depth = p.conv.c // p.conv.group if isinstance(p, QConv) else 16
    if isinstance(p, QConv) and p.conv.group > 1 and (depth % 16 or p.conv.m // p.conv.group % 16):
        raise Refused(f"its {p.conv.group} groups of {p.conv.c} channels do not fill 16 bytes each")


# ------------------------------------------------------------------------------------------------ a pass


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


def built(
    graph: Graph,
    batch: int,
    held: str,
    nhwc: bool,
    tf32: bool,
    gpu: Device,
    convolutions: Convolutions,
    products: Multiplies,
) -> Net:
    """The pass. held: the type of tensors and weights; inputs and outputs are float32 but for float16. tf32:
    whether float32 may be rounded to TF32. Raises UnsupportedError, naming node, operator and reason."""
    made, items = _translated(graph, batch)
    _check(graph, made, items)
    return _Builder(graph, made, items, held, nhwc, tf32, gpu, convolutions, products).net


class _Builder:
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
        self.net, self._tensors, self._constants = Net(), dict[str, Held](), dict[tuple[Any, ...], int]()
        self._give_inputs(graph)
        self._count(items)
        for item in items:
            if isinstance(item, View):
                self._tensors[item.output] = self._tensor(item.source)
                continue
            _named(graph, item, partial(self._step, item))
        for name in made.outputs:
            self._give_out(name)

    # ------------------------------------------------------------------------------------------------ tensors

    def _give_inputs(self, graph: Graph) -> None:
        for info in graph.inputs:
            size = math.prod(self.made.specs[info.name].shape)
            own = self.held != "bfloat16"  # and float16 and float32 are given as they are
            address = self.gpu.new(size * (self.itemsize if own else 4))
            self.net.inputs[info.name] = address
            self._tensors[info.name] = Held(address) if own else Held(given=address)

    def _count(self, items: Sequence[Item]) -> None:
        """How often each tensor is read, so that its memory can go on to another. What a view gives is the
        tensor that it views."""
        self._root: dict[str, str] = {}
        self._uses: Counter[str] = Counter()
        for item in items:
            if isinstance(item, View):
                self._root[item.output] = self.root(item.source)
            else:
                self._uses.update(self.root(name) for name in _reads(item))
        self._uses.update(self.root(name) for name in self.made.outputs)
        self._uses.update(self.net.inputs)

    def root(self, name: str) -> str:
        return self._root.get(name, name)

    def _tensor(self, name: str) -> Held:
        """A tensor of the pass, or a constant that a step reads as one."""
        if name not in self._tensors:
            if name not in self.made.constants:
                raise Refused(f"nothing gives its input {name!r}")
            self._tensors[name] = Held(self.constant(name, self.made.constants[name]))
            self._uses[name] += 1
        return self._tensors[name]

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
        it, size = self._tensor(name), math.prod(self.made.specs[name].shape)
        if it.eight:
            raise Refused(f"its input {name!r} lies as int8, which products of int8 alone read")
        if not it.dense:
            if it.given:
                it.dense = self.gpu.take(size * self.itemsize)
                self.do(self.gpu.launch("cast", (_at(it.given), _at(it.dense), np.int64(size)), size))
            else:
                it.dense = self._out(it, size, "out_to_own", self.itemsize)
        return it.dense

    def _out(self, it: Held, size: int, kernel: str, itemsize: int) -> int:
        _, c, pixels = it.sizes
        if self._same(c, pixels) and kernel == "out_to_own":
            return it.image
        address = self.gpu.take(size * itemsize)
        given = (_at(it.image), _at(address), np.int64(size), np.int32(c), np.int64(pixels))
        self.do(self.gpu.launch(kernel, (*given, np.int32(self.pitch(c))), size))
        return address

    def _same(self, c: int, pixels: int) -> bool:
        """Whether an image lies as ONNX has it."""
        return not self.nhwc or (pixels == 1 and self.pitch(c) == c)

    def image(self, name: str, n: int, c: int, pixels: int) -> int:
        """The address of a tensor as an image; what brings it there is part of the pass."""
        it = self._tensor(name)
        if it.image and it.sizes == (n, c, pixels):
            return it.image
        own = not it.given
        if self._same(c, pixels):
            return self.dense(name)
        source = self.dense(name) if own else it.given
        if it.image:  # as another image; that one may still be read by what is on the way
            it.image = 0
        it.image, it.sizes = self.gpu.take(n * pixels * self.pitch(c) * self.itemsize), (n, c, pixels)
        items = n * pixels * (self.pitch(c) // self.chunk)
        given = (_at(source), _at(it.image), np.int64(items), np.int32(c), np.int64(pixels))
        kernel = "into_of_own" if own else "into_of_float"
        self.do(self.gpu.launch(kernel, (*given, np.int32(self.pitch(c))), items))
        return it.image

    def new_image(self, name: str, n: int, c: int, pixels: int) -> int:
        """The address for what a step gives as an image."""
        address = self.gpu.take(n * pixels * self.pitch(c) * self.itemsize)
        same = self._same(c, pixels)
        self._tensors[name] = Held(address if same else 0, image=address, sizes=(n, c, pixels))
        return address

    def new_dense(self, name: str) -> int:
        address = self.gpu.take(math.prod(self.made.specs[name].shape) * self.itemsize)
        self._tensors[name] = Held(address)
        return address

    def like(self, source: str, name: str) -> tuple[int, int, int]:
        """(address of one tensor, address for another of its shape, elements there) in the layout in which
        the first one lies."""
        it = self._tensor(source)
        if it.image and not it.dense:
            n, c, pixels = it.sizes
            return it.image, self.new_image(name, n, c, pixels), n * pixels * self.pitch(c)
        return self.dense(source), self.new_dense(name), math.prod(self.made.specs[name].shape)

    def _give_out(self, name: str) -> None:
        """Bring an output to memory of its own, in float32 or float16."""
        it, size = self._tensor(name), math.prod(self.made.specs[name].shape)
        whole = self.held == "bfloat16"
        if it.given:
            address = self.gpu.new(4 * size)
            self.do(self.gpu.copy(address, it.given, 4 * size))
        elif whole and not it.image:
            # As one image of one channel: a change of type alone.
            address = self.gpu.new(4 * size)
            self.do(self.gpu.launch("widen", (_at(it.dense), _at(address), np.int64(size)), size))
        elif whole:
            address = self._out(it, size, "out_to_float", 4)
        else:
            address = self.dense(name)
            if address in (*self.net.inputs.values(), *self.net.outputs.values(), *self._constants.values()):
                own = self.gpu.new(size * self.itemsize)
                self.do(self.gpu.copy(own, address, size * self.itemsize))
                address = own
        self.net.outputs[name] = address

    # -------------------------------------------------------------------------------------------------- steps

    def _step(self, item: Kernel | Summed) -> None:
        kernel = item.kernel if isinstance(item, Summed) else item
        other = item.other if isinstance(item, Summed) else ""
        _STEPS[type(kernel.params)](self, kernel, other)
        for root in map(self.root, _reads(item)):
            self._uses[root] -= 1
            if not self._uses[root] and root in self._tensors:
                it = self._tensors[root]
                for address in {it.dense, it.image, it.eight} - {0}:
                    self.gpu.give(address)

    def conv(self, kernel: Kernel, other: str) -> None:
        p = kernel.params
        assert isinstance(p, Conv)
        weight, *bias = (np.asarray(self.made.constants[name], np.float32) for name in kernel.inputs[1:])
        whole = self._filled(p)
        laid = np.zeros((whole.m, whole.c // whole.group, p.kh, p.kw), np.float32)
        laid[: p.m, : weight.shape[1]] = weight
        shift = np.zeros(whole.m, np.float32)
        if bias:
            shift[: p.m] = bias[0]
        x = self.image(kernel.inputs[0], p.n, p.c, p.h * p.w)
        z = self.image(other, p.n, p.m, p.out_h * p.out_w) if other else 0
        names = kernel.inputs[1:]
        w = self.constant(names[0], laid_out(laid, self.held, self.nhwc), "filters")
        key = names[1] if bias else ""  # which no tensor is called
        b = self.constant(key, shift, "shift")
        y = self.new_image(kernel.output, p.n, p.m, p.out_h * p.out_w)
        ends = bool(bias or other or p.activation)
        asked = Convolution(whole, True, bool(other), self.held, self.nhwc, self._strict)
        bare = replace(asked, conv=replace(whole, bias=False, activation=None), finished=False, summed=False)
        ways: list[tuple[float, str, Work]] = []
        if ends:
            for plan in self.convolutions.plans(asked, (x, w, b, z, y)):
                work = _bound(plan, x, w, b, z, y)
                ways.append((plan.elapsed_ns, f"{plan.words}, with what follows it", work))
        for plan in self.convolutions.plans(bare, (x, w, 0, 0, y)):
            work = _bound(plan, x, w, 0, 0, y)
            elapsed, words = plan.elapsed_ns, plan.words
            if ends:
                shifts = self.constant(key, shift, "shift in float32", "float32") if bias else 0
                end = self._finish(y, 0, shifts, z, y, p.n, p.m, p.out_h * p.out_w, p.activation)
                self.gpu.put(end)
                self.gpu.synchronize()
                elapsed += self.gpu.time_ns(end)
                work, words = _both(work, end), f"{words}, and a kernel for what follows it"
            ways.append((elapsed, words, work))
        if not ways:
            raise Refused(f"cuDNN has no engine for {p.words} in {self.held} with channels "
                          f"{'innermost' if self.nhwc else 'as ONNX has them'}")  # fmt: skip
        _, words, work = min(ways, key=lambda way: way[0])
        self.do(work)
        self.net.words[kernel.nodes[0] if kernel.nodes else kernel.output] = words

    @property
    def _strict(self) -> bool:
        return self.held == "float32" and not self.tf32

    def _filled(self, p: Conv) -> Conv:
        """With the channels and maps that lie in memory."""
        c, m = self.pitch(p.c), self.pitch(p.m)
        group = c if p.depthwise else p.group
        if p.depthwise and p.m != p.c and c != p.c:
            raise Refused(f"its {p.c} channels, each with several maps, do not fill {self.chunk}")
        if group > 1 and not p.depthwise and (c, m) != (p.c, p.m):
            raise Refused(f"its {p.group} groups of {p.c} channels and {p.m} maps do not fill 16 bytes")
        return replace(p, c=c, m=m, group=group, bias=True, dtype="float32")

    def _finish(
        self,
        x: int,
        factor: int,
        shift: int,
        other: int,
        y: int,
        n: int,
        c: int,
        pixels: int,
        activation: str | None,
    ) -> Work:
        items = n * pixels * (self.pitch(c) // self.chunk)
        places = map(_at, (x, factor, shift, other, y))
        sizes = np.int64(items), np.int32(c), np.int32(self.pitch(c)), np.int64(pixels)
        return self.gpu.launch("finish", (*places, *sizes, np.int32(_activation(activation))), items)

    def gemm(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Gemm)
        left, right = kernel.inputs[:2]
        constant = self.made.constants.get(right)
        it = self._tensor(left)
        n, c, pixels = it.sizes
        k = p.k
        if constant is not None and not p.stride_b:
            matrix = np.asarray(constant, np.float32).reshape((p.n, p.k) if p.trans_b else (p.k, p.n))
            matrix = matrix if p.trans_b else matrix.T
            flat = it.image and not it.dense and not p.trans_a and p.batch == 1 and n == p.m
            if flat and c * pixels == p.k:
                # Rows of pixels are read as they lie: the weights are put in that order, with zeros between.
                laid = np.zeros((p.n, pixels, self.pitch(c)), np.float32)
                laid[:, :, :c] = matrix.reshape(p.n, c, pixels).transpose(0, 2, 1)
                k, matrix = pixels * self.pitch(c), laid.reshape(p.n, -1)
                a, how = it.image, "rows of pixels"
            else:
                a, how = self.dense(left), "rows"
            b, second = self.constant(right, matrix, how), Matrix(p.n, k, transposed=True)
        else:
            a, b = self.dense(left), self.dense(right)
            rows, columns = (p.n, p.k) if p.trans_b else (p.k, p.n)
            second = Matrix(rows, columns, p.trans_b, p.stride_b)
        rows, columns = (k, p.m) if p.trans_a else (p.m, k)
        first = Matrix(rows, columns, p.trans_a, p.stride_a)
        shift = 0
        if p.bias:
            given = np.asarray(self.made.constants[kernel.inputs[2]], np.float32).reshape(-1) * p.beta
            row = np.ascontiguousarray(np.broadcast_to(given, p.n))
            shift = self.constant(kernel.inputs[2], row, f"row times {p.beta}")
        y = self.new_dense(kernel.output)
        relu = p.activation == "relu"
        asked = Product(first, second, p.m, p.n, p.batch, p.alpha, p.bias, relu, self.held, self.tf32)
        work, words = self.products.run(asked, a, b, shift, y)
        self.do(work)
        self.net.words[kernel.nodes[0] if kernel.nodes else kernel.output] = words
        if p.activation and not relu:
            kind = p.activation if p.activation in UNARY else "clip"  # relu6
            self.do(self._one(y, y, p.batch * p.m * p.n, kind, 0.0, 6.0))

    def _one(self, x: int, y: int, size: int, kind: str, alpha: float, beta: float) -> Work:
        numbers = np.int32(UNARY.index(kind)), np.float32(alpha), np.float32(beta)
        return self.gpu.launch("one", (_at(x), _at(y), np.int64(size), *numbers), size)

    def pool(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Pool)
        if p.dtype == "int8":
            self._largest_of_eight(kernel, p)
            return
        x = self.image(kernel.inputs[0], p.n, p.c, p.h * p.w)
        y = self.new_image(kernel.output, p.n, p.c, p.out_h * p.out_w)
        items = p.n * p.out_h * p.out_w * (self.pitch(p.c) // self.chunk)
        sizes = (
            p.c, self.pitch(p.c), POOL_KINDS.index(p.kind), p.h, p.w, p.out_h, p.out_w, p.kh, p.kw,
            p.stride_h, p.stride_w, p.pad_top, p.pad_left, p.pad_bottom, p.pad_right, p.dilation_h,
            p.dilation_w, p.count_include_pad, _activation(p.activation),
        )  # fmt: skip
        self.do(self.gpu.launch("pool", (_at(x), _at(y), np.int64(items), *map(np.int32, sizes)), items))

    def lrn(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Lrn)
        x = self.image(kernel.inputs[0], p.n, p.c, p.inner)
        y = self.new_image(kernel.output, p.n, p.c, p.inner)
        items = p.n * p.inner * (self.pitch(p.c) // self.chunk)
        sizes = np.int64(items), np.int32(p.c), np.int32(self.pitch(p.c)), np.int64(p.inner)
        factors = map(np.float32, (p.scale, p.beta, p.bias))
        self.do(self.gpu.launch("lrn", (_at(x), _at(y), *sizes, *factors), items, size=p.size))

    def unary(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Unary)
        x, y, size = self.like(kernel.inputs[0], kernel.output)
        self.do(self._one(x, y, size, p.kind, p.alpha, p.beta))

    def binary(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Binary)
        a, b = kernel.inputs
        self._two(a, b, kernel.output, p.kind, p.activation)

    def _two(self, a: str, b: str, output: str, kind: str, activation: str | None) -> None:
        shape = self.made.specs[output].shape
        images = [name for name in (a, b) if self._lies_as_image(name, shape)]
        if self.nhwc and images and all(self._walks(name, shape) for name in (a, b)):
            self._two_images(a, b, output, shape, kind, activation)
            return
        places = [self.dense(name) for name in (a, b)]
        walks = [_walk(self.made.specs[name].shape, shape) for name in (a, b)]
        y = self.new_dense(output)
        table = _table(shape, *walks)
        self._walked(places, y, math.prod(shape), table, kind, activation, table[MOST_AXES - 1])

    def _lies_as_image(self, name: str, shape: tuple[int, ...]) -> bool:
        it = self._tensors.get(name)
        if it is None or it.dense or not it.image or len(shape) < 3:
            return False
        return it.sizes == (shape[0], shape[1], math.prod(shape[2:]))

    def _walks(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether an operand goes along an image of that shape: it is one, or has one pixel, or is a number a
        channel."""
        own = self.made.specs[name].shape
        own = (1,) * (len(shape) - len(own)) + own
        if name in self.made.constants:
            return math.prod(own) in (1, own[1])
        return own == shape or (own[:2] == shape[:2] and math.prod(own[2:]) == 1)

    def _two_images(
        self, a: str, b: str, output: str, shape: tuple[int, ...], kind: str, activation: str | None
    ) -> None:
        n, c, pixels = shape[0], shape[1], math.prod(shape[2:])
        pitch, places, walks = self.pitch(c), [], []
        for name in (a, b):
            constant = self.made.constants.get(name)
            if constant is not None:
                row = np.zeros(pitch, np.float32)
                row[:c] = np.asarray(constant, np.float32).reshape(-1)
                places.append(self.constant(name, row, f"row of {pitch}"))
                walks.append((0, 0, 1))
            elif math.prod(self.made.specs[name].shape) == n * c * pixels:
                places.append(self.image(name, n, c, pixels))
                walks.append((pixels * pitch, pitch, 1))
            else:
                places.append(self.image(name, n, c, 1))
                walks.append((pitch, 0, 1))
        y = self.new_image(output, n, c, pixels)
        table = _table((n, pixels, pitch), *walks)
        self._walked(places, y, n * pixels * pitch, table, kind, activation, c)

    def _walked(
        self,
        places: Sequence[int],
        y: int,
        size: int,
        table: Sequence[int],
        kind: str,
        activation: str | None,
        count: int,
    ) -> None:
        at = self.constant("", np.array(table, np.int32), f"walk {table}", "int32")
        numbers = np.int32(size), _at(at), np.int32(BINARY.index(kind)), np.int32(_activation(activation))
        given = (*map(_at, places), _at(y), *numbers, np.int32(count))
        self.do(self.gpu.launch("two", given, size))

    def multiply_add(self, kernel: Kernel, _: str) -> None:
        """As a normalisation ends: by channels in one kernel, else the product and the sum in two."""
        p = kernel.params
        assert isinstance(p, MultiplyAdd)
        a, b, c = kernel.inputs
        shape = self.made.specs[kernel.output].shape
        if len(shape) > 2 and self.made.specs[a].shape == shape and all(
            name in self.made.constants and self._walks(name, shape) for name in (b, c)
        ):  # fmt: skip
            n, channels, pixels = shape[0], shape[1], math.prod(shape[2:])
            rows = []
            for name in (b, c):
                row = np.broadcast_to(np.asarray(self.made.constants[name]).reshape(-1), channels)
                rows.append(self.constant(name, row, "row in float32", "float32"))
            x = self.image(a, n, channels, pixels)
            y = self.new_image(kernel.output, n, channels, pixels)
            self.do(self._finish(x, rows[0], rows[1], 0, y, n, channels, pixels, p.activation))
            return
        product = f"{kernel.output} before its sum"
        while product in self._tensors:
            product += "'"
        specs = dict(self.made.specs)
        specs[product] = specs[kernel.output]
        self.made = replace(self.made, specs=specs)
        self._two(a, b, product, "mul", None)
        self._two(product, c, kernel.output, "add", p.activation)
        held = self._tensors.pop(product)
        for address in {held.dense, held.image} - {0}:
            self.gpu.give(address)

    def concat(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Concat)
        shape = self.made.specs[kernel.output].shape
        first = self.made.specs[kernel.inputs[0]].shape
        axis = next(iter(i for i in range(len(shape)) if shape[i] != first[i]), 0)
        if self.nhwc and axis == 1 and len(shape) > 2 and len(kernel.inputs) > 1:
            n, c, pixels = shape[0], shape[1], math.prod(shape[2:])
            parts = [(self.made.specs[name].shape[1], name) for name in kernel.inputs]
            places = [self.image(name, n, count, pixels) for count, name in parts]
            y, pitch = self.new_image(kernel.output, n, c, pixels), self.pitch(c) * self.itemsize
            if self.pitch(c) != c:
                self.do(self.gpu.clear(y, n * pixels * pitch))
            start = y
            for (count, _name), place in zip(parts, places, strict=True):
                width = count * self.itemsize
                own = self.pitch(count) * self.itemsize
                self.do(self.gpu.copy_rows(start, pitch, place, own, width, n * pixels))
                start += width
            return
        places = [self.dense(name) for name in kernel.inputs]
        start = self.new_dense(kernel.output)
        for width, place in zip(p.widths, places, strict=True):
            nbytes = width * self.itemsize
            row = p.row * self.itemsize
            self.do(self.gpu.copy_rows(start, row, place, nbytes, nbytes, p.outer))
            start += nbytes

    def softmax(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Softmax)
        x, y = self.dense(kernel.inputs[0]), self.new_dense(kernel.output)
        sizes = np.int32(p.axis), np.int64(p.inner), np.int32(p.log)
        self.do(self.gpu.launch("softmax", (_at(x), _at(y), *sizes), blocks=p.outer * p.inner))

    def reduce(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Reduce)
        x, y = self.dense(kernel.inputs[0]), self.new_dense(kernel.output)
        sizes = np.int32(p.axis), np.int64(p.inner), np.int32(REDUCE.index(p.kind))
        self.do(self.gpu.launch("reduced", (_at(x), _at(y), *sizes), blocks=p.outer * p.inner))

    # --------------------------------------------------------------------------------------------- eight bits

    def eight(self, name: str) -> tuple[int, tuple[int, int, int]]:
        """The address of a tensor of int8, and its sizes."""
        it = self._tensor(name)
        if not it.eight:
            raise Refused(f"its input {name!r} is no tensor of int8")
        return it.eight, it.sizes

    def new_eight(self, name: str, n: int, c: int, pixels: int) -> int:
        address = self.gpu.take(n * pixels * _pitch_of_eight(c))
        self._tensors[name] = Held(eight=address, sizes=(n, c, pixels))
        return address

    def quantize(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, Quantize)
        scale, zero = (np.asarray(self.made.constants[name]).reshape(-1)[0] for name in kernel.inputs[1:])
        numbers = np.float32(scale), np.int32(zero)
        shape = self.made.specs[kernel.output].shape
        if p.dtype == "int8":
            x, (n, c, pixels) = self.eight(kernel.inputs[0])
        else:
            n, c, pixels = (*shape[:2], math.prod(shape[2:])) if len(shape) > 1 else (1, *shape, 1)
            x = self.image(kernel.inputs[0], n, c, pixels)
        pitch, eight = self.pitch(c), _pitch_of_eight(c)
        sizes = np.int32(c), np.int32(pitch), np.int32(eight)
        if p.dtype != "int8":
            output = kernel.output if p.to == "int8" else f"{kernel.output} in int8"
            y, items = self.new_eight(output, n, c, pixels), n * pixels * (eight // 4)
            given = (_at(x), _at(y), np.int64(items), *sizes, *numbers)
            self.do(self.gpu.launch("to_eight", given, items))
            x = y
        if p.to == "int8":
            return
        y, items = self.new_image(kernel.output, n, c, pixels), n * pixels * (pitch // self.chunk)
        self.do(self.gpu.launch("of_eight", (_at(x), _at(y), np.int64(items), *sizes, *numbers), items))
        if p.dtype != "int8":
            self.gpu.give(self._tensors.pop(f"{kernel.output} in int8").eight)

    def _sums(self, kernel: Kernel, p: QConv | QGemm, laid: np.ndarray) -> tuple[int, int, int]:
        """Addresses of what makes a sum of products the step's answer: bias in int32, factor and shift in
        float32, one of each a channel. laid: the weights, channels first. Zero points of x are part of the
        bias."""
        zero = int(np.asarray(self.made.constants[kernel.inputs[2]]).reshape(-1)[0])
        bias, scale, *shift = (np.asarray(self.made.constants[name]) for name in kernel.inputs[4:])
        sums = laid.astype(np.int64).reshape(len(laid), -1).sum(axis=1)[: p.channels]
        out = p.out_scale if p.to == "int8" else 1.0
        names = kernel.inputs[4], kernel.inputs[5]
        how = f"{kernel.output} of {out}"
        added = np.zeros(p.channels) if not shift else np.asarray(shift[0], np.float64) / out
        return (
            self.constant(names[0], bias.astype(np.int64) - zero * sums, how, "int32"),
            self.constant(names[1], np.asarray(scale, np.float64) / out, how, "float32"),
            self.constant(names[1], added, f"shift of {how}", "float32"),
        )

    def _end_of_sums(self, p: QConv | QGemm, sums: int, ends: tuple[int, int, int], kernel: Kernel,
                     sizes: tuple[int, int, int]) -> Work:  # fmt: skip
        """What makes int32 sums the step's answer."""
        n, c, pixels = sizes
        eight = _pitch_of_eight(c)
        places = map(_at, (sums, *ends))
        if p.to == "int8":
            y, items = self.new_eight(kernel.output, n, c, pixels), n * pixels * (eight // 4)
            limits = map(np.int32, (p.out_zero, p.low, p.high))
            given = (*places, _at(y), np.int64(items), np.int32(c), np.int32(eight), *limits)
            return self.gpu.launch("sums_to_eight", given, items)
        y, items = self.new_image(kernel.output, n, c, pixels), n * pixels * (self.pitch(c) // self.chunk)
        given = (*places, _at(y), np.int64(items), *map(np.int32, (c, self.pitch(c), eight)))
        return self.gpu.launch("sums_to_real", given, items)

    def qconv(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, QConv)
        conv, zero = p.conv, int(np.asarray(self.made.constants[kernel.inputs[2]]).reshape(-1)[0])
        x, _sizes = self.eight(kernel.inputs[0])
        c, m = _pitch_of_eight(conv.c), _pitch_of_eight(conv.m)
        weight = np.asarray(self.made.constants[kernel.inputs[1]])
        laid = np.zeros((m, c // conv.group, conv.kh, conv.kw), np.int8)
        laid[: conv.m, : weight.shape[1]] = weight
        whole = replace(conv, c=c, m=m, bias=False, activation=None)
        frame = (conv.pad_top, conv.pad_left, conv.pad_bottom, conv.pad_right)
        framed = 0
        if zero and any(frame):  # cuDNN's frame is of zeros, and this one's zero is another number
            h, w = conv.h + frame[0] + frame[2], conv.w + frame[1] + frame[3]
            framed = self.gpu.take(conv.n * h * w * c)
            items = conv.n * h * w * (c // 4)
            numbers = map(np.int32, (c, conv.h, conv.w, h, w, frame[0], frame[1], zero))
            self.do(self.gpu.launch("framed", (_at(x), _at(framed), np.int64(items), *numbers), items))
            whole = replace(whole, h=h, w=w, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0)
            x = framed
        w8 = self.constant(kernel.inputs[1], laid_out(laid, "int8", True), "filters of int8", "int8")
        ends = self._sums(kernel, p, laid)
        pixels = conv.out_h * conv.out_w
        sums = self.gpu.take(4 * conv.n * pixels * m)
        asked = Convolution(whole, False, False, "int8", True, False)
        ways: list[tuple[float, str, Work]] = []
        end = self._end_of_sums(p, sums, ends, kernel, (conv.n, conv.m, pixels))
        y = self._tensors[kernel.output].eight
        for plan in self.convolutions.plans(asked, (x, w8, 0, 0, sums)):
            self.gpu.put(end)
            self.gpu.synchronize()
            elapsed = plan.elapsed_ns + self.gpu.time_ns(end)
            work = _both(_bound(plan, x, w8, 0, 0, sums), end)
            ways.append((elapsed, f"{plan.words}, and a kernel that makes sums int8", work))
        if p.to == "int8" and (p.low, p.high) == (-128, 127):
            factor, shift = self._folded(kernel, p, laid, m)
            finished = replace(asked, finished=True)
            for plan in self.convolutions.plans(finished, (x, w8, shift, factor, y)):
                work = _bound(plan, x, w8, shift, factor, y)
                ways.append((plan.elapsed_ns, f"{plan.words}, to int8", work))
        if not ways:
            raise Refused(f"cuDNN has no engine for {conv.words} in int8")
        _, words, work = min(ways, key=lambda way: way[0])
        self.do(work)
        self.net.words[kernel.nodes[0] if kernel.nodes else kernel.output] = words
        for address in {framed, sums} - {0}:
            self.gpu.give(address)

    def _folded(self, kernel: Kernel, p: QConv, laid: np.ndarray, m: int) -> tuple[int, int]:
        """Factor and shift of a sum, bias and zero points in them, for what cuDNN ends a graph with."""
        zero = int(np.asarray(self.made.constants[kernel.inputs[2]]).reshape(-1)[0])
        bias, scale, *shift = (
            np.asarray(self.made.constants[name], np.float64) for name in kernel.inputs[4:]
        )
        sums = laid.astype(np.int64).reshape(len(laid), -1).sum(axis=1)[: p.channels]
        rows = np.zeros((2, m))
        rows[0, : p.channels] = scale / p.out_scale
        rows[1, : p.channels] = (bias - zero * sums) * scale / p.out_scale + p.out_zero
        if shift:
            rows[1, : p.channels] += shift[0] / p.out_scale
        how = f"{kernel.output} folded of {m}"
        return (
            self.constant(kernel.inputs[5], rows[0], how, "float32"),
            self.constant(kernel.inputs[4], rows[1], how, "float32"),
        )

    def qgemm(self, kernel: Kernel, _: str) -> None:
        p = kernel.params
        assert isinstance(p, QGemm)
        gemm = p.gemm
        x, (n, c, pixels) = self.eight(kernel.inputs[0])
        if n != gemm.m or c * pixels != gemm.k:
            raise Refused(f"its rows of {gemm.k} are no images of {c} channels")
        matrix = np.asarray(self.made.constants[kernel.inputs[1]])
        matrix = matrix.reshape((gemm.n, gemm.k) if gemm.trans_b else (gemm.k, gemm.n))
        rows = matrix if gemm.trans_b else matrix.T
        depth, columns = pixels * _pitch_of_eight(c), _pitch_of_eight(gemm.n)
        # Rows of pixels are read as they lie: the weights are put in that order, with zeros between.
        laid = np.zeros((columns, pixels, _pitch_of_eight(c)), np.int8)
        laid[: gemm.n, :, :c] = rows.reshape(gemm.n, c, pixels).transpose(0, 2, 1)
        w8 = self.constant(kernel.inputs[1], laid.reshape(columns, depth), "rows of int8", "int8")
        ends = self._sums(kernel, p, laid)
        sums = self.gpu.take(4 * gemm.m * columns)
        first, second = Matrix(gemm.m, depth), Matrix(columns, depth, transposed=True)
        asked = Product(first, second, gemm.m, columns, 1, 1.0, False, False, "int8", False)
        work, words = self.products.run(asked, x, w8, 0, sums)
        self.do(_both(work, self._end_of_sums(p, sums, ends, kernel, (gemm.m, gemm.n, 1))))
        self.net.words[kernel.nodes[0] if kernel.nodes else kernel.output] = words
        self.gpu.give(sums)

    def _largest_of_eight(self, kernel: Kernel, p: Pool) -> None:
        x, _sizes = self.eight(kernel.inputs[0])
        pixels, pitch = p.out_h * p.out_w, _pitch_of_eight(p.c)
        y, items = self.new_eight(kernel.output, p.n, p.c, pixels), p.n * pixels * (pitch // 4)
        numbers = (
            pitch, p.h, p.w, p.out_h, p.out_w, p.kh, p.kw, p.stride_h, p.stride_w, p.pad_top, p.pad_left,
            p.dilation_h, p.dilation_w,
        )  # fmt: skip
        given = (_at(x), _at(y), np.int64(items), *map(np.int32, numbers))
        self.do(self.gpu.launch("largest_of_eight", given, items))


def _pitch_of_eight(channels: int) -> int:
    """Channels of a pixel of int8: a word where they are few, else whole vectors."""
    return 4 if channels <= 4 else -(-channels // 16) * 16


_STEPS: Mapping[type[Params], Callable[[_Builder, Kernel, str], None]] = {
    Conv: _Builder.conv,
    Gemm: _Builder.gemm,
    Pool: _Builder.pool,
    Lrn: _Builder.lrn,
    Unary: _Builder.unary,
    Binary: _Builder.binary,
    MultiplyAdd: _Builder.multiply_add,
    Concat: _Builder.concat,
    Softmax: _Builder.softmax,
    Reduce: _Builder.reduce,
    Quantize: _Builder.quantize,
    QConv: _Builder.qconv,
    QGemm: _Builder.qgemm,
}
_KNOWN = [params.op for params in _STEPS]


def _reads(item: Kernel | Summed) -> tuple[str, ...]:
    return (*item.kernel.inputs, item.other) if isinstance(item, Summed) else item.inputs


def _bound(plan: Plan, *places: int) -> Work:
    x, w, b, z, y = places
    return lambda: plan.run(x, w, b, z, y)


def _both(first: Work, second: Work) -> Work:
    def run() -> None:
        first()
        second()

    return run


def _at(address: int) -> np.uint64:
    return np.uint64(address)


def _activation(name: str | None) -> int:
    return ("none", *ACTIVATIONS).index(name or "none")


def _walk(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The steps of a dense operand along each axis of what it is broadcast to."""
    steps = zip(own, contiguous_strides(own), strict=True)
    walk = tuple(step if size > 1 else 0 for size, step in steps)
    return (0,) * (len(shape) - len(own)) + walk


def _table(shape: Sequence[int], *walks: Sequence[int]) -> tuple[int, ...]:
    """Sizes and steps, filled up in front to MOST_AXES."""
    before = MOST_AXES - len(shape)
    rows = [(1,) * before + tuple(shape)] + [(0,) * before + tuple(walk) for walk in walks]
    return tuple(value for row in rows for value in row)
