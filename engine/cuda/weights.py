"""A plan's weights on the device: as in the model, or packed as a rung's launch needs them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.graph.plan import Plan
from kernels.launch import Launch, Pack

Constant = str | tuple[str, tuple[int, ...], Pack]
"""A weight on the device: its name, and where it is packed its shape and how."""


def laid_out(
    plan: Plan, launches: Sequence[Launch]
) -> tuple[dict[Constant, np.ndarray], list[dict[int, Constant]]]:
    """What lies on the device of the constants, and for each step which of its inputs are packed ones. A
    weight that every step reads packed is not uploaded as it was."""
    constants: dict[Constant, np.ndarray] = {}
    packed: list[dict[int, Constant]] = []
    for step, shape in zip(plan.steps, launches, strict=True):
        packed.append({})
        for i, name in enumerate(step.inputs):
            held = plan.holder(name)
            if held not in plan.weights:
                continue
            pack = shape.packed.get(i)
            key: Constant = held if pack is None else (held, plan.tensors[name].shape, pack)
            if pack is not None:
                packed[-1][i] = key
            if key not in constants:
                array = np.ascontiguousarray(plan.weights[held])
                constants[key] = array if pack is None else pack(array.reshape(plan.tensors[name].shape))
    return constants, packed
