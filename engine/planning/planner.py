"""Graph → Plan for one batch size, device and precision: passes, a rung for each step, a place for each
tensor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from engine.graph.graph import Graph
from engine.graph.memory import ALIGNMENT, TEXTURE_ALIGNMENT, lives, place
from engine.graph.plan import ArenaSlot, Plan, Step, TensorSpec
from engine.ops import Kernel, View
from engine.options import Options
from engine.passes import Joins, Program, program, widen
from engine.planning import choices, image_turns, layouts, mixed
from engine.planning.step_fusion import always, behind, better_fused, never, packed
from kernels import precision as precisions
from kernels import registry
from kernels.errors import InputError, UnsupportedError
from kernels.layouts import PLAIN, nbytes
from kernels.nearest import did_you_mean
from kernels.ops import WIDER, Params
from kernels.ops._quantized import EIGHT_BITS
from kernels.ops.cast import Cast
from kernels.ops.unary import Unary
from kernels.precision import FP32, NAMES, budget


class Chosen(NamedTuple):
    """A rung by name, what chose it ("named" in the options, "timed" as the fastest on this machine, or the
    order of the "ladder"), and what it computes in."""

    rung: str
    by: str = "ladder"
    precision: str = FP32


Choose = Callable[[str, Params, str, bool, str], Chosen]
"""(device, params, ONNX node name, whether its weights are constants, the precision asked for) → the rung.
Raises UnsupportedError with the reason."""

Workspace = Callable[[Step], int]
"""Bytes of scratch memory that the launch of a step needs."""


def plan(
    graph: Graph,
    batch: int,
    device: str = "cpu",
    precision: str = FP32,
    options: Options | None = None,
    *,
    choose: Choose | None = None,
    workspace: Workspace | None = None,
    joined: bool | Joins | None = None,
) -> Plan:
    """The plan of a model at one batch size. A mixed precision in which all products have the same is a plan
    of that one (engine.planning.mixed).

    choose: picks the rung of a step (default: `ladder_choice`). workspace: bytes of scratch a step needs
    (default: none); the plan keeps the largest, which the steps share. joined: whether operators that have
    ladders of their own become one step of a joint one (kernels.ops: LrnPool, ConvPool): None, where the
    device is better off so (engine.planning.step_fusion); True, wherever they can; False, never; else as it
    says itself.
    Raises InputError (batch size, precision or a node of options.rungs unknown) and UnsupportedError (a node,
    a batch size or a precision that is refused, with the reason).
    """
    options = options or Options()
    check_precision(precision, device)
    mix: dict[str, str] = {}
    if budget(precision) is not None:
        mix = mixed.planned(graph, batch, device, precision, options)
        if (one := mixed.only(mix)) is not None:
            plain = replace(options, mix=None)
            return plan(graph, batch, device, one, plain, choose=choose, workspace=workspace, joined=joined)
        joins = mixed.joins(device, options, mix) if joined is None else joined
    else:
        joins = better_fused(device, options, precision) if joined is None else joined
    if isinstance(joins, bool):
        joins = always if joins else never
    packs = None if mix else packed(device, options)
    made = program(graph, batch, joins, behind(device), packs)
    lowered = widen(made, partial(_taken, device))
    _check_rungs(options, graph)
    choose = choose or ladder_choice(options)
    kernels, specs, weights, aliases = _with_outputs_placed(lowered)
    used = Counter[str]()
    steps = []
    ops: dict[str, set[str]] = {}
    for item in kernels:
        for node in item.nodes:
            ops.setdefault(node, set()).add(item.params.op)
    for item, wanted in zip(kernels, mixed.asked(kernels, precision, mix), strict=True):
        name = item.nodes[0]
        used[name] += 1
        named = (node for node in item.nodes if node in options.rungs)
        chosen_for = next((node for node in named if _is_meant(item, ops[node], node, device, options)), "")
        if not chosen_for:
            # Of a node whose rung is for another of its kernels: this one has no name to be asked for by.
            chosen_for = f"{name}:{item.params.op}" if name in options.rungs else name
        # A product's weights, its second and later inputs, may be constants of the model.
        known = all(aliases.get(name, name) in weights for name in item.inputs[1:])
        chosen = choose(device, item.params, chosen_for, known, wanted)
        steps.append(
            Step(
                name=name if used[name] == 1 else f"{name}:{used[name]}",
                nodes=item.nodes,
                params=item.params,
                inputs=item.inputs,
                output=item.output,
                rung=chosen.rung,
                chosen=chosen.by,
                asked=wanted,
                precision=chosen.precision,
            )
        )
    planned = Plan(
        batch=batch,
        device=device,
        precision=precision,
        steps=tuple(steps),
        tensors=specs,
        weights=weights,
        placements={},
        aliases=aliases,
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        arena_nbytes=0,
        workspace_nbytes=0,
    )
    planned = replace(planned, steps=layouts.assigned(planned, options))
    turns = image_turns.choose_turns(planned, options, lambda made: _placed(made)[1])
    planned = replace(planned, turns=turns)
    placements, arena = _placed(planned)
    scratch = 0
    if workspace:
        scratch = max((workspace(planned.at_once(i)) for i in range(len(planned.steps))), default=0)
    return replace(planned, placements=placements, arena_nbytes=arena, workspace_nbytes=scratch)


def _placed(made: Plan) -> tuple[dict[str, ArenaSlot], int]:
    """The place of each tensor in the arena, and the bytes of the arena."""
    sizes = {
        name: spec.nbytes
        for name, spec in made.tensors.items()
        if name not in made.weights and name not in made.aliases
    }
    for step in made.steps:
        if step.writes != PLAIN:
            sizes[step.output] = nbytes(step.writes, step.params.laid[1])
    if made.turns is not None:
        for index in made.turns.steps[:-1]:
            sizes[made.steps[index].output] = image_turns.output_nbytes(made.at_once(index))
    lived = lives(
        [([made.holder(name) for name in step.inputs], step.output) for step in made.steps],
        sizes,
        made.inputs,
        [made.holder(name) for name in made.outputs],
    )
    alignment = TEXTURE_ALIGNMENT if made.device == "cuda" else ALIGNMENT
    return place(image_turns.lasting(made, lived), alignment)


def _taken(device: str, params: Params) -> bool:
    """Whether a kernel can take an element type as it is. On the CPU none computes in half precision: NumPy
    would round after each of several operations."""
    if device == "cpu" and params.flops and params.dtype not in EIGHT_BITS:
        return False
    return any(rung.refusal(params) is None for rung in registry.candidates(device, params.op))


def _is_meant(item: Kernel, ops: set[str], node: str, device: str, options: Options) -> bool:
    """Whether the rung that is named for a node is meant for this kernel of it. A node may be several kernels
    (Split is a pad for each part): those that have such a rung are meant; if none has, all are, so that the
    error is reported."""
    wanted = options.rungs[node]

    def has(op: str) -> bool:
        ladder = registry.rungs(device, op, options.kernel_dirs)
        return any(wanted in (rung.name, str(rung.number)) for rung in ladder)

    return has(item.params.op) or not any(map(has, ops))


def check_precision(precision: str, device: str) -> None:
    """Raises InputError for an unknown precision, UnsupportedError for one the engine's kernels lack."""
    if not precisions.known(precision):
        few = f"{', '.join(NAMES)}, and mixed ones such as {precisions.asked(precisions.MIXED)}"
        raise InputError(f"precision {precision!r} is unknown: there are {few}")
    if budget(precision) is None and not registry.offers(device, precision):
        raise UnsupportedError(
            f"precision {precision} is not offered by the engine on {device}: it computes in "
            f"{', '.join(registry.precisions(device))}"
        )


