"""The launches of a plan on a device: its weights are uploaded, its kernels compiled, and each step becomes a
`Call`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.cuda import bounds
from engine.cuda.runtime import load_module
from engine.cuda.stages import CublasLibrary, kernel_calls
from engine.graph.plan import Plan
from engine.planning import image_turns
from kernels import nvrtc
from kernels.languages.compiling import settled
from kernels.launch import Launch, Pack
from kernels.overlaps import CAPABILITY as OVERLAP_CAPABILITY
from kernels.registry import Rung


@dataclass(frozen=True)
class Call:
    """The launches of one step, a kernel or more, with all their arguments."""

    stages: tuple[Callable[[], None], ...]
    turns: int = 1  # that its stages are of, as many each

    def turn(self, number: int) -> tuple[Callable[[], None], ...]:
        """The launches of one turn (Plan.turns)."""
        each = len(self.stages) // self.turns
        return self.stages[number * each : (number + 1) * each]

    def start(self) -> None:
        """Launch on the current stream."""
        for stage in self.stages:
            stage()


def start_all(calls: Sequence[Call]) -> None:
    for call in calls:
        call.start()


def in_turns(plan: Plan, calls: Sequence[Call]) -> list[Call]:
    """The calls in the order of a pass. Steps that take turns (Plan.turns) are merged into the first of them,
    turn by turn."""
    turns, ordered = plan.turns, list(calls)
    if turns is not None:
        own = ordered[turns.start : turns.end]
        order = [stage for number in range(turns.count) for call in own for stage in call.turn(number)]
        ordered[turns.start : turns.end] = [Call(tuple(order)), *[Call(())] * (len(own) - 1)]
    return ordered


def compile_calls(
    cupy: Any,
    capability: tuple[int, int],
    plan: Plan,
    shapes: Sequence[tuple[Rung, Launch]],
    packed: Sequence[Mapping[int, Constant]],
    constants: Mapping[Constant, int],
    pointer: Callable[[str], int],
    scratch: int,
) -> tuple[list[Call], list[Call]]:
    """Compile the kernel of every step, or take it from the cache, and prepare its launch. Returns the calls,
    and the calls again with those that can begin early doing so (empty where none can, or where steps take
    turns). shapes: rung and launch of each step; packed: for each step, by place of the input, the constant
    that it gets; constants, pointer: addresses of constants and of tensors; scratch: address of the
    workspace."""
    arch = f"sm_{capability[0]}{capability[1]}"
    modules: dict[Path, Any] = {}
    library = CublasLibrary(cupy)
    calls: list[Call] = []
    early: list[Call] = []
    overlaps = False
    for index, (rung, shape) in enumerate(shapes):
        step, packed_inputs = plan.steps[index], packed[index]
        cubin = nvrtc.compile_rung(rung, arch, shape.defines)
        how = settled(shape, rung, cubin)
        if cubin not in modules:
            bounds.admit(cupy, rung, cubin, shape.workspace_nbytes or 0)
            modules[cubin] = load_module(cupy, cubin)
        inputs = [
            constants[packed_inputs[i]] if i in packed_inputs else pointer(name)
            for i, name in enumerate(step.inputs)
        ]
        stages: list[Callable[[], None]] = []
        moves = image_turns.launch_offsets(plan, index)
        for read, written in moves:
            moved = [inputs[0] + read, *inputs[1:]]
            known = cupy, modules[cubin], rung, how, moved, pointer(step.output) + written, scratch, library
            stages += kernel_calls(*known)
        calls.append(Call(tuple(stages), len(moves)))
        # Such a kernel reads its weights before it waits for the one in front, which must not write them.
        weights = [name for i, name in enumerate(step.inputs) if i in step.params.weight_inputs and name]
        constant = all(name in plan.weights for name in weights)
        can = rung.overlaps and constant and capability >= OVERLAP_CAPABILITY and plan.turns is None
        overlaps |= can
        early.append(Call(kernel_calls(*known, overlap=True)) if can else calls[-1])
    return calls, early if overlaps else []


Constant = str | tuple[str, tuple[int, ...], Pack]
"""A weight on the device: its name, and where it is packed its shape and how."""


def device_constants(
    plan: Plan, launches: Sequence[Launch]
) -> tuple[dict[Constant, np.ndarray], list[dict[int, Constant]]]:
    """The constants that are uploaded, and for each step which of its inputs get a packed constant. A weight
    that every step reads packed is not uploaded in its original form."""
    constants: dict[Constant, np.ndarray] = {}
    packed: list[dict[int, Constant]] = []
    for step, shape in zip(plan.steps, launches, strict=True):
        packed.append({})
        for i, name in enumerate(step.inputs):
            holder = plan.holder(name)
            if holder not in plan.weights:
                continue
            pack = shape.packed.get(i)
            key: Constant = holder if pack is None else (holder, plan.tensors[name].shape, pack)
            if pack is not None:
                packed[-1][i] = key
            if key not in constants:
                array = np.ascontiguousarray(plan.weights[holder])
                constants[key] = array if pack is None else pack(array.reshape(plan.tensors[name].shape))
    return constants, packed
