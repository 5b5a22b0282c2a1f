"""From our Graph to a pass of cuDNN graphs, cuBLASLt products and a few small kernels, at one batch size.

It starts from the engine's own passes (engine.passes), as a careful engineer would: constants folded, batch
normalisations in the weights, activations behind convolutions. Then a sum with what a block was given joins
the convolution before it. `refusal` needs no library and no GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from engine.graph.graph import Graph
from engine.ops import Kernel, View
from engine.ops._base import Refused
from engine.passes import Program, program
from engine.rivals import cudnn_eight, cudnn_operators
from engine.rivals.cudnn_operators import HANDLERS
from engine.rivals.cudnn_pass import Convolutions, Device, Item, Multiplies, Net, Pass, Summed
from kernels.errors import UnsupportedError
from kernels.ops.binary import Binary
from kernels.ops.conv import Conv
from kernels.ops.qconv import QConv
from kernels.ops.qgemm import QGemm


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
        for name in item.inputs:
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
    if type(p) not in HANDLERS:
        raise Refused(
            f"cuDNN's graphs have no {p.op} here; they have "
            f"{', '.join(sorted(record.op for record in HANDLERS))}"
        )
    cudnn_eight.check(made, kernel)
    if p.dtype != "float32" and not cudnn_eight.reads_eight(p):
        raise Refused(f"it computes in {p.dtype}, and floats and products of int8 alone are taken")
    cudnn_operators.check(made, kernel)


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
    made_pass = Pass(graph, made, items, held, nhwc, tf32, gpu, convolutions, products)
    for item in items:
        if isinstance(item, View):
            made_pass.alias(item)
        else:
            _named(graph, item, partial(_step, made_pass, item))
    for name in made.outputs:
        made_pass.give_out(name)
    return made_pass.net


def _step(to: Pass, item: Kernel | Summed) -> None:
    kernel, other = (item.kernel, item.other) if isinstance(item, Summed) else (item, "")
    HANDLERS[type(kernel.params)](to, kernel, other)
    to.over(item)
