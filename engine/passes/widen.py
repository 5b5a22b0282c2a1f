"""Half precision where a device's kernels take float32 alone: computed in float32, stored as the file says.

Every kernel that computes with float16 or bfloat16 reads its inputs widened and computes in float32; what it
gives is rounded to the type of the file, once, and that is what others read. Constants are widened when the
plan is made. What is only moved stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.passes.trace import Program
from kernels.ops import HALVES, Params
from kernels.ops.cast import Cast

WIDE = "float32"


def widen(program: Program, takes: Callable[[Params], bool]) -> Program:
    """The program with the kernels in half precision that no rung takes in float32, and casts about them.
    takes: whether some rung takes the params as they are."""
    items: list[Kernel | View] = []
    specs, constants = dict(program.specs), dict(program.constants)
    wide: dict[str, str] = {}  # a tensor's copy in float32

    def widened(name: str, item: Kernel) -> str:
        if name not in wide:
            copy, spec = f"{name}:{WIDE}", specs[name]
            wide[name] = copy
            specs[copy] = TensorSpec(spec.shape, WIDE)
            if name in constants:
                constants[copy] = np.asarray(constants[name]).astype(spec.dtype).astype(np.float32)
            else:
                cast = Cast(size=math.prod(spec.shape), dtype=spec.dtype, to=WIDE)
                items.append(Kernel(cast, (name,), copy, item.nodes))
        return wide[name]

    for item in program.items:
        if isinstance(item, View) or item.params.dtype not in HALVES or takes(item.params):
            items.append(item)
            continue
        inputs = [widened(name, item) if specs[name].dtype in HALVES else name for name in item.inputs]
        spec, params = specs[item.output], in_float32(item.params)
        if spec.dtype not in HALVES:
            items.append(replace(item, params=params, inputs=tuple(inputs)))
            continue
        made = f"{item.output}:unrounded"
        specs[made] = TensorSpec(spec.shape, WIDE)
        items.append(replace(item, params=params, inputs=tuple(inputs), output=made))
        cast = Cast(size=math.prod(spec.shape), dtype=WIDE, to=spec.dtype)
        items.append(Kernel(cast, (made,), item.output, item.nodes))
    return replace(program, items=tuple(items), specs=specs, constants=constants)


def in_float32(params: Params) -> Params:
    """The same params in float32, those of a joint operator's halves too."""
    changed: dict[str, Any] = {}
    for field in fields(params):
        value = getattr(params, field.name)
        if isinstance(value, Params):
            changed[field.name] = in_float32(value)
        elif isinstance(value, str) and value in HALVES:
            changed[field.name] = WIDE
    return replace(params, **changed)
