"""What an operator file is given and what it answers (Scope, Lowered), and the helpers they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field

import numpy as np

from engine.graph.graph import Node
from engine.graph.plan import TensorSpec
from kernels.errors import UnsupportedError
from kernels.ops import Params

# What lists of axes, sizes and pads may hold: two for each axis that NumPy knows.
MOST_INTEGERS = 128


DEFAULT_DOMAINS = ("", "ai.onnx")


class Refused(UnsupportedError):
    """Raised by an operator file: the reason alone; `engine.ops.lower` puts the node and its op before it."""


@dataclass(frozen=True)
class Kernel:
    """One kernel launch before a rung is chosen: `inputs` in the order of the params' docstring.

    nodes: the ONNX nodes it covers. parameters: elements of the constants it reads, counted before fusion.
    """

    params: Params
    inputs: tuple[str, ...]
    output: str
    nodes: tuple[str, ...] = ()
    parameters: int = 0


@dataclass(frozen=True)
class View:
    """The output is the same bytes as `source` under another shape: nothing runs."""

    source: str
    output: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """The result of lowering a node: its kernels or view in order, the specs of the tensors that they write,
    and the constants that they need beyond the graph's own."""

    items: tuple[Kernel | View, ...]
    specs: Mapping[str, TensorSpec]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Dequantized:
    """A constant that was dequantized beforehand: the node ("" for one within another node, that was written
    out), the eight-bit or 32-bit tensor that it read, and its scale and zero point, of one element or of one
    for each place along `axis`."""

    node: str
    source: str
    value: np.ndarray
    scale: np.ndarray
    zero: np.ndarray | None
    axis: int


@dataclass
class Scope:
    """What is known where a node stands: every tensor before it, with the batch fixed.

    opset: of the default domain. specs: shape and dtype by tensor name. constants: the values of those that
    do not depend on the graph's inputs; dequantized: of some of these, what they were made of. consumed:
    every name that a node reads or the graph gives out.
    """

    opset: int
    specs: MutableMapping[str, TensorSpec]
    constants: MutableMapping[str, np.ndarray]
    consumed: frozenset[str]
    dequantized: dict[str, Dequantized] = field(default_factory=dict)

    def spec(self, name: str) -> TensorSpec:
        """Shape and dtype of a tensor. Raises Refused where they are not known."""
        try:
            return self.specs[name]
        except KeyError:
            raise Refused(f"nothing is known of the shape of its input {name!r}") from None

    def shape(self, name: str) -> tuple[int, ...]:
        return self.spec(name).shape

    def first(self, node: Node) -> tuple[str, tuple[int, ...], str]:
        """Name, shape and dtype of a node's first input."""
        spec = self.spec(node.inputs[0])
        return node.inputs[0], spec.shape, spec.dtype

    def elements(self, names: Iterable[str]) -> int:
        """The elements of those of these tensors that are constant, each counted once."""
        return sum(math.prod(self.specs[name].shape) for name in set(names) if name in self.constants)

    def constant(self, node: Node, index: int, what: str) -> np.ndarray | None:
        """The value of input `index`, None where that optional input is absent.

        Raises Refused if it depends on the graph's inputs."""
        name = optional_input(node, index)
        if not name:
            return None
        if name not in self.constants:
            raise Refused(f"its {what} must be constant, and {name!r} depends on the graph's inputs")
        return self.constants[name]

    def integers(self, node: Node, index: int, what: str) -> list[int] | None:
        """The whole numbers of constant input `index` with one axis (or a single number), None where that
        input is absent.

        Raises Refused for any other constant."""
        value = self.constant(node, index, what)
        if value is None:
            return None
        if value.ndim > 1 or value.dtype.kind not in "iu" or value.size > MOST_INTEGERS:
            raise Refused(
                f"its {what} must be up to {MOST_INTEGERS} whole numbers along one axis, and it has the "
                f"shape {value.shape} of {value.dtype.name}"
            )
        return [int(number) for number in value.reshape(-1)]

    def refuse_outputs(self, node: Node, what: str) -> None:
        """Refuse a node whose outputs beyond the first are used."""
        for name in node.outputs[1:]:
            if name and name in self.consumed:
                raise Refused(f"its output {name!r} ({what}) is used, and only the first output is supported")


Lowering = Callable[[Node, Scope], Lowered]
LOWERINGS: dict[str, Lowering] = {}  # by an operator's full name


def full_name(domain: str, op_type: str) -> str:
    """What an operator is called here: its op type, behind its domain and a dot where that is another one."""
    return op_type if domain in DEFAULT_DOMAINS else f"{domain}.{op_type}"


def operator(*op_types: str, domain: str = "") -> Callable[[Lowering], Lowering]:
    """Makes a function lower the nodes of these op types. Raises ValueError where another one does."""

    def registered(function: Lowering) -> Lowering:
        for op_type in op_types:
            name = full_name(domain, op_type)
            if name in LOWERINGS:
                raise ValueError(f"two functions of engine/ops lower {name}")
            LOWERINGS[name] = function
        return function

    return registered


def optional_input(node: Node, index: int) -> str:
    """Name of input `index`, "" where it is absent."""
    return node.inputs[index] if index < len(node.inputs) else ""


def normal_axis(axis: int, rank: int, *, inclusive: bool = False) -> int:
    """`axis` counted from the front; `inclusive` allows axis == rank (Flatten). Raises Refused."""
    last = rank if inclusive else rank - 1
    if not -rank <= axis <= last:
        raise Refused(f"axis {axis} is outside a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def kernel(
    node: Node, params: Params, inputs: tuple[str, ...], shape: tuple[int, ...], dtype: str
) -> Lowered:
    """A node that is one launch."""
    output = node.outputs[0]
    return Lowered((Kernel(params, inputs, output),), {output: TensorSpec(shape, dtype)})


def view(node: Node, scope: Scope, shape: tuple[int, ...]) -> Lowered:
    """A node that only gives its first input another shape. Raises Refused if the element counts differ."""
    source = scope.spec(node.inputs[0])
    if math.prod(shape) != math.prod(source.shape):
        raise Refused(f"a tensor of shape {source.shape} does not fit shape {shape}")
    output = node.outputs[0]
    return Lowered((View(node.inputs[0], output),), {output: TensorSpec(shape, source.dtype)})


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements a step along each axis of a dense row-major tensor."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
