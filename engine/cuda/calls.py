"""A plan's steps as what starts their kernels on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.cuda import overlap
from engine.cuda.stages import CublasLibrary, starts
from engine.cuda.weights import Constant
from engine.graph.plan import Plan
from kernels import nvrtc
from kernels.languages.compiling import settled
from kernels.launch import Launch
from kernels.registry import Rung


@dataclass(frozen=True)
class Call:
    """A step's launch, a kernel or more, with everything they take, pointers included."""

    stages: tuple[Callable[[], None], ...]

    def start(self) -> None:
        """On the current stream."""
        for stage in self.stages:
            stage()


def start(calls: Sequence[Call]) -> None:
    for call in calls:
        call.start()


def compiled(
    cupy: Any,
    capability: tuple[int, int],
    plan: Plan,
    shapes: Sequence[tuple[Rung, Launch]],
    packed: Sequence[Mapping[int, Constant]],
    constants: Mapping[Constant, int],
    pointer: Callable[[str], int],
    scratch: int,
) -> tuple[list[Call], list[Call]]:
    """Every step's kernel, from the disk cache or compiled now, and its launch; and the launches again with
    those that can begin early doing so (empty where none can). shapes, packed: of each step its rung and
    launch, and by the input's place the constant it is given; constants, pointer: where those and the tensors
    lie; scratch: where the workspace does."""
    arch = f"sm_{capability[0]}{capability[1]}"
    modules: dict[str, Any] = {}
    library = CublasLibrary(cupy)
    calls: list[Call] = []
    early: list[Call] = []
    overlaps = False
    for step, (rung, shape), given in zip(plan.steps, shapes, packed, strict=True):
        path = str(cubin := nvrtc.compile_rung(rung, arch, shape.defines))
        how = settled(shape, rung, cubin)
        if path not in modules:
            modules[path] = cupy.RawModule(path=path)
        inputs = [constants[given[i]] if i in given else pointer(name) for i, name in enumerate(step.inputs)]
        known = cupy, modules[path], rung, how, inputs, pointer(step.output), scratch, library
        calls.append(Call(starts(*known)))
        # Such a kernel reads its weights before it waits for the one in front, which must not write them.
        weights = [name for i, name in enumerate(step.inputs) if i in step.params.weight_inputs and name]
        constant = all(name in plan.weights for name in weights)
        can = rung.overlaps and constant and capability >= overlap.CAPABILITY
        overlaps |= can
        early.append(Call(starts(*known, overlap=True)) if can else calls[-1])
    return calls, early if overlaps else []