def ladder_choice(options: Options, capability: tuple[int, int] | None = None) -> Choose:
    """The rung that `options.rungs` names for a node, else (with options.tuned) the one that was timed to be
    the fastest on this machine, else the first of `registry.candidates` that takes the params. A library's
    rungs and the user's own run only where they are named, others beside the ladder also where they were
    timed.

    capability: compute capability of the device, which some rungs depend on.
    """

    def choose(device: str, wanted: Params, node: str, weights_known: bool, precision: str) -> Chosen:
        extra = options.kernel_dirs
        if node in options.rungs:
            rung = registry.find(device, wanted.op, options.rungs[node], extra, precision=precision)
            reason = rung.refusal(wanted, capability)
            if precision not in (rung.precision, *rung.also) and rung.precision != FP32:
                reason = f"it computes in {rung.precision}, and {precision} was asked for"
            if rung.packs and not weights_known:
                reason = "it lays its weights out anew, and here they are no constants"
            if reason is not None:
                raise UnsupportedError(
                    f"node {node!r}: rung {rung.name!r} of {wanted.op} on {device} refuses: {reason}"
                )
            return Chosen(rung.name, "named", rung.precision)
        if options.tuned:
            able = choices.candidates(device, wanted, precision, weights_known, capability)
            timed = choices.chosen(device, wanted, precision, able, options.threads)
            timed_rung = next((rung for rung in able if rung.name == timed), None)
            if (
                timed is not None
                and timed_rung is not None
                and not (timed_rung.compiled and not options.compiled)
            ):
                return Chosen(timed, "timed", timed_rung.precision)
        reasons = []
        able = registry.candidates(device, wanted.op, precision, weights_known)
        for rung in sorted(able, key=lambda rung: wanted.loses_digits(rung.method)):
            if (rung.compiled and not options.compiled) or not rung.suits(wanted):
                continue
            reason = rung.refusal(wanted, capability)
            if reason is None and device == "cuda":
                reason, _ = choices.launched(wanted, rung)
            if reason is None:
                return Chosen(rung.name, precision=rung.precision)
            reasons.append(f"{rung.name}: {reason}")
        why = "; ".join(reasons) or "there is no rung"
        raise UnsupportedError(f"node {node!r}: no {wanted.op} kernel for {device} takes it ({why})")

    return choose


