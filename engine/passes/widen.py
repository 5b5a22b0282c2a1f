"""Element types that a device's kernels do not take: computed in a wider one, stored as the file says.

Every kernel that computes with float16 or bfloat16 reads its inputs widened and computes in float32; what it
gives is rounded to the type of the file, once, and that is what others read. So it is with whole numbers of
16 bits, or of 32 without a sign, and whatever else has a wider type (kernels.ops.WIDER). Constants are
widened when the plan is made. What is only moved stays as it is, where a kernel moves that type. Maxima of
eight-bit numbers, which float32 holds, are found there where no kernel of the device takes bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from engine.graph.plan import TensorSpec
from engine.ops import Kernel, View
from engine.passes.trace import Program, free_name
from kernels.ops import WIDER, Params
from kernels.ops._quantized import EIGHT_BITS
from kernels.ops.cast import Cast
from kernels.ops.pool import Pool


def widen(program: Program, takes: Callable[[Params], bool]) -> Program:
    """The program with the kernels whose element type no rung takes in the wider one, and casts about them.
    takes: whether some rung takes the params as they are."""
    items: list[Kernel | View] = []
    specs, constants = dict(program.specs), dict(program.constants)
    wide: dict[str, str] = {}  # a tensor's copy in float32

    def widened(name: str, item: Kernel) -> str:
        if name not in wide:
            spec = specs[name]
            to = _wider(item.params)[spec.dtype]
            wide[name] = copy = free_name(name, f":{to}", specs)
            specs[copy] = TensorSpec(spec.shape, to)
            if name in constants:
                constants[copy] = np.asarray(constants[name]).astype(spec.dtype).astype(to)
            else:
                cast = Cast(size=math.prod(spec.shape), dtype=spec.dtype, to=to)
                items.append(Kernel(cast, (name,), copy, item.nodes))
        return wide[name]

    for item in program.items:
        wider = {} if isinstance(item, View) else _wider(item.params)
        if isinstance(item, View) or item.params.dtype not in wider or takes(item.params):
            items.append(item)
            continue
        inputs = [widened(name, item) if specs[name].dtype in wider else name for name in item.inputs]
        spec, params = specs[item.output], widened_params(item.params)
        if spec.dtype not in wider:
            items.append(replace(item, params=params, inputs=tuple(inputs)))
            continue
        wide_output = free_name(item.output, ":unrounded", specs)
        specs[wide_output] = TensorSpec(spec.shape, wider[spec.dtype])
        items.append(replace(item, params=params, inputs=tuple(inputs), output=wide_output))
        cast = Cast(size=math.prod(spec.shape), dtype=wider[spec.dtype], to=spec.dtype)
        items.append(Kernel(cast, (wide_output,), item.output, item.nodes))
    return replace(program, items=tuple(items), specs=specs, constants=constants)


def widened_params(params: Params) -> Params:
    """The same params in the wider type, those of a joint operator's halves too."""
    changed: dict[str, Any] = {}
    wider = _wider(params)
    for field in fields(params):
        value = getattr(params, field.name)
        if isinstance(value, Params):
            changed[field.name] = widened_params(value)
        elif isinstance(value, str) and value in wider:
            changed[field.name] = wider[value]
    return replace(params, **changed)


def _wider(params: Params) -> dict[str, str]:
    """By an element type of this operator the one in which it may be computed."""
    return WIDER | (dict.fromkeys(EIGHT_BITS, "float32") if isinstance(params, Pool) else {})
