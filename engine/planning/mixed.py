"""Mixed precision: what each step of a plan is asked to compute in, so that the error of the model's answer
stays within a budget (kernels.precision.within).

A mix names a precision for every product of the model: convolutions, matrix products, attention. What
follows a product, up to the next, is asked for in the same precision, so that it can read its layouts. A mix
of one precision alone is a plan of that precision.

Which mix is the fastest within the budget is measured once (bench.measure.tuned.mixes) and kept. It hangs on
the machine, the model with its weights, the batch size, the budget, the kernels, and the images on which the
answer was held against float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from engine.graph.graph import Graph
from engine.graph.plan import Plan
from engine.ops import Kernel
from engine.options import Options
from engine.passes import Joins, program
from engine.planning import choices
from engine.planning.choices import Choice
from engine.planning.step_fusion import better_fused, never
from kernels import registry
from kernels.cache import Key
from kernels.errors import InputError
from kernels.ops import Params
from kernels.ops.attention import Attention
from kernels.ops.conv import Conv
from kernels.ops.conv_pool import ConvPool
from kernels.ops.gemm import Gemm
from kernels.precision import FP32, NAMES, budget

Mix = tuple[tuple[str, str], ...]
"""(node, precision) of every product, in the order in which they run."""


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """choice: among the mixes that were tried. images: keys of the images on which the best was held against
    float64 (bench.measure.tuned.mixes)."""

    choice: Choice[Mix]
    images: tuple[str, ...] = ()


MIXES = choices.Part[Timed]("mixes", Timed)


def multiplies(params: Params) -> bool:
    """Whether a step is a product, whose precision a mix names."""
    return isinstance(params, Conv | ConvPool | Gemm | Attention)


def products(graph: Graph, batch: int) -> tuple[str, ...]:
    """The first node of each product. Raises as `program`."""
    return tuple(dict.fromkeys(item.nodes[0] for item in _kernels(graph, batch) if multiplies(item.params)))


def uniform(graph: Graph, batch: int, precision: str) -> Mix:
    """All products in one precision. Raises as `program`."""
    return tuple((node, precision) for node in products(graph, batch))


def planned(graph: Graph, batch: int, device: str, precision: str, options: Options) -> dict[str, str]:
    """The precision of every product in a plan of this mixed precision: that of a rung that is named for it,
    else as the options say, else as was found on this machine, else fp32. Raises as `program`."""
    mix = options.mix
    if mix is None and options.tuned:
        known = read(graph, batch, device, precision)
        mix = dict(known.choice.best or ()) if known is not None and known.choice.done else None
    found = {node: (mix or {}).get(node, FP32) for node in products(graph, batch)}
    for item in _kernels(graph, batch):
        node = item.nodes[0]
        if node in found and node in options.rungs:
            named = _named(device, item.params.op, options, node)
            found[node] = found[node] if named in (None, FP32) else named
    return found


def _named(device: str, op: str, options: Options, node: str) -> str | None:
    """The precision of the rung that is named for a node; None where there is none of its operator."""
    try:
        return registry.find(device, op, options.rungs[node], options.kernel_dirs).precision
    except InputError:
        return None


def only(mix: Mapping[str, str]) -> str | None:
    """The one precision of all products, fp32 where there are none; None where there are several."""
    found = set(mix.values()) or {FP32}
    return found.pop() if len(found) == 1 else None


def asked(kernels: Sequence[Kernel], precision: str, mix: Mapping[str, str]) -> list[str]:
    """What each of these is asked to compute in: that of the plan, if it is not a mixed one."""
    if budget(precision) is None:
        return [precision] * len(kernels)
    found: list[str] = []
    for item in kernels:
        before = found[-1] if found else ""
        found.append(mix.get(item.nodes[0], FP32) if multiplies(item.params) else before)
    first = next(filter(None, found), FP32)  # what stands in front of the first product
    return [name or first for name in found]


def of_nodes(nodes: Iterable[str], precision: str, options: Options) -> str:
    """What a layer of these nodes is asked for in a session of this precision: in a mixed one, what
    options.mix says of the first of them that it names."""
    if budget(precision) is None or options.mix is None:
        return precision
    return next((options.mix[node] for node in nodes if node in options.mix), FP32)


def coarsest(precision: str, options: Options) -> str:
    """The coarsest precision of a session's layers."""
    if budget(precision) is None or not options.mix:
        return precision
    return max(options.mix.values(), key=NAMES.index)