def _check_rungs(options: Options, graph: Graph) -> None:
    names = [node.name for node in graph.nodes]
    for name in options.rungs:
        if name not in names:
            few = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            hint = did_you_mean(name, names, otherwise=f"; its nodes are {few}")
            raise InputError(
                f"a rung was chosen for node {name!r}, and model {graph.name!r} has no such node{hint}"
            )


def _with_outputs_placed(
    lowered: Program,
) -> tuple[list[Kernel], dict[str, TensorSpec], dict[str, np.ndarray], dict[str, str]]:
    """Kernels, specs, weights (as the steps read them) and aliases (to the tensor that holds the bytes).

    A graph output that would be a view of a graph input or of a constant gets a copy, so that it has a place
    of its own.
    """
    kernels = [item for item in lowered.items if isinstance(item, Kernel)]
    constants = dict(lowered.constants)
    specs = dict(lowered.specs)
    aliases: dict[str, str] = {}
    covers: dict[str, tuple[str, ...]] = {}
    for item in lowered.items:
        if isinstance(item, View):
            aliases[item.output] = aliases.get(item.source, item.source)
            covers[item.output] = covers.get(item.source, ()) + item.nodes
    copies: list[Kernel] = []
    for name in dict.fromkeys(lowered.outputs):
        source = aliases.pop(name, name)
        if source in constants:
            constant_name = f"{name}:constant"
            constants[constant_name], specs[constant_name] = constants[source], specs[source]
            constants.pop(name, None)
        elif source in lowered.inputs and source != name:
            constant_name = source
        else:
            if source != name:
                aliases[name] = source
            continue
        spec = specs[name]
        size = math.prod(spec.shape)
        copy: Params = Unary(kind="identity", size=size, dtype=spec.dtype)
        if spec.dtype in WIDER:  # which functions are not computed in
            copy = Cast(size=size, dtype=spec.dtype, to=spec.dtype)
        copies.append(Kernel(copy, (constant_name,), name, covers.get(name, (name,))))
    # First, because other steps may read the copy.
    kernels = copies + kernels
    read = {name for kernel in kernels for name in kernel.inputs}
    weights: dict[str, np.ndarray] = {}
    for name in sorted(read):
        constant_name = aliases.get(name, name)
        if constant_name in constants:
            weights[constant_name] = np.asarray(
                constants[constant_name], np.dtype(specs[constant_name].dtype), order="C"
            )
    live = read | {kernel.output for kernel in kernels} | set(lowered.inputs) | set(lowered.outputs)
    live |= {aliases[name] for name in live if name in aliases}
    return (
        kernels,
        {name: spec for name, spec in specs.items() if name in live},
        weights,
        {name: constant_name for name, constant_name in aliases.items() if name in live},
    )