def joins(device: str, options: Options, mix: Mapping[str, str]) -> Joins:
    """Which operators become one step: as in a plan of the first one's precision."""

    def joined(made: Kernel, weights_known: bool) -> bool:
        precision = next((mix[node] for node in made.nodes if node in mix), FP32)
        return better_fused(device, options, precision)(made, weights_known)

    return joined


def words(mix: Mapping[str, str]) -> str:
    """ "conv1 to conv5 in fp16, fc6 in fp32": neighbours of the same precision together."""
    spans: list[tuple[str, list[str]]] = []
    for node, precision in mix.items():
        if spans and spans[-1][0] == precision:
            spans[-1][1].append(node)
        else:
            spans.append((precision, [node]))
    if len(spans) == 1:
        return f"all in {spans[0][0]}"
    return ", ".join(
        f"{nodes[0]}{f' to {nodes[-1]}' if len(nodes) > 1 else ''} in {precision}"
        for precision, nodes in spans
    )


def fact(plan: Plan, graph: Graph, precision: str, options: Options) -> str:
    """What a session of this mixed precision computes in, and why, in words."""
    mix = {step.nodes[0]: step.asked for step in plan.steps if multiplies(step.params)}
    if only(mix) != FP32:
        return words(mix)
    said = "all in fp32"
    if len(registry.precisions(plan.device)) < 2:
        return f"{said}: no kernel for the {plan.device.upper()} computes in less"
    if not mix:
        return f"{said}: the model has no product"
    if options.mix is not None:
        return said
    known = read(graph, plan.batch, plan.device, precision) if options.tuned else None
    if known is None or not known.choice.done:
        return f"{said}: what else stays within the budget was not measured (compare does, with tuning on)"
    beyond = [tried for tried in known.choice.tried if tried.refused]
    if len(beyond) < len(known.choice.tried) - 1:
        return f"{said}, which is the fastest within the budget"
    alone = [tried for tried in beyond if only(dict(tried.variant)) is not None]
    told = "; ".join(f"{words(dict(tried.variant))}: {tried.refused}" for tried in alone)
    return f"{said}: nothing narrower stays within the budget ({told})"


# ------------------------------------------------------------------------------------------ what is kept


def read(graph: Graph, batch: int, device: str, precision: str) -> Timed | None:
    """What is kept for this model, complete or not."""
    return MIXES.read(_case(graph, batch, device, precision), _on(graph, batch, device))


def write(graph: Graph, batch: int, device: str, precision: str, timed: Timed) -> None:
    """Keep it. Raises KernelError where the cache cannot be written."""
    MIXES.write(_case(graph, batch, device, precision), _on(graph, batch, device), timed)


def _case(graph: Graph, batch: int, device: str, precision: str) -> Key | None:
    machine = choices.machine(device, None)
    if machine is None:
        return None
    return {**machine, "model": graph.sha256, "batch": str(batch), "precision": precision}


def _on(graph: Graph, batch: int, device: str) -> Key:
    """All kernels that a step could take: another one may have another error."""
    ops = sorted({item.params.op for item in _kernels(graph, batch)})
    rungs = [rung for op in ops for rung in registry.rungs(device, op)]
    return {"sources": choices.digest(device, tuple(rung.source for rung in rungs))}


def _kernels(graph: Graph, batch: int) -> tuple[Kernel, ...]:
    def made() -> tuple[Kernel, ...]:
        return tuple(item for item in program(graph, batch, never).items if isinstance(item, Kernel))

    return graph.remembered("kernels", batch, made)
